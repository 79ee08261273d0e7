package nemesis

import (
	"slices"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func at(s float64) time.Time { return noon.Add(time.Duration(s * float64(time.Second))) }

// each second from noon to three seconds later: 4 ticks.
var (
	brief = job{name: "brief", every: time.Second}
	slow  = job{name: "slow", every: time.Second, take: 1500 * time.Millisecond}
	again = job{name: "again", every: time.Second, again: true}
	rare  = job{name: "rare", every: 10 * time.Second}
)

// scene is what the tests tell the judge.
type scene struct {
	trial
	job job
}

func newScene(j job) *scene {
	return &scene{job: j, trial: trial{jobs: []job{j}, replicas: []string{"r1", "r2"}, from: at(0), to: at(3),
		record: &record{phases: []phase{{"faults", at(-10)}}}}}
}

// run is a run of r1 for a tick, in seconds after noon, from its arrival to its answer, and settled by that outcome
// then.
func (s *scene) run(tick, arrived, ended float64, outcome string) *rig.Request {
	id := string(rune('a' + len(s.requests)))
	s.requests = append(s.requests, rig.Request{Job: s.job.name, Tick: at(tick), Run: id, Kind: "schedule", Attempt: 1, Token: at(arrived).UnixMilli(),
		Replica: "r1", Arrived: at(arrived), Ended: at(ended), Left: outcome == interrupted})
	s.settle(tick, ended+.001, id, outcome)
	return &s.requests[len(s.requests)-1]
}

func (s *scene) settle(tick, when float64, id, outcome string) *entry {
	s.history = append(s.history, entry{at: at(when), job: s.job.name, tick: at(tick), run: id, replica: "r1", kind: "schedule", attempt: 1, outcome: outcome})
	return &s.history[len(s.history)-1]
}

// fire fires ticks as it should be.
func (s *scene) fire(ticks ...float64) {
	for _, t := range ticks {
		s.run(t, t+.002, t+.004, succeeded)
	}
}

func (s *scene) strike(h harm, target string, from, to float64) {
	s.record.strikes = append(s.record.strikes, strike{h, target, at(from), at(to)})
}

// judged compares the findings with those that are wanted, and returns the tally.
func (s *scene) judged(t *testing.T, want ...string) *tally {
	t.Helper()
	v := judge(s.trial)
	var got []string
	for _, f := range v.findings {
		got = append(got, f.what)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	return v.of("faults")
}

func TestEachTickFiredOnceIsFine(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2, 3)
	if got := s.judged(t); got.ticks != 4 || got.fired != 4 {
		t.Errorf("got %+v", got)
	}
}

func TestATickThatNobodyFiredIsLost(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 3)
	if got := s.judged(t, "lost"); got.lost != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestATickFiredTwiceIsADouble(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2, 3)
	s.strike(killed, "r1", 1.9, 2.2)              // excuses no double
	for _, arrived := range []float64{2.5, 2.7} { // a third time is the same double
		s.run(2, arrived, arrived+.1, succeeded)
		if got := s.judged(t, "double"); got.doubles != 1 {
			t.Errorf("got %+v", got)
		}
	}
}

func TestATickThatDoesNotCountMustNotBeFiredTwiceEither(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2, 3, 4)
	s.run(4, 4.5, 4.6, succeeded)
	if got := s.judged(t, "double"); got.ticks != 4 {
		t.Errorf("got %+v", got)
	}
}

