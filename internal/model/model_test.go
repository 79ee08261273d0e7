package model

import (
	"math/bits"
	"strings"
	"testing"

	"github.com/solotick/solotick/internal/testing/results"
)

func world(t *testing.T, name string) Scenario {
	t.Helper()
	for _, c := range Pairs() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no world %q", name)
	return Scenario{}
}

func TestSmallWorldsBreakNoPromise(t *testing.T) {
	complete := 0
	t.Run("worlds", func(t *testing.T) {
		for _, c := range Small() {
			t.Run(c.Name, func(t *testing.T) {
				r := Search(c, AllMends, bound)
				if err := c.Judge(r); err != nil {
					t.Fatal(err)
				}
				if !r.Complete && !c.IsLimit && !underRace {
					t.Fatalf("not searched in full: %d states", r.States)
				}
				if r.Complete {
					complete++
				}
				t.Logf("%d states, %d at rest, %d steps deep", r.States, r.AtRest, r.Depth)
			})
		}
	})
	if complete == 0 {
		t.Error("no world was searched in full")
	}
}

// counterexamples says where the lack of each mend shows, and as what. LateFinish is not among them: see
// TestLateFinishSavesReruns.
var counterexamples = []struct {
	mend  Mend
	world string
	as    Violation
}{
	{DueBypass, "handover/alone stray2", TickLost},
	{NoEarly, "forbid/amo crash+extend", TickLost},
	{SameAnswer, "forbid/alo stray+stall", RunsOverlap},
	{Refresh, "forbid/alo stray+stall", RunsOverlap},
	{PerRun, "allow/alo crash+extend", RunLost},
	{Pend, "handover/1other crash", TickLost},
	{Abandon, "queue/amo crash+stall", TickLost},
	{Requeue, "theft/forbid/alo extend2", RunLost},
	{SoftReplace, "replace/amo crash+stall", RunsOverlap},
	{GapInClaim, "all/amo late crash+loss", NoFate},
	{Nonce, "handover/2 cannot", TickLost},
	{Settle, "clockjump/amo", FreedBeside},
	{Born, "flush/amo", FiredTwice},
	{LateEvidence, "forbid/amo crash+stall", TickLost},
	{OneRerun, "forbid/alo/T1 crash+stall", AttemptTwice},
	{GapBehind, "all/amo/R1 T3 refusal", NoFate},
	{NotYet, "early/forbid/alo crash+stall", OverlapToCome},
	{NotYet, "early/replace/amo crash+extend", StoppedForNothing},
	{BornAhead, "early/flush/amo", FiredTwice},
	{Respect, "theft/forbid/alo extend2", ForeignLock},
	{AllRuns, "rollout/allow+forbid/amo crash", RunsOverlap},
	{WaitForAll, "rollout/allow+queue/amo T3 crash", FreedBeside},
	{StopRuns, "reload/replace+allow/amo T3 extend", StoppedForNothing},
	{OneWaits, "reap/queue crash", QueueFreed},
	{Lived, "reap/forbid crash+extend", OverlapFreed},
	{BeganBefore, "handover/alone", OverlapBefore},
	{Superseded, "freeze/forbid", LateClaim},
	{Gaps, "fates/forbid crash", NoFate},
	{OutOfBehind, "rollout/forbid+allow/amo crash", SkippedAndFired},
	{Look, "slot/forbid", TickLost},
	{DropCounts, "drop/forbid crash+refusal", NoFate},
	{Memo, "memo/allow stall2", TickLost},
	{DueWaits, "overtaken/queue", QueueTwice},
	{Cancel, "cancel/forbid/amo/T1 stall+stray", CancelledAgain},
	{Cancel, "cancel/forbid/alo/T1 crash+extend", CancelledAgain},
	{Cancel, "cancel/forbid/amo/T1 refusal", CancelledAgain},
	{Named, "cancel/forbid/amo extend", StoppedForNothing},
	{SoftCancel, "cancel/forbid/amo extend", RunsOverlap},
	{AskedOnce, "rerun/forbid/amo", FiredTwice},
	{HandWaits, "rerun/forbid/amo", RunsOverlap},
	{HandWaits, "rerun/allow/amo/T1 crash", TickBeside},
	{HandAside, "rerun/queue/R1 T3", PlaceTaken},
	{Place, "instance/forbid/alo/T1 crash+restart", RunsOverlap},
	{Place, "forbid/amo crash+restart", FreedBeside},
	{SameEnd, "latereap/forbid/alo/T1 stall", RunsOverlap},
	{SameEnd, "latereap/forbid/amo stall", FreedBeside},
	{Sightings, "latereap/forbid/alo/T1 stall", RunsOverlap},
	{Owner, "lease/stall+extend", RunsOverlap},
	{Owner, "lease/T3 stray", RunsOverlap},
	{Alone, "lease/crash+restart", RunsOverlap},
	{Alone, "asked/forbid crash+restart", FreedBeside},
	{Unbegun, "asked/forbid gone", OverlapUnbegun},
	{Unbegun, "handover/alone", OverlapUnbegun},
}

