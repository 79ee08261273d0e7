package series

import (
	"testing"

	"github.com/solotick/solotick/internal/testing/results"
)

func world(t *testing.T, name string) World {
	t.Helper()
	for _, w := range Worlds() {
		if w.Name == name {
			return w
		}
	}
	t.Fatalf("there is no world %q", name)
	return World{}
}

func TestWorldsOfTimersBreakNoPromise(t *testing.T) {
	run := results.Of(t, "go test ./internal/model/series -run TestWorldsOfTimersBreakNoPromise")
	var all []Result
	for _, w := range Worlds() {
		t.Run(w.Name, func(t *testing.T) {
			r := Search(w, AllRules, bound)
			if err := w.Judge(r); err != nil && !underRace {
				t.Fatal(err)
			}
			if !r.Complete && w.Limit == None && !underRace {
				t.Fatalf("not searched in full: %d states", r.States)
			}
			t.Logf("%d states, %d at rest, %d steps deep: %s\n%s", r.States, r.AtRest, r.Depth, r.Violation, r.Counterexample())
			all = append(all, r)
		})
	}
	states, deepest, complete, limits := 0, 0, 0, 0
	var heard [kindsOfAnswer]int
	for _, r := range all {
		states += r.States
		deepest = max(deepest, r.Depth)
		if r.Complete {
			complete++
		}
		if r.Violation != None {
			limits++
		}
		for a, n := range r.Answers {
			heard[a] += n
		}
	}
	for a := set; a < kindsOfAnswer; a++ {
		if heard[a] == 0 {
			t.Errorf("no script answered %s", a)
		}
	}
	run.Add(len(all), "worlds")
	run.Add(states, "states")
	run.Add(deepest, "steps at most")
	run.Add(complete, "worlds in full")
	run.Add(limits, "known limits found")
}

// counterexamples says where the lack of each rule shows, and as what.
var counterexamples = []struct {
	rule  Rule
	world string
	as    Violation
}{
	{AskedOnce, "lost/callers", SetAgain},
	{Window, "once/each", OldDefinition},
	{Wait, "once/each", OldDefinition},
	{Keep, "crash/changed", NoFate},
	{Newest, "changed", LeftDue},
	{MarkNewest, "lost/callers", LeftDue},
	{OldMember, "changed/back", Leftover},
	{TakenBack, "deleted", LeftDue},
	{Member, "emptied/changed", EndedEarly},
	{MemberCopy, "emptied/changed", EndedEarly},
	{Past, "changed/back", TwoFates},
	{GivesWay, "alone", Blocked},
	{ReplacedTold, "alone", NoFate},
	{Overlap, "alone", Beside},
	{MissedTold, "alone", NoFate},
	{OfBefore, "crash/changed", NoFate},
	{MissedFrom, "changed/back", TwoFates},
	{EndedMark, "crash/deleted", LeftDue},
	{Weighed, "alone", WrongBytes},
	{OwnEntry, "crash/deleted", WrongRequest},
	{Forget, "alone", Leftover},
}

func TestEachRuleOfTimersLeftOutIsFound(t *testing.T) {
	run := results.Of(t, "go test ./internal/model/series -run TestEachRuleOfTimersLeftOutIsFound")
	listed, found, states := Rule(0), 0, 0
	for _, x := range counterexamples {
		listed |= x.rule
		t.Run(x.rule.String(), func(t *testing.T) {
			r := Search(world(t, x.world), AllRules&^x.rule, 100_000)
			if r.Violation != x.as {
				t.Fatalf("without: %s\nin %s: %s, and not %s; %d states\n%s", x.rule.Means(), x.world, r.Violation, x.as, r.States,
					r.Counterexample())
			}
			found, states = found+1, states+r.States
			t.Logf("%s, after %d states: %s\n%s", x.world, r.States, r.Violation, r.Counterexample())
		})
	}
	if listed != AllRules {
		t.Errorf("no counterexample is named for every rule: %b of %b", listed, AllRules)
	}
	run.Add(len(counterexamples), "rules left out")
	run.Add(found, "found")
	run.Add(states, "states")
}

// A search in which nothing happened is not one that passes.
func TestHollowSearchesFail(t *testing.T) {
	full := Result{Complete: true, AtRest: 1, Started: 1}
	for what, x := range map[string]struct {
		world  World
		result Result
	}{
		"no fault":     {World{Faults: Faults{Crash: 1}}, full},
		"no start":     {World{}, Result{Complete: true, AtRest: 1}},
		"no rest":      {World{}, Result{Complete: true, Started: 1}},
		"a violation":  {World{}, Result{Violation: Beside}},
		"no violation": {World{Limit: Beside}, full},
		"another one":  {World{Limit: Beside}, Result{Violation: LeftDue}},
	} {
		if x.world.Judge(x.result) == nil {
			t.Errorf("%s passes", what)
		}
	}
	if err := (World{}).Judge(full); err != nil {
		t.Error(err)
	}
}
