package model

import (
	"strings"
	"testing"
)

func TestJudgeRefusesWhatSaysNothing(t *testing.T) {
	sound := Result{Complete: true, AtRest: 1, Starts: [maxTicks + 1]int{1: 1, 2: 1}, Applied: Faults{Crash: 1}}
	change := func(f func(*Result)) Result {
		r := sound
		f(&r)
		return r
	}
	world, limit := Scenario{Name: "w", Faults: Faults{Crash: 1}}, Scenario{Name: "w", IsLimit: true}
	for _, x := range []struct {
		name  string
		world Scenario
		r     Result
		want  string // "" = as expected
	}{
		{"sound", world, sound, ""},
		{"no fault struck", world, change(func(r *Result) { r.Applied = Faults{} }), "crash was to strike"},
		{"a tick was never started", world, change(func(r *Result) { r.Starts[2] = 0 }), "T2 was never started"},
		{"never at rest", world, change(func(r *Result) { r.AtRest = 0 }), "never came to rest"},
		{"cut off", world, Result{}, ""},
		{"broken", world, change(func(r *Result) { r.Violation = TickLost; r.Trace = []string{"a step"} }), "tick lost\n    1 a step"},
		{"known limit found", limit, Result{Violation: FiredTwice}, ""},
		{"known limit not found", limit, sound, "known limit was not found"},
	} {
		err := x.world.Judge(x.r)
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", x.name, err, x.want)
		}
	}
}

// A world whose faults cannot strike is searched in no time, and must not count as one that passes.
func TestWorldWithoutItsFaultsIsRefused(t *testing.T) {
	c := Scenario{Name: "restart without a crash", Faults: Faults{Restart: 1}}
	r := Search(c, AllMends, 100_000)
	if r.Violation != None || !r.Complete {
		t.Fatalf("%s, complete %t", r.Violation, r.Complete)
	}
	if err := c.Judge(r); err == nil || !strings.Contains(err.Error(), "restart was to strike") {
		t.Errorf("%v after %d states", err, r.States)
	}
}
