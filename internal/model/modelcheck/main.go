// Modelcheck searches the worlds of the protocol's model and prints what it found. The exit code is 1 when a result is
// not the expected one.
//
//	go run ./internal/model/modelcheck -scale small
//	go run ./internal/model/modelcheck -scale pairs -without Pend -only forbid
//
// With -without the first counterexample is what is expected.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/model"
	"github.com/solotick/solotick/internal/testing/results"
)

// memory is what the collector aims to stay below, in bytes. The largest search needs about half of it.
const memory = 6 << 30

func main() {
	scale := flag.String("scale", "all", "small, pairs, large, or all: the last two")
	limit := flag.Int("max", 40_000_000, "states after which the search of a world ends without a result")
	without := flag.String("without", "", "leave this mend out, and stop at the first counterexample")
	only := flag.String("only", "", "only worlds whose name contains this")
	flag.Parse()
	debug.SetMemoryLimit(memory)

	worlds, err := choose(*scale, *only)
	if err == nil && flag.NArg() > 0 {
		err = fmt.Errorf("there are no arguments: %s", strings.Join(flag.Args(), " "))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	if *without == "" {
		run := results.Begin("modelcheck", "go run ./internal/model/modelcheck -scale "+*scale)
		exit := checkAll(os.Stdout, worlds, *limit, run)
		if err := run.End(exit != 0); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			exit = 2
		}
		os.Exit(exit)
	}
	mend, err := model.MendNamed(*without)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	os.Exit(leaveOut(os.Stdout, mend, worlds, *limit))
}

func choose(scale, only string) ([]model.Scenario, error) {
	lists := map[string][]model.Scenario{
		"small": model.Small(), "pairs": model.Pairs(), "large": model.Large(),
		"all": append(model.Pairs(), model.Large()...),
	}
	worlds, ok := lists[scale]
	if !ok {
		return nil, fmt.Errorf("-scale is %q: small, pairs, large, or all", scale)
	}
	var chosen []model.Scenario
	for _, c := range worlds {
		if strings.Contains(c.Name, only) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no world of scale %s has %q in its name", scale, only)
	}
	return chosen, nil
}

// figures of a whole check.
type figures struct {
	worlds, complete, bounded, limits, unexpected int
	states, deepest                               int
}

// checkAll puts the figures into the record of the run, too.
func checkAll(w io.Writer, worlds []model.Scenario, limit int, run *results.Run) (exit int) {
	f := figures{worlds: len(worlds)}
	for _, c := range worlds {
		if !f.check(w, c, limit) {
			fmt.Fprintf(w, "again: %s -only '%s'\n", run.Again, c.Name)
		}
	}
	fmt.Fprintf(w,
		"%d worlds, %d states in %s: %d pass in full, %d up to the limit, %d known limits found, %d unexpected\n",
		f.worlds, f.states, time.Since(run.Began).Round(time.Second), f.complete, f.bounded, f.limits, f.unexpected)
	run.Add(f.worlds, "worlds")
	run.Add(f.states, "states")
	run.Add(f.deepest, "steps at most")
	run.Add(f.complete, "worlds in full")
	run.Add(f.bounded, "up to a limit of states")
	run.Add(f.limits, "known limits found")
	if f.unexpected > 0 {
		return 1
	}
	return 0
}

// check searches one world, and reports whether the result is the expected one.
func (f *figures) check(w io.Writer, c model.Scenario, limit int) (expected bool) {
	began := time.Now()
	r := model.Search(c, model.AllMends, limit)
	err := c.Judge(r)
	verdict := "passes"
	switch {
	case err != nil:
		f.unexpected++
		verdict = "UNEXPECTED: " + err.Error()
	case c.IsLimit:
		f.limits++
		verdict = "fails as it has to: " + r.Violation.String()
	case r.Complete:
		f.complete++
	default:
		f.bounded++
		verdict = "passes up to the limit"
	}
	f.states += r.States
	f.deepest = max(f.deepest, r.Depth)
	fmt.Fprintf(w, "%-42s %9d states %6d at rest %3d deep %6.1fs  %s\n",
		c.Name, r.States, r.AtRest, r.Depth, time.Since(began).Seconds(), verdict)
	return err == nil
}

func leaveOut(w io.Writer, mend model.Mend, worlds []model.Scenario, limit int) (exit int) {
	fmt.Fprintf(w, "without %s: %s\n", mend, mend.Means())
	for _, c := range worlds {
		if c.IsLimit {
			continue
		}
		if r := model.Search(c, model.AllMends&^mend, limit); r.Violation != model.None {
			fmt.Fprintf(w, "%s, after %d states: %s\n%s", c.Name, r.States, r.Violation, r.Counterexample())
			return 0
		}
	}
	fmt.Fprintln(w, "no counterexample")
	return 1
}
