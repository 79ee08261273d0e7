package nemesis

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

func TestWhatIsLateWhileTheMachineStandsStillIsNoViolation(t *testing.T) {
	w := &world{jobs: []job{brief, again}}
	r := &record{}
	lost, double := finding{what: "lost", job: brief.name, tick: at(10)}, finding{what: "double", job: brief.name, tick: at(10)}
	if _, late := w.late(r, lost); late {
		t.Error("the machine kept time")
	}
	for _, c := range []struct {
		from, to float64
		finding  finding
		want     bool
	}{
		{9.8, 10.2, lost, true},
		{9.8, 10.2, double, false},
		{9.8, 10.2, finding{what: "settled other than once", job: brief.name, tick: at(10)}, false},
		{9.8, 10.2, finding{what: "double", job: again.name, tick: at(10)}, true},
		{9.8, 10.2, finding{what: unharmed, job: brief.name, tick: at(10)}, true}, // its lease was not renewed
		{9.8, 10.2, finding{what: itsFateIs + lostLock, job: brief.name, tick: at(10)}, true},
		{9.8, 10.2, finding{what: itsFateIs + interrupted, job: brief.name, tick: at(10)}, false},
		{9.8, 10.2, finding{what: itsFateIs + succeeded, job: again.name, tick: at(10)}, true}, // that of its second run
		{5, 6, finding{what: itsFateIs + succeeded, job: again.name, tick: at(10)}, false},
		{5, 6, finding{what: unharmed, job: brief.name, tick: at(10)}, false},
		{5, 6, lost, false},
		{40, 41, lost, false},
		{40, 41, finding{what: "taken over late", job: brief.name, tick: at(10), end: at(38)}, true},
	} {
		r.stills = []span{{from: at(c.from), to: at(c.to)}}
		if _, late := w.late(r, c.finding); late != c.want {
			t.Errorf("it stood still from %v to %v: %s at %s is excused: %t", c.from, c.to, c.finding.what, clock(c.finding.tick), late)
		}
	}
}

func TestWhatTheMachineExplainsIsRecordedAsThat(t *testing.T) {
	w, r := &world{t: t, jobs: []job{brief}}, &record{stills: []span{{from: at(9.8), to: at(10.2)}}}
	v := &verdict{byClass: map[string]*tally{}, findings: []finding{{what: "lost", job: brief.name, tick: at(10)}}}
	class := v.of(r.classAt(at(10)))
	class.lost = 1
	w.explain(trial{record: r}, v)
	if class.lost != 0 || class.machine != 1 {
		t.Errorf("%d ticks are lost, and the machine explains %d", class.lost, class.machine)
	}
}

// The other process of the pulse stands still here, as it would if it got no time.
func TestThePulseFeelsThatAProcessGetsNoTime(t *testing.T) {
	var stills atomic.Int64
	pid := pulse(t, func(from, to time.Time) {
		if to.Sub(from) >= time.Second {
			stills.Add(1)
		}
	})
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := syscall.Kill(pid, s); err != nil {
			t.Fatal(err)
		}
		if s == syscall.SIGSTOP {
			time.Sleep(time.Second + 2*pace)
		}
	}
	if err := rig.Until(patience, "the pulse", func() bool { return stills.Load() == 1 }); err != nil {
		t.Error(err)
	}
}
