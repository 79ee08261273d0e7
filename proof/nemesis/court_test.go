package nemesis

import (
	"testing"
	"time"
)

func TestADeadRunExcusesTicksUntilItIsTakenOver(t *testing.T) {
	s := newScene(slow)
	s.to = at(7)
	s.run(0, .002, .5, interrupted)
	s.history[0].at = at(4.5)
	s.strike(killed, "r1", .5, 1.2)
	s.fire(5, 6, 7)
	if got := s.judged(t); got.overlaps != 4 || got.takeovers != 1 || got.slowestTakeover != 4*time.Second {
		t.Errorf("got %+v", got)
	}
}

func TestAReplicaThatIsBackInItsPlaceTakesItsOwnRunsOverAtOnce(t *testing.T) {
	for reaped, want := range map[float64][]string{
		.9: nil, 1.4: nil, // before it said that it was ready, and as it did
		1.6: {"taken over late in its place"},
		4.5: {"taken over late in its place"}, // by another one, when the lease was over
		.4:  {"taken over from a replica that nothing had happened to"},
	} {
		s := newScene(again)
		s.to = at(0)
		s.run(0, .002, .5, interrupted)
		s.history[0].at = at(reaped)
		s.strike(crashed, "r1", .5, 1.2)
		next := s.run(0, 6, 6.1, succeeded)
		next.Attempt, next.Kind = 2, "takeover"
		t.Run(at(reaped).Format("05.0"), func(t *testing.T) { s.judged(t, want...) })
	}
	s := newScene(slow)
	s.to = at(0)
	s.run(0, .002, .5, interrupted)
	s.history[0].at = at(.9)
	s.strike(killed, "r1", .5, 1.2) // it is in another place
	s.judged(t, "taken over from a replica that nothing had happened to")
}

func TestARunOfAProcessThatWasDrainedIsNotOfTheOneThatDiedInItsPlace(t *testing.T) {
	s := newScene(brief)
	s.to = at(0)
	s.run(0, .002, .5, interrupted)
	s.history[0].at = at(2)
	s.strike(crashed, "r1", .5, 1.2)
	s.judged(t, "taken over late in its place")
	s.strike(drained, "r1", .1, .4)
	s.judged(t)
}

// A process may claim a tick before it says that it is ready, and die during the run.
func TestARunThatWasUnderWayWhenTheNextProcessWasReadyIsOfThatOne(t *testing.T) {
	for reaped, want := range map[float64][]string{2.6: nil, 3.1: {"taken over late in its place"}} {
		s := newScene(again)
		s.to = at(0)
		s.run(0, .19, 2, interrupted)
		s.history[0].at = at(reaped)
		s.strike(crashed, "r1", .01, .2)
		s.strike(crashed, "r1", 2, 2.7)
		next := s.run(0, 6, 6.1, succeeded)
		next.Attempt, next.Kind = 2, "takeover"
		t.Run(at(reaped).Format("05.0"), func(t *testing.T) { s.judged(t, want...) })
	}
}

func TestACallOfAProcessThatWasStoppedAfterItsLastLookAtTheLeaseIsNoStart(t *testing.T) {
	found := []string{"cut short and not run again", "double", "taken over from a replica that nothing had happened to",
		"token did not grow"}
	for name, c := range map[string]struct {
		from, ended, reaped float64
		want                []string
	}{
		"stopped as it called": {from: .01, ended: 5.002, reaped: 4},
		"not taken over yet":   {from: .01, ended: 5.002, reaped: 5.0015, want: found},
		"stopped before":       {from: -.1, ended: 5.002, reaped: 4, want: found},
		"not cut at once":      {from: .01, ended: 5.3, reaped: 4, want: found},
	} {
		s := newScene(again)
		s.to = at(0)
		held := s.run(0, 5.001, c.ended, interrupted)
		held.Token = at(-.02).UnixMilli()
		s.history[0].at = at(c.reaped)
		s.strike(stopped, "r1", c.from, 5)
		next := s.run(0, 4.1, 4.2, succeeded)
		next.Attempt, next.Kind, next.Replica = 2, "takeover", "r2"
		t.Run(name, func(t *testing.T) { s.judged(t, c.want...) })
	}
}

