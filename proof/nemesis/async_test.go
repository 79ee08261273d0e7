package nemesis

import (
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

var (
	onceAsync  = job{name: "async", every: 5 * time.Second, take: 3 * time.Second, async: true, ttl: asyncLease}
	againAsync = job{name: "async", every: 5 * time.Second, take: 3 * time.Second, async: true, ttl: asyncLease, again: true}
)

// work is a run of r1 whose app worked until it reported that it succeeded.
func (s *scene) work(tick, arrived, ended float64) *rig.Request {
	q := s.run(tick, arrived, ended, succeeded)
	q.Work = rig.Work{Began: at(arrived + .002), Heartbeat: heartbeat, Until: at(ended + .8), Ended: at(ended), Report: succeeded, Answer: 200}
	return q
}

// cutOff is a run of r1 whose app worked until it had no answer any more, and that was given up at an instant.
func (s *scene) cutOff(tick, arrived, ended, reaped float64) *rig.Request {
	q := s.run(tick, arrived, ended, interrupted)
	q.Work = rig.Work{Began: at(arrived + .002), Heartbeat: heartbeat, Until: at(ended), Ended: at(ended)}
	s.history[len(s.history)-1].at = at(reaped)
	return q
}

func TestAnAppThatReportsInTimeIsFine(t *testing.T) {
	s := newScene(onceAsync)
	s.to = at(5)
	s.work(0, .002, 3)
	s.work(5, 5.002, 8)
	if got := s.judged(t); got.works != 2 || got.stops != 0 || got.reports != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestNothingExcusesTwoAppsAtWork(t *testing.T) {
	for arrived, want := range map[float64][]string{
		6.1: nil,
		5.9: {"two apps at work"},
	} {
		s := newScene(onceAsync)
		s.to = at(5)
		s.cutOff(0, .002, 6, 6.05)
		s.work(5, arrived, 9)
		s.strike(stopped, "r1", .5, 7) // which excuses it for a job whose call is the run
		s.judged(t, want...)
	}
}

func TestAnAppIsNotCalledWhileAnotherOneCouldWork(t *testing.T) {
	s := newScene(againAsync)
	s.to = at(0)
	s.cutOff(0, .002, 2, 2.05)
	s.strike(stopped, "r1", .8, 2)
	next := s.work(0, 1.9, 6)
	next.Attempt, next.Kind, next.Work.Began = 2, "takeover", at(2.1)
	s.judged(t, "called while another app could work")
}

func TestARestartInPlaceDoesNotEndARunThatItsAppMayEnd(t *testing.T) {
	for reaped, want := range map[float64][]string{
		.9:  {"over while its app could work", "taken over from a replica that nothing had happened to"},
		2:   {"taken over from a replica that nothing had happened to"}, // the lease was not over
		4.6: nil,
		9:   {"taken over late"},
	} {
		s := newScene(onceAsync)
		s.to = at(0)
		s.cutOff(0, .002, 1.4, reaped)
		s.strike(crashed, "r1", .5, .8)
		s.judged(t, want...)
	}
}

// The kernel of a process that was killed while it was cut off sends its renewal once more.
func TestARenewalOfTheDeadMayArriveWhenTheirWayIsOpen(t *testing.T) {
	long := onceAsync
	long.every, long.take, long.beat, long.ttl = 20*time.Second, 10*time.Second, longBeat, longLease
	for _, c := range []struct {
		killed, reaped float64
		want           []string
	}{
		{7.79, 19.5, nil}, {7.79, 30, []string{"taken over late"}}, {9, 19.5, []string{"taken over late"}},
	} {
		s := newScene(long)
		s.to = at(0)
		q := s.cutOff(0, .008, 7.01, c.reaped)
		q.Work.Heartbeat = longBeat
		s.strike(cut, "r1", .026, 7.8)
		s.strike(crashed, "r1", c.killed, 12)
		s.judged(t, c.want...)
	}
}

func TestAReplicaThatGoesOnFindsItsAppSilent(t *testing.T) {
	for _, h := range []harm{stopped, cut} {
		s := newScene(onceAsync)
		s.to = at(0)
		s.cutOff(0, .002, 1.4, 2.1)
		s.strike(h, "r1", .5, 2)
		s.judged(t)
	}
}

// A replica that was stopped at its claim for less than its lease calls the app when it goes on. From then on the app
// works for as long as the replica gives it leave.
func TestARunWhoseAppGotLeaveAfterAStrikeDiedOfTheNextOne(t *testing.T) {
	long := onceAsync
	long.every, long.take, long.beat, long.ttl = 20*time.Second, 10*time.Second, longBeat, longLease
	for name, c := range map[string]struct {
		arrived, from, to float64
		leave             float64 // when the last heartbeat was sent that was answered with it
		next, reaped      float64
		late              bool
	}{
		"stopped at its claim":       {6.506, -.002, 6.507, 11.879, 12, 19.512, false},
		"stopped while at work":      {.002, 1, 5.2, 11.3, 12, 19.512, false},
		"late after the next strike": {6.506, -.002, 6.507, 11.879, 12, 24.5, true},
		"without a next strike":      {6.506, -.002, 6.507, 11.879, 30, 19.512, true},
		"without leave until then":   {6.506, -.002, 6.507, 8.4, 12, 19.512, true},
		"without leave in between":   {.002, 1, 3.5, .9, 4.3, 14, true},
	} {
		s := newScene(long)
		s.to = at(0)
		q := s.cutOff(0, c.arrived, c.leave+3.5, c.reaped)
		q.Work.Heartbeat, q.Token = longBeat, at(-.012).UnixMilli()
		s.strike(stopped, "r1", c.from, c.to)
		s.strike(killed, "r1", c.next, c.next+.6)
		var want []string
		if c.late {
			want = []string{"taken over late"}
		}
		t.Run(name, func(t *testing.T) { s.judged(t, want...) })
	}
}

func TestAnAppThatMustStopAlthoughNothingHadHappenedIsFound(t *testing.T) {
	s := newScene(onceAsync)
	s.to = at(0)
	s.cutOff(0, .002, 1.4, 1.5)
	s.judged(t, "its app had to stop, and nothing had happened", "taken over from a replica that nothing had happened to")
}

func TestARedisThatStandsStillStopsAnAppBeforeItsLeaseIsOver(t *testing.T) {
	long := onceAsync
	long.take, long.beat, long.ttl = 10*time.Second, longBeat, longLease
	for stood, want := range map[float64][]string{5.7: nil, 1: {"taken over from a replica that nothing had happened to"}} {
		s := newScene(long)
		s.to = at(0)
		s.cutOff(0, .01, 7.01, 7.02).Work.Heartbeat = longBeat
		s.strike(stalled, theRedis, 1.13, 1.13+stood)
		s.judged(t, want...)
	}
}

func TestAnAppThatStoodStillBlamesNoReplica(t *testing.T) {
	s := newScene(onceAsync)
	s.to = at(0)
	s.cutOff(0, .002, 1.4, 1.5).Work.Late = 400 * time.Millisecond
	s.judged(t)
	s.requests[0].Work.Late = 300 * time.Millisecond
	s.judged(t, "its app had to stop, and nothing had happened", "taken over from a replica that nothing had happened to")
}

func TestAHeartbeatIsNotForTheNextProcess(t *testing.T) {
	s := newScene(onceAsync)
	s.to = at(0)
	s.cutOff(0, .002, 1.4, 4.8)
	s.strike(crashed, "r1", .5, .7)
	s.judged(t)
	s.requests[0].Work.Until = at(1.8) // sent after the death
	s.judged(t, "a heartbeat was answered by another process")
}

func TestARunIsNotOverBeforeItsAppHasStopped(t *testing.T) {
	s := newScene(onceAsync)
	s.to = at(0)
	s.work(0, .002, 3)
	s.history[0].at = at(2.9)
	s.judged(t, "over while its app could work")
}

func TestAReportThatWasAnsweredIsTheFateOfTheTick(t *testing.T) {
	keep := func(q func(*scene) *rig.Request) *kept {
		s := newScene(onceAsync)
		s.to, s.left = at(0), at(9)
		k := &kept{s, &ledger{newest: at(0), counted: map[string]int{failed: 1}}}
		k.ledgers = map[string]*ledger{s.job.name: k.ledger}
		k.ledger.fates = []fate{{at: at(3.001), what: failed, tick: at(0), run: q(s).Run}}
		s.history[0].outcome = failed
		s.strike(cut, "r1", .2, .6) // the report was answered, so this is no excuse
		return k
	}
	k := keep(func(s *scene) *rig.Request { return s.work(0, .002, 3) })
	k.judged(t, "its run succeeded, and its fate is failed")
	k = keep(func(s *scene) *rig.Request {
		q := s.work(0, .002, 3)
		q.Work.Answer, q.Left = 410, true
		return q
	})
	k.judged(t)
}
