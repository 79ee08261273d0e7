package series

import "fmt"

// Worlds are all: each is searched in full within seconds.
func Worlds() []World {
	type requests = [callers][]definition
	worlds := []World{
		{Name: "alone", Ticks: 4, Callers: requests{{each}}},
		{Name: "deleted", Ticks: 3, Callers: requests{{each, none}}},
		{Name: "changed", Ticks: 3, Callers: requests{{each, even, none}}},
		{Name: "changed/back", Ticks: 4, Callers: requests{{even, each}}},
		{Name: "the same", Ticks: 3, Callers: requests{{each, each, none}}},
		{Name: "deleted/set", Ticks: 3, Callers: requests{{each, none, each}}},
		{Name: "once/each", Ticks: 2, Callers: requests{{once, each, none}}, Faults: Faults{Loss: 1, Late: 1}},
		{Name: "callers/delete", Ticks: 2, Callers: requests{{each, none}, {even}}},
		{Name: "callers/set", Ticks: 2, Callers: requests{{each, even}, {each}}},
		{Name: "lost/deleted", Ticks: 2, Callers: requests{{each, none}}, Faults: Faults{Loss: 1, Late: 1}},
		{Name: "lost/changed", Ticks: 2, Callers: requests{{each, even}}, Faults: Faults{Loss: 1, Late: 1}},
		{Name: "lost/set", Ticks: 2, Callers: requests{{each, none, even}}, Faults: Faults{Loss: 1, Late: 1}},
		{Name: "lost/callers", Ticks: 1, Callers: requests{{each, none}, {each}}, Faults: Faults{Loss: 1}},
		{Name: "crash/alone", Ticks: 3, Callers: requests{{each}}, Faults: Faults{Crash: 1, Refusal: 1}},
		{Name: "crash/deleted", Ticks: 2, Callers: requests{{each, none}}, Faults: Faults{Crash: 1, Stray: 1, Refusal: 1}},
		{Name: "crash/changed", Ticks: 2, Callers: requests{{each, even}}, Faults: Faults{Crash: 1, Stray: 1}},
		{Name: "crash/again", Ticks: 2, Callers: requests{{each, none}}, AtLeastOnce: true,
			Faults: Faults{Crash: 1, Stray: 1, Refusal: 1}},
		{Name: "emptied", Ticks: 2, Callers: requests{{each, each}}, Faults: Faults{Flush: 1, Crash: 1}, Quiet: true},
		{Name: "emptied/changed", Ticks: 3, Callers: requests{{even, each}}, Faults: Faults{Flush: 1, Stray: 1}, Quiet: true},
	}
	limits := []World{
		{Name: "once, deleted (known limit)", Ticks: 2, Callers: requests{{each, once, none}}, Limit: LeftDue},
		{Name: "once, set (known limit)", Ticks: 3, Callers: requests{{each, once, each}}, Limit: Beside},
		{Name: "once, late (known limit)", Ticks: 2, Callers: requests{{each, once}, {each}}, Limit: StartedTwice},
		{Name: "emptied, late (known limit)", Ticks: 1, Callers: requests{{each}, {each}}, Faults: Faults{Flush: 1},
			Limit: StartedTwice},
	}
	return append(worlds, limits...)
}

// Judge is nil when a search of all rules found what it has to: no violation, or the known limit. A search that saw
// everything, but in which nothing happened, is an error too, since it says nothing.
func (w World) Judge(r Result) error {
	switch {
	case w.Limit != r.Violation:
		return fmt.Errorf("%s, want %s\n%s", r.Violation, w.Limit, r.Counterexample())
	case w.Limit != None || !r.Complete:
		return nil
	case r.Struck != w.Faults:
		return fmt.Errorf("faults were to strike %d times, and did %d", w.Faults, r.Struck)
	case r.AtRest == 0 || r.Started == 0:
		return fmt.Errorf("nothing happened: %d times started, %d states at rest", r.Started, r.AtRest)
	}
	return nil
}