func TestEachMendLeftOutIsFound(t *testing.T) {
	run := results.Of(t, "go test ./internal/model -run TestEachMendLeftOutIsFound")
	listed, found, states := LateFinish, 0, 0
	for _, x := range counterexamples {
		listed |= x.mend
		t.Run(x.mend.String(), func(t *testing.T) {
			r := Search(world(t, x.world), AllMends&^x.mend, 200_000)
			if r.Violation != x.as {
				t.Fatalf("without: %s\nin %s: %s, and not %s; %d states\n%s", x.mend.Means(), x.world, r.Violation, x.as, r.States,
					r.Counterexample())
			}
			found, states = found+1, states+r.States
			t.Logf("%s, after %d states: %s\n%s", x.world, r.States, r.Violation, r.Counterexample())
		})
	}
	if listed != AllMends {
		t.Errorf("no counterexample is named for every mend: %b of %b", listed, AllMends)
	}
	run.Add(bits.OnesCount64(uint64(listed&^LateFinish)), "rules left out")
	run.Add(len(counterexamples), "broken promises expected")
	run.Add(found, "found")
	run.Add(states, "states")
}

// No promise breaks without LateFinish: at-least-once may run a tick again. It saves those that are known to be
// needless.
func TestLateFinishSavesReruns(t *testing.T) {
	c := world(t, "forbid/alo/T1 crash+stall")
	with, without := Search(c, AllMends, 200_000), Search(c, AllMends&^LateFinish, 200_000)
	if with.Violation != None || without.Violation != None || !with.Complete || !without.Complete {
		t.Fatalf("with: %s, complete %t; without: %s, complete %t", with.Violation, with.Complete, without.Violation, without.Complete)
	}
	if with.Needless != 0 || without.Needless == 0 {
		t.Errorf("runs that stayed due after their finish: %d with LateFinish, %d without", with.Needless, without.Needless)
	}
}

func TestFinishAfterTakeoverTakesTheRerunBack(t *testing.T) {
	for _, mends := range []Mend{AllMends, AllMends &^ LateFinish} {
		m := newModel(Scenario{AtLeastOnce: true}, mends)
		s := m.initial()
		s.now = 1
		u := newUUID(0, 0, 0)
		if a := m.acquire(&s, claim{uuid: u, tick: 1, inTime: true}); a != answerWon {
			t.Fatalf("the claim of a free tick: %s", a)
		}
		m.reap(&s, 0)
		if s.redis.findDue(1, 1, u) < 0 {
			t.Fatal("the takeover did not make the next attempt due")
		}
		if a := m.finish(&s, stray{uuid: u, tick: 1, outcome: completed}); a != answerLost {
			t.Errorf("the finish after it: %s", a)
		}
		if due := s.redis.findDue(1, 1, u) >= 0; due != (mends != AllMends) {
			t.Errorf("LateFinish %t: still due is %t", mends == AllMends, due)
		}
	}
}

// Without waitReplicas a failover can forget a claim: a limit that is known, and stated in the guarantees.
func TestFailoverWithoutWaitFiresTwice(t *testing.T) {
	c := world(t, "failover/nowait (known limit)")
	r := Search(c, AllMends, 100_000)
	if r.Violation != FiredTwice {
		t.Fatalf("the known limit was not found: %s, %d states", r.Violation, r.States)
	}
	told := r.Counterexample()
	if strings.Count(told, "STARTS the job for T1") != 2 || !strings.Contains(told, "FAILS OVER") || !strings.Contains(told, "=> tick fired twice") {
		t.Errorf("the counterexample does not tell how:\n%s", told)
	}
	c.WaitReplicas = true
	if r := Search(c, AllMends, 100_000); r.Violation != None || !r.Complete {
		t.Errorf("with waitReplicas: %s, complete %t\n%s", r.Violation, r.Complete, r.Counterexample())
	}
}