func TestARedisThatForgetsTurnsDoublesIntoALimit(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2, 3)
	s.run(2, 2.5, 2.6, succeeded)
	s.memory = forgets
	if got := s.judged(t); got.doubles != 1 || got.limits != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestARunUnderWayExcusesATick(t *testing.T) {
	s := newScene(slow)
	s.run(0, .002, 1.502, succeeded)
	s.run(2, 2.002, 3.502, succeeded)
	if got := s.judged(t); got.overlaps != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestARunThatEndedJustBeforeATickExcusesIt(t *testing.T) {
	for ended, want := range map[float64][]string{.75: nil, .65: {"lost"}} {
		s := newScene(slow)
		s.run(0, .002, ended, succeeded)
		s.fire(2, 3)
		s.judged(t, want...)
	}
}

func TestARunWithoutAnEndIsStillUnderWay(t *testing.T) {
	runs := join([]rig.Request{{Run: "a", Arrived: at(0)}, {Run: "a", Attempt: 2, Arrived: at(1), Ended: at(2)}}, nil, at(9))
	if len(runs) != 2 || !runs[0].ended.Equal(at(9)) || !runs[1].ended.Equal(at(2)) {
		t.Errorf("got %+v", runs)
	}
}

func TestARunUnderWayExcusesNothingWhereRunsMayLieBesideEachOther(t *testing.T) {
	s := newScene(job{name: "beside", every: time.Second, allow: true})
	s.run(0, .002, 1.5, succeeded)
	s.run(2, 2.002, 3.5, succeeded)
	s.run(3, 3.002, 4.5, succeeded)
	s.judged(t, "lost")
}

func TestAClaimantThatWasHeldUpBeforeTheStartOverlapsTheNextTick(t *testing.T) {
	s := newScene(brief)
	s.fire(0)
	s.run(1, 2.7, 2.702, succeeded)
	s.fire(3)
	s.judged(t, "lost", "started although a newer tick was due")
	s.strike(stopped, "r1", .99, 2.7)
	if got := s.judged(t); got.overlaps != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestARunThatEndedExcusesNoLaterTick(t *testing.T) {
	s := newScene(slow)
	s.run(0, .002, .5, succeeded)
	s.fire(2, 3)
	s.judged(t, "lost")
}

func TestOnlyAStrikeExplainsARunThatWasSettledLate(t *testing.T) {
	s := newScene(slow)
	s.run(0, .002, .5, succeeded)
	s.history[0].at = at(2.5)
	s.fire(3)
	s.judged(t, "lost", "lost")
	s.strike(cut, "r1", .4, 2.3)
	s.judged(t)
}

func TestAClaimantThatDiedBeforeTheStartExcusesItsTick(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 2, 3)
	s.settle(1, 1.7, "x", interrupted)
	s.history[3].at = at(4)
	s.strike(killed, "r1", -9, -8)
	s.judged(t, "lost", "taken over from a replica that nothing had happened to")
	s.strike(killed, "r1", .99, 2)
	if got := s.judged(t); got.interrupted != 1 || got.takeovers != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestAClaimantThatDiedBeforeTheStartExcusesNoTickThatIsToBeRunAgain(t *testing.T) {
	s := newScene(job{name: "again", every: time.Second, again: true, allow: true})
	s.fire(0, 2, 3)
	s.settle(1, 4, "x", interrupted)
	s.strike(killed, "r1", .99, 2)
	s.judged(t, "lost")
}

func TestATickGivenBackByAStruckClaimantIsExcusedOnceTheNextIsDue(t *testing.T) {
	for _, j := range []job{brief, again} {
		s := newScene(j)
		s.fire(0, 2, 3)
		s.settle(1, 2.1, "x", notStarted)
		s.judged(t, "lost")
		s.strike(stopped, "r1", .99, 2.05)
		if got := s.judged(t); got.interrupted != 1 {
			t.Errorf("got %+v", got)
		}
		s.history[3].at = at(1.99) // no time to hand it over
		if got := s.judged(t); got.interrupted != 1 {
			t.Errorf("got %+v", got)
		}
		s.history[3].at = at(1.6) // there was
		s.judged(t, "lost")
	}
}

func TestARunThatWasCutShortIsRunAgain(t *testing.T) {
	s := newScene(again)
	s.fire(0, 1, 2)
	s.run(3, 3.002, 3.1, interrupted)
	s.history[3].at = at(6.9)
	s.strike(killed, "r1", 3.1, 4)
	s.judged(t, "cut short and not run again")
	next := s.run(3, 7, 7.1, succeeded)
	next.Attempt, s.history[4].attempt = 2, 2
	if got := s.judged(t); got.takeovers != 1 || got.slowestTakeover != 3900*time.Millisecond {
		t.Errorf("got %+v", got)
	}
}

func TestARunThatWasNotCutShortIsNotRunAgain(t *testing.T) {
	s := newScene(again)
	s.fire(0, 1, 2, 3)
	next := s.run(3, 7, 7.1, succeeded)
	next.Attempt, s.history[4].attempt = 2, 2
	s.judged(t, "double")
	s.history[3].outcome, s.history[3].at = interrupted, at(6.9) // its end was not recorded
	s.strike(killed, "r1", 3.003, 4)
	s.judged(t)
}

func TestUnderAtMostOnceThereIsNoSecondAttempt(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2)
	s.run(3, 3.002, 3.1, interrupted)
	s.history[3].at = at(6.9)
	s.strike(killed, "r1", 3.1, 4)
	next := s.run(3, 7, 7.1, succeeded)
	next.Attempt, s.history[4].attempt = 2, 2
	s.judged(t, "double")
}

func TestAnAttemptIsMadeOnce(t *testing.T) {
	s := newScene(again)
	s.fire(0, 1, 2)
	s.run(3, 3.002, 3.1, interrupted)
	s.history[3].at = at(6.9)
	s.strike(killed, "r1", 3.1, 4)
	s.run(3, 7, 7.1, succeeded)
	s.judged(t, "double")
}

func TestAnOutageExcusesTicksThatHaveNoTimeLeft(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 3)
	s.strike(killed, "r1", .5, 1.5)
	s.judged(t, "lost", "lost") // r2 was there
	s.strike(killed, "r2", .7, 1.2)
	if got := s.judged(t); got.outages != 1 || got.excused != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestATickOfAnOutageIsCaughtUpWhenThereIsTime(t *testing.T) {
	s := newScene(rare)
	s.to = at(19)
	s.fire(10)
	s.strike(away, theRedis, -1, 1)
	s.judged(t, "lost")
	s.record.strikes[0].to = at(6.5)
	s.judged(t)
	s.run(0, 7, 7.1, succeeded)
	s.judged(t)
}

func TestAClaimThatWasCutOffFromItsAnswerExcusesTicksForALease(t *testing.T) {
	s := newScene(brief)
	s.to = at(5)
	s.fire(0, 5)
	s.judged(t, "lost", "lost", "lost", "lost")
	s.strike(cut, "r1", 1.05, 2)
	if got := s.judged(t); got.interrupted != 1 || got.overlaps != 3 {
		t.Errorf("got %+v", got)
	}
	s.to = at(6)
	s.judged(t, "lost")
	s.run(1, 1.2, 1.21, succeeded) // it was heard
	s.judged(t, "lost", "lost", "lost", "lost")
}

func TestACallThatMetAClosingDoorMayHaveStarted(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 3)
	s.settle(2, 2.01, "x", failed)
	s.judged(t, "lost")
	s.strike(cut, "r1", 2.005, 2.006)
	s.judged(t, "lost")
	s.strike(refused, "r1", 2.005, 4)
	if got := s.judged(t); got.excused != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestTheFirstOfSomeAttemptsMayHaveStarted(t *testing.T) {
	s := newScene(rare)
	e := s.settle(0, 2.5, "x", failed)
	s.strike(refused, "r1", -.005, 4)
	s.judged(t, "lost")
	e.attempt = 4
	if got := s.judged(t); got.excused != 1 {
		t.Errorf("got %+v", got)
	}
	s.record.strikes[0].from = at(-1)
	s.judged(t, "lost")
}

// TestATickThatWaitsForADeadRunIsNotLate: under Queue it begins when the run is taken over, whichever apps refuse
// meanwhile.
func TestATickThatWaitsForADeadRunIsNotLate(t *testing.T) {
	for ends, want := range map[string][]string{succeeded: {"started late"}, interrupted: nil} {
		s := newScene(job{name: "queue", every: 10 * time.Second, take: 200 * time.Millisecond, queue: true})
		s.replicas = append(s.replicas, "r3")
		s.from, s.to = at(0), at(10)
		first := s.run(0, 8.5, 8.7, ends)
		first.Kind = "catchup"
		if ends == interrupted {
			s.strike(killed, "r1", 8.699, 8.9)
			s.history[0].at = at(12.8)
		}
		s.strike(refused, "r2", 9.9, 15)
		s.run(10, 12.9, 13.1, succeeded).Replica = "r3"
		s.history[1].replica = "r3"
		s.judged(t, want...)
	}
}

func TestAStrikeOnAnotherReplicaExcusesNothing(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 2, 3)
	s.settle(1, 1.7, "x", interrupted)
	s.strike(killed, "r2", .99, 2)
	s.judged(t, "lost", "taken over from a replica that nothing had happened to")
}

