package model

import (
	"fmt"
	"strings"
)

// Judge is nil when a search of all mends found what it has to: no violation, or the known limit. A search that saw
// everything, but in which nothing happened, is an error too, since it says nothing.
func (c Scenario) Judge(r Result) error {
	switch {
	case c.IsLimit && r.Violation == None:
		return fmt.Errorf("%s: the known limit was not found: %d states", c.Name, r.States)
	case c.IsLimit:
		return nil
	case r.Violation != None:
		return fmt.Errorf("%s: %s\n%s", c.Name, r.Violation, r.Counterexample())
	case r.Complete:
		return c.hollow(r)
	}
	return nil
}

// hollow tells what should have happened in a complete search, and did not.
func (c Scenario) hollow(r Result) error {
	c.setDefaults()
	for f, n := range c.Faults {
		if r.Applied[f] < n {
			return fmt.Errorf("%s: %d × %s was to strike, and %d did", c.Name, n, Fault(f), r.Applied[f])
		}
	}
	if c.Faults[RerunAsked] > 0 && r.Starts[0] == 0 {
		return fmt.Errorf("%s: no tick was run by hand", c.Name)
	}
	for t := 1; t <= c.Ticks; t++ {
		if r.Starts[t] == 0 {
			return fmt.Errorf("%s: T%d was never started", c.Name, t)
		}
	}
	if r.AtRest == 0 {
		return fmt.Errorf("%s: it never came to rest, so nothing was checked at the end", c.Name)
	}
	return nil
}

// Counterexample is the trace as numbered lines.
func (r Result) Counterexample() string {
	var text strings.Builder
	for i, line := range r.Trace {
		fmt.Fprintf(&text, "  %3d %s\n", i+1, line)
	}
	return text.String()
}