// The claim is made ahead of the tick, so the process may die between the two, and the next one in its place as well.
func TestARunThatNeverStartedMayBeOfTheProcessThatDiedBefore(t *testing.T) {
	for _, before := range []bool{false, true} {
		s := newScene(again)
		s.to = at(0)
		s.settle(0, 4.5, "lost", interrupted)
		next := s.run(0, 4.6, 4.7, succeeded)
		next.Attempt, next.Kind = 2, "takeover"
		if before {
			s.strike(killed, "r1", -.01, .2)
		}
		s.strike(crashed, "r1", .5, 1.2)
		if before {
			s.judged(t)
		} else {
			s.judged(t, "taken over late in its place")
		}
	}
}

func TestARedisThatIsAwayExcusesThatAReplicaInItsPlaceTookNothingOver(t *testing.T) {
	s := newScene(brief)
	s.to = at(0)
	s.run(0, .002, .5, interrupted)
	s.history[0].at = at(2)
	s.strike(crashed, "r1", .5, 1.2)
	s.judged(t, "taken over late in its place")
	s.strike(away, theRedis, .6, 1.9)
	s.judged(t)
}

func TestARunThatEndedAndWasTakenOverFromAHealthyReplicaIsFound(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2, 3)
	s.history[1].outcome, s.history[1].at = interrupted, at(4.2)
	s.judged(t, "its end was not recorded")
	s.strike(killed, "r1", .3, .8)
	s.strike(refused, "r1", .8, 1.1)
	s.judged(t, "its end was not recorded")
}

func TestALifeThatEndedBeforeARunIsNotItsDeath(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2)
	s.run(3, 3.002, 5.5, interrupted)
	s.history[3].at = at(10)
	s.strike(killed, "r1", 2.5, 3.01) // that it is back was seen a moment late
	s.strike(killed, "r1", 5.5, 6)
	if got := s.judged(t); got.slowestTakeover != 4500*time.Millisecond {
		t.Errorf("got %+v", got)
	}
}

// TestAKillIsOnRecordAMomentBeforeItIsDone: what its replica managed to send until then arrives later.
func TestAKillIsOnRecordAMomentBeforeItIsDone(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2)
	s.run(3, 3.06, 3.1, interrupted)
	s.history[3].at = at(6)
	s.strike(killed, "r1", 3, 4)
	if got := s.judged(t); got.takeovers != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestAStrikeThatALeaseOutlivesIsNotTheDeathOfItsRun(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2)
	s.run(3, 3.002, 6, interrupted)
	s.history[3].at = at(10)
	s.strike(cut, "r1", 3.1, 3.8)
	s.judged(t, "taken over late")
	s.strike(cut, "r1", 5.5, 11)
	if got := s.judged(t); got.slowestTakeover != 4500*time.Millisecond {
		t.Errorf("got %+v", got)
	}
}