func TestATickRefusedBehindAStruckClaimantIsExcusedOnceTheNextIsDue(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 3)
	s.settle(1, 3.05, "x", notStarted)
	s.judged(t, "lost", "lost")
	s.strike(stopped, "r1", .99, 3.02)
	if got := s.judged(t); got.interrupted != 1 || got.excused != 1 {
		t.Errorf("got %+v", got)
	}
	s.history[2].at = at(2.5) // there was time to fire it
	s.judged(t, "lost")
}

// TestATickWhoseClaimantStoodStillUntilTheNextOneIsDueIsInterrupted: it gives the claim back when it goes on, and the
// next one takes its place.
func TestATickWhoseClaimantStoodStillUntilTheNextOneIsDueIsInterrupted(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 3)
	s.strike(stopped, "r1", 2.02, 2.9)
	s.judged(t, "lost")
	s.record.strikes[0].to = at(3.4)
	if got := s.judged(t); got.interrupted != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestATickBehindAnOlderOneThatWasHandedOnIsExcusedOnceTheNextIsDue(t *testing.T) {
	for _, c := range []struct {
		kind string
		ends float64
		want []string
	}{
		{"handover", 2.1, nil},
		{"handover", 1.6, []string{"lost"}}, // it ended in time for the tick
		{"catchup", 2.1, []string{"lost"}},
	} {
		s := newScene(again)
		s.strike(drained, "r1", 0.5, 0.6)
		late := s.run(0, 1.2, c.ends, succeeded)
		late.Kind = c.kind
		s.fire(2.2, 3)
		s.requests[1].Tick, s.history[1].tick = at(2), at(2)
		s.judged(t, c.want...)
	}
}
