package main

import (
	"fmt"
	"time"

	"github.com/solotick/solotick/config/schedule"

	"github.com/solotick/solotick/internal/toy"
)

// Tally says what happened to the ticks between two times, counted from the calls that the app received.
type Tally struct {
	From, To  time.Time
	Due       int // ticks of the jobs that run on one replica
	Once      int // fired once
	Overlap   int // skipped because the job still ran, as overlap or queued
	CutOff    int // their replica was killed before it could call the app
	Doubles   int // further calls for a tick after the first one
	Lost      int // everything else
	Kills     int
	Takeovers int      // runs that were begun again by another replica
	Wrong     []string // the names of doubled and lost ticks
}

// ledger holds the app's calls by tick.
type ledger struct {
	first map[tickOf]int          // first attempts
	again map[tickOf]map[int]bool // further attempts
	every map[string]bool         // tick and replica, of the job that runs on every replica
}

// count makes a tally from the app's calls. unmet says why replicas skipped a tick, and cut has the ticks whose replica
// died. count looks for doubles in all calls, also after the last counted tick.
func count(calls []toy.Call, unmet map[tickOf]reasons, cut map[tickOf]bool, from, to time.Time) (Tally, error) {
	t := Tally{From: from, To: to}
	l := ledger{map[tickOf]int{}, map[tickOf]map[int]bool{}, map[string]bool{}}
	for _, c := range calls {
		if !c.Tick.Before(from) {
			t.take(&l, c)
		}
	}
	for _, j := range jobs() {
		if j.name == everywhere {
			continue
		}
		s, err := schedule.Parse(j.schedule, schedule.Options{Job: j.name})
		if err != nil {
			return t, fmt.Errorf("counting the ticks of %s: %w", j.name, err)
		}
		for tick := s.Next(from.Add(-time.Nanosecond)); !tick.After(to); tick = s.Next(tick) {
			k := tickOf{j.name, tick.UnixMilli()}
			t.Due++
			switch {
			case l.first[k] > 0, len(l.again[k]) > 0: // or its first replica died before its call
				t.Once++
			case unmet[k]["overlap"] || unmet[k]["queued"]:
				t.Overlap++
			case cut[k]:
				t.CutOff++
			default:
				t.Lost++
				t.Wrong = append(t.Wrong, fmt.Sprintf("lost: %s at %s", j.name, clock(tick)))
			}
		}
	}
	return t, nil
}

// take counts one call.
func (t *Tally) take(l *ledger, c toy.Call) {
	k := tickOf{c.Job, c.Tick.UnixMilli()}
	double := false
	switch {
	case c.Job == everywhere:
		id := fmt.Sprint(k, c.Replica)
		double = l.every[id]
		l.every[id] = true
	case c.Attempt == 1:
		double = l.first[k] > 0
		l.first[k]++
	default:
		if l.again[k] == nil {
			l.again[k] = map[int]bool{}
		}
		double = l.again[k][c.Attempt]
		if !double && c.Kind == "takeover" && !c.Tick.After(t.To) {
			t.Takeovers++
		}
		l.again[k][c.Attempt] = true
	}
	if double {
		t.Doubles++
		t.Wrong = append(t.Wrong, fmt.Sprintf("double: %s at %s by %s", c.Job, clock(c.Tick), c.Replica))
	}
}

// Kept reports whether Solotick has kept its promises.
func (t Tally) Kept() bool { return t.Doubles == 0 && t.Lost == 0 }

// lines returns the summary.
func (t Tally) lines() []string {
	number := func(what string, n int, more string) string {
		return fmt.Sprintf("  %-22s %5d  %s", what, n, dim(more))
	}
	good := func(what string, n int, more string) string {
		line := fmt.Sprintf("  %-22s %5d", what, n)
		if n == 0 {
			return green(line) + "  " + dim(more)
		}
		return bold(red(line)) + "  " + dim(more)
	}
	lines := []string{
		bold("By the receipts of the app") +
			dim(fmt.Sprintf(", for the ticks from %s to %s", clock(t.From), clock(t.To))),
		"",
		number("ticks due", t.Due, "of the jobs that run on one replica"),
		number("fired once", t.Once, ""),
		number("skipped on purpose", t.Overlap, "the job still ran"),
		good("doubles", t.Doubles, "fired twice"),
		good("lost", t.Lost, "fired by no replica, for no reason"),
	}
	if t.CutOff > 0 {
		lines = append(lines, number("cut off", t.CutOff, "the replica was killed before it could call the app"))
	}
	for _, w := range t.Wrong[:min(len(t.Wrong), 10)] {
		lines = append(lines, "    "+red(w))
	}
	return append(lines, "",
		number("replicas killed", t.Kills, ""),
		number("runs taken over", t.Takeovers, "by another replica, from one that was killed"),
	)
}