// A strike that may end a lease does not always. The run died of the next one if its caller waited until then.
func TestARunThatWentOnAfterAStrikeDiedOfTheNextOne(t *testing.T) {
	for _, h := range []harm{stopped, cut} {
		for name, c := range map[string]struct {
			arrived, from, to, ended, next, reaped float64
			late                                   bool
		}{
			"struck at its claim":       {2.3, -.002, 2.301, 5, 5, 8.5, false},
			"struck while at work":      {.002, 1, 3.2, 5, 5, 8.5, false},
			"late after the next one":   {2.3, -.002, 2.301, 5, 5, 11.2, true},
			"its caller went at once":   {2.3, -.002, 2.301, 2.35, 5, 8.5, true},
			"its caller went meanwhile": {.002, 1, 3.2, 3, 5, 8.5, true},
			"its caller went between":   {.002, 1, 3.2, 4.9, 5, 8.5, true},
			"the next one came at once": {.002, 1, 3.2, 3.3, 3.3, 7.5, true},
			"the next one came before":  {.002, 1, 5.2, 5, 5, 8.5, true},
		} {
			s := newScene(rare)
			s.to = at(0)
			s.run(0, c.arrived, c.ended, interrupted).Token = at(-.012).UnixMilli()
			s.history[0].at = at(c.reaped)
			s.strike(h, "r1", c.from, c.to)
			s.strike(refused, "r1", 3.6, 3.7) // of its app alone
			s.strike(killed, "r1", c.next, c.next+.5)
			var want []string
			if c.late {
				want = []string{"taken over late"}
			}
			t.Run(string(h)+" "+name, func(t *testing.T) {
				if got := s.judged(t, want...); !c.late && got.slowestTakeover != 3500*time.Millisecond {
					t.Errorf("got %+v", got)
				}
			})
		}
	}
}

func TestARunThatNeverStartedDiedWithTheLastStrikeThatCanBeTheCause(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 2, 3)
	s.settle(1, 12, "x", interrupted)
	s.strike(killed, "r1", 1.5, 2)
	s.strike(killed, "r1", 7.5, 8)
	s.strike(killed, "r1", 11.5, 12)
	if got := s.judged(t); got.slowestTakeover != 4500*time.Millisecond {
		t.Errorf("got %+v", got)
	}
}

func TestALateTakeoverIsFoundUnlessRedisWasAway(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2)
	s.run(3, 3.002, 3.1, interrupted)
	s.history[3].at = at(12)
	s.strike(killed, "r1", 3.1, 4)
	s.judged(t, "taken over late")
	s.strike(away, theRedis, 4, 7)
	s.judged(t)
}

func TestATakeoverIsNotLateWhileNoReplicaLivesLongEnoughToNotice(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2)
	s.run(3, 3.002, 3.1, interrupted)
	s.history[3].at = at(12)
	s.strike(killed, "r1", 3.1, 4)
	s.strike(cut, "r2", 7, 8)
	s.strike(stopped, "r1", 8, 9)
	s.judged(t)
	s.replicas = append(s.replicas, "r3")
	s.judged(t, "taken over late")
}

func TestARunLostWithRedisIsNoTakeoverFromTheHealthy(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2)
	s.run(3, 3.002, 3.1, interrupted)
	s.history[3].at = at(10)
	s.strike(away, theRedis, 3.05, 6)
	if got := s.judged(t); got.takeovers != 1 || got.slowestTakeover != 0 {
		t.Errorf("got %+v", got)
	}
}

// A run that is under way a lease after Redis was back has renewed its lease since then.
func TestARunThatOutlivedARedisThatWasAwayDiedOfTheNextTime(t *testing.T) {
	for name, c := range map[string]struct {
		ended, reaped float64
		late          bool
	}{
		"under way at the next time": {8, 13.5, false},
		"late after the next time":   {8, 16.1, true},
		"it had ended before":        {5, 13.5, true},
	} {
		s := newScene(rare)
		s.to = at(0)
		s.run(0, .002, c.ended, interrupted).Left = false
		s.history[0].at = at(c.reaped)
		s.strike(away, theRedis, .3, .9)
		s.strike(away, theRedis, 7.5, 10)
		var want []string
		if c.late {
			want = []string{"taken over late"}
		}
		t.Run(name, func(t *testing.T) { s.judged(t, want...) })
	}
}

func TestATakeoverIsMeasuredWithoutTheTimeOfAnOutage(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2)
	s.run(3, 3.002, 3.1, interrupted)
	s.history[3].at = at(10)
	s.strike(killed, "r1", 3.1, 4)
	s.strike(away, theRedis, 5, 7.5)
	if got := s.judged(t); got.slowestTakeover != 4400*time.Millisecond {
		t.Errorf("got %+v", got)
	}
}

