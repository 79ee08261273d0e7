package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/solotick/solotick/internal/testing/needs"
)

// slowest is how many packages the summary names with their time.
const slowest = 10

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
	ImportPath                    string  // of a package that does not build
}

// spoken is a test, or a package if there is none, in one of the commands: two may test the same package at once.
type spoken struct{ command, pkg, test string }

// timed is a package's time.
type timed struct {
	name string
	took time.Duration
}

// report prints what the commands say, and remembers what the summary needs. Its methods may be called at the same
// time.
type report struct {
	mu     sync.Mutex
	out    io.Writer
	said   map[spoken][]string // output that is printed if the test or the package fails
	paused map[spoken]bool     // tests that wait for their turn
	passed int
	failed []string
	unmet  map[string][]string // tests that were not run, by what they need
	took   []timed
	cpu    time.Duration // of all processors together
	wrong  []string      // commands that failed
	left   []string      // what stands outside the temporary directories
}

// say prints a line.
func (r *report) say(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(r.out, line)
}

// event takes a line of go test -json that a command said.
func (r *report) event(command, line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		r.say(line)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.said == nil {
		r.said, r.paused, r.unmet = map[spoken][]string{}, map[spoken]bool{}, map[string][]string{}
	}
	key := spoken{command, e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "pause", "cont":
		r.paused[key] = e.Action == "pause"
	case "output":
		r.said[key] = append(r.said[key], e.Output)
	case "pass", "fail", "skip":
		said := r.said[key]
		delete(r.said, key)
		if e.Test == "" {
			r.ended(command, e, said)
			return
		}
		r.test(e, said)
	}
}

// test counts a test that ended.
func (r *report) test(e event, said []string) {
	name := e.Test + " (" + e.Package + ")"
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed = append(r.failed, name)
		fmt.Fprint(r.out, strings.Join(said, ""))
	case "skip":
		for _, s := range said {
			if _, what, ok := strings.Cut(strings.TrimSpace(s), needs.NotRun); ok {
				r.unmet[what] = append(r.unmet[what], name)
			}
		}
	}
}

// ended prints the line of a package, and what it said if it failed. A test that did not end, as in a panic, is told
// too.
func (r *report) ended(command string, e event, said []string) {
	r.took = append(r.took, timed{e.Package, time.Duration(e.Elapsed * float64(time.Second))})
	if e.Action == "fail" {
		r.unended(command, e.Package)
		if !slices.ContainsFunc(r.failed, func(name string) bool {
			return strings.HasSuffix(name, "("+e.Package+")")
		}) {
			// it was not built, or failed beside its tests
			r.failed = append(r.failed, "the package itself ("+e.Package+")")
		}
		fmt.Fprint(r.out, strings.Join(said, ""))
		return
	}
	for _, s := range said {
		if strings.HasPrefix(s, "ok ") {
			fmt.Fprint(r.out, s)
		}
	}
}

// unended counts the tests of a package that were at work when it ended in a command as failed, and prints what they
// said; those of all packages and commands if the package is empty. A panic's stacks may be told of any of its tests.
func (r *report) unended(command, pkg string) {
	for key, lines := range r.said {
		if pkg != "" && (key.pkg != pkg || key.command != command) || key.test == "" {
			continue
		}
		panicked := slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "panic: ") })
		if !r.paused[key] || panicked {
			r.failed = append(r.failed, key.test+" ("+key.pkg+")")
			fmt.Fprint(r.out, strings.Join(lines, ""))
		}
		delete(r.said, key)
	}
}

// spent takes the processor time of a command.
func (r *report) spent(cpu time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cpu += cpu
}

// ran takes the end of a command.
func (r *report) ran(c command, err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, fmt.Sprintf("%s: %v", c, err))
}

func (r *report) green() bool { return len(r.failed)+len(r.wrong)+len(r.left) == 0 }

// summary prints what ran, what did not, and how long it took.
func (r *report) summary(took time.Duration) {
	r.unended("", "") // of packages that were interrupted
	slices.SortFunc(r.took, func(a, b timed) int { return int(b.took - a.took) })
	fmt.Fprintf(r.out, "\n%d tests passed and %d failed in %d packages, in %s (%s of processor time).",
		r.passed, len(r.failed), len(r.took), took.Round(time.Second), r.cpu.Round(time.Second))
	if len(r.took) > 0 {
		fmt.Fprint(r.out, " The slowest packages:\n")
	}
	for _, p := range r.took[:min(slowest, len(r.took))] {
		fmt.Fprintf(r.out, "  %6.0f s  %s\n", p.took.Seconds(), p.name)
	}
	for what, tests := range r.unmet {
		slices.Sort(tests)
		fmt.Fprintf(r.out, "Not run, since they need %s:\n  %s\n", what, strings.Join(tests, "\n  "))
	}
	for _, l := range []struct {
		title string
		rows  []string
	}{{"Failed:", r.failed}, {"These commands failed:", r.wrong}, {"The tests left this behind:", r.left}} {
		if len(l.rows) > 0 {
			fmt.Fprintf(r.out, "%s\n  %s\n", l.title, strings.Join(l.rows, "\n  "))
		}
	}
}
