package main

import (
	"testing"
	"time"

	"github.com/solotick/solotick/internal/proof/rig"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func at(s float64) time.Time { return noon.Add(time.Duration(s * float64(time.Second))) }

// each second from noon to three seconds later: 4 ticks.
var (
	brief  = job{name: "brief", every: time.Second, take: 5 * time.Millisecond}
	long   = job{name: "long", every: time.Second, take: 1500 * time.Millisecond}
	beside = job{name: "beside", every: time.Second, take: 1500 * time.Millisecond, allow: true}
)

// run is a request for the tick `tick` seconds after noon, from arrived to ended, with a token that grows by the tick.
func run(j job, tick int, arrived, ended float64) rig.Request {
	return rig.Request{Job: j.name, Tick: at(float64(tick)), Kind: "schedule", Token: int64(tick) + 1, Replica: "r1", Arrived: at(arrived), Ended: at(ended)}
}

func judged(j job, runs ...rig.Request) *verdict {
	return judge([]job{j}, runs, at(0), at(3), 100*time.Millisecond)
}

func TestEachTickFiredOnceIsFine(t *testing.T) {
	v := judged(brief, run(brief, 0, .001, .006), run(brief, 1, 1.001, 1.006), run(brief, 2, 2.001, 2.006), run(brief, 3, 3.002, 3.007))
	if !v.fine() || v.ticks != 4 || v.fired != 4 || v.overlapped != 0 || v.early != 0 {
		t.Errorf("got %+v", v)
	}
	if got := quantile(v.delays, 1); got != 2*time.Millisecond {
		t.Errorf("the longest delay is %s, not 2ms", got)
	}
}

func TestATickThatNobodyFiredIsALoss(t *testing.T) {
	v := judged(brief, run(brief, 0, .001, .006), run(brief, 1, 1.001, 1.006), run(brief, 3, 3.002, 3.007))
	if len(v.losses) != 1 || !v.losses[0].tick.Equal(at(2)) || v.fine() {
		t.Errorf("got %+v", v)
	}
}

func TestATickRequestedTwiceOrMoreIsOneDouble(t *testing.T) {
	once := []rig.Request{run(brief, 0, .001, .006), run(brief, 1, 1.001, 1.006), run(brief, 2, 2.001, 2.006), run(brief, 3, 3.002, 3.007)}
	for _, again := range [][]float64{{1.4}, {1.4, 1.6}} {
		runs := once
		for _, arrived := range again {
			runs = append(runs[:len(runs):len(runs)], run(brief, 1, arrived, arrived+.01))
		}
		v := judged(brief, runs...)
		if len(v.doubles) != 1 || !v.doubles[0].tick.Equal(at(1)) || v.fine() || len(v.losses) != 0 {
			t.Errorf("%d requests too many: got %+v", len(again), v)
		}
	}
}

func TestOnlyARunUnderWayExcusesATick(t *testing.T) {
	// The first run lasts until 1.5 and excuses 1; nothing excuses 3.
	v := judged(long, run(long, 0, .001, 1.5), run(long, 2, 2.001, 2.8))
	if v.overlapped != 1 || v.edge != 0 || len(v.losses) != 1 || !v.losses[0].tick.Equal(at(3)) {
		t.Errorf("got %+v", v)
	}
}

func TestARunThatEndedJustBeforeTheTickExcusesItAtTheEdge(t *testing.T) {
	v := judged(long, run(long, 0, .001, .95), run(long, 2, 2.001, 2.85))
	if v.overlapped != 1 || v.edge != 1 || len(v.losses) != 1 {
		t.Errorf("got %+v", v)
	}
}

func TestARunWithoutAnEndIsStillUnderWay(t *testing.T) {
	first := run(long, 0, .001, 0)
	first.Ended = time.Time{}
	if v := judged(long, first); v.overlapped != 3 || len(v.losses) != 0 {
		t.Errorf("got %+v", v)
	}
}

func TestNothingExcusesATickOfAJobWhoseRunsMayLieBesideEachOther(t *testing.T) {
	v := judged(beside, run(beside, 0, .001, 1.5), run(beside, 2, 2.001, 3.5), run(beside, 3, 3.001, 4.5))
	if v.overlapped != 0 || len(v.losses) != 1 || len(v.beside) != 0 {
		t.Errorf("got %+v", v)
	}
}

func TestARunBesideALongOneIsFoundBehindAShortOne(t *testing.T) {
	v := judged(long, run(long, 0, .001, 2.5), run(long, 1, 1.001, 1.1), run(long, 2, 2.2, 2.3), run(long, 3, 3, 3.1))
	if len(v.beside) != 2 || v.fine() {
		t.Errorf("got %+v", v)
	}
}

func TestATokenThatDoesNotGrowIsFound(t *testing.T) {
	same := run(brief, 1, 1.001, 1.006)
	same.Token = 1
	v := judged(brief, run(brief, 0, .001, .006), same, run(brief, 2, 2.001, 2.006), run(brief, 3, 3.002, 3.007))
	if len(v.tokens) != 1 || v.fine() {
		t.Errorf("got %+v", v)
	}
}

func TestWhatIsNoTickOfTheTableIsAStranger(t *testing.T) {
	odd := run(brief, 1, 1.3, 1.31)
	odd.Tick = at(1.25)
	other := run(job{name: "nobody"}, 1, 1, 1)
	v := judged(brief, odd, other, run(brief, 0, 0, 0), run(brief, 1, 1, 1), run(brief, 2, 2, 2), run(brief, 3, 3, 3))
	if len(v.strangers) != 2 || v.fine() {
		t.Errorf("got %+v", v)
	}
}

func TestEarlyAndUnscheduledRunsAreCounted(t *testing.T) {
	caught := run(brief, 2, 2.5, 2.51)
	caught.Kind = "catchup"
	v := judged(brief, run(brief, 0, -.03, -.02), run(brief, 1, .99, 1), caught, run(brief, 3, 3, 3.1))
	if v.early != 2 || v.earliest != 30*time.Millisecond || v.late != 1 || !v.fine() {
		t.Errorf("got %+v", v)
	}
}

func TestTicksAreMultiplesOfThePeriodMovedByTheOffset(t *testing.T) {
	j := job{every: 5 * time.Second, offset: 2 * time.Second}
	got := j.ticks(at(2), at(12))
	if len(got) != 3 || !got[0].Equal(at(2)) || !got[2].Equal(at(12)) {
		t.Errorf("got %v", got)
	}
	if got := j.ticks(at(2.001), at(11.999)); len(got) != 1 || !got[0].Equal(at(7)) {
		t.Errorf("got %v", got)
	}
}