func TestARunIsSettledOnce(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2, 3)
	s.settle(3, 3.5, "d", interrupted)
	s.judged(t, "settled other than once")
	s.history = s.history[:3]
	s.judged(t, "settled other than once")
}

func TestRunsBesideEachOtherAreFound(t *testing.T) {
	s := newScene(slow)
	s.run(0, .002, 2.5, succeeded)
	s.run(2, 2.002, 2.3, succeeded)
	s.run(3, 3.002, 3.3, succeeded)
	s.judged(t, "beside another run")
	s.strike(killed, "r1", .1, 1) // a dead replica's call does not go on
	s.judged(t, "beside another run")
}

func TestOnlyAReplicaThatWasStoppedForALeaseMayRunOn(t *testing.T) {
	s := newScene(job{name: "slow", every: 5 * time.Second})
	s.run(0, .002, 6, succeeded)
	s.run(5, 5, 5.1, succeeded)
	s.strike(stopped, "r1", 4, 6)
	s.judged(t, "beside another run")
	s.record.strikes[0].from = at(1)
	s.judged(t)
}

func TestATokenThatDoesNotGrowIsFound(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2, 3)
	s.requests[3].Token = s.requests[2].Token
	s.judged(t, "token did not grow")
}

func TestARunBesideALongOneIsFoundBehindAShortOne(t *testing.T) {
	s := newScene(slow)
	s.run(0, .002, 2.5, succeeded)
	s.run(1, 1.002, 1.1, succeeded)
	s.run(2, 2.2, 2.3, succeeded)
	s.fire(3)
	s.judged(t, "beside another run", "beside another run")
}

func TestTokensGrowAmongRunsBesideEachOtherOnceOneHasArrivedBeforeTheTickOfAnother(t *testing.T) {
	s := newScene(job{name: "beside", every: time.Second, allow: true})
	s.run(0, .002, 2, succeeded)
	s.run(1, 1.002, 2, succeeded)
	s.run(2, 2.002, 3, succeeded)
	s.run(3, 3.002, 4, succeeded)
	s.requests[1].Arrived = at(1.9) // perhaps later than the next one was claimed
	s.requests[2].Token = s.requests[1].Token
	s.judged(t)
	s.requests[1].Arrived = at(1.6)
	s.judged(t, "token did not grow")
}

func TestAReplicaThatFollowsItsOwnClockMayBeEarlyByHalfAPeriod(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2)
	s.run(3, 2.3, 2.4, succeeded)
	s.judged(t, "no tick of the job")
	s.local = true
	s.judged(t)
	s.requests[3].Arrived = at(2.1)
	s.judged(t, "no tick of the job")
}

func TestWhatIsNoTickOfTheTableIsFound(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 1, 2, 3, 2.5)
	s.judged(t, "no tick of the job")
	s = newScene(brief)
	s.fire(0, 1, 2, 3)
	s.requests[3].Arrived = at(2.5)
	s.judged(t, "no tick of the job")
	s = newScene(brief)
	s.fire(0, 1, 2, 3)
	s.requests[0].Job, s.history[0].job = "nobody", "nobody"
	s.judged(t, "lost", "no job of the table")
}

func TestARefusedTickIsLostUnlessItIsHandedOver(t *testing.T) {
	s := newScene(brief)
	s.strike(refused, "r1", -1, 9)
	s.fire(0, 1, 3)
	s.settle(2, 2.01, "x", handedOver)
	s.judged(t, "lost")
	q := s.run(2, 2.05, 2.06, succeeded)
	q.Kind = "handover"
	if got := s.judged(t); got.handovers != 1 || got.slowestHandover != 40*time.Millisecond {
		t.Errorf("got %+v", got)
	}
}
