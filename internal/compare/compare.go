// Package compare finds the ticks in which two lists of jobs differ. It compares nominal ticks, without jitter, job by
// job: jobs of the same name are the same job.
//
// The limit: it sees when jobs run, and neither what they run nor whether an earlier run is in the way.
package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/solotick/solotick/config"
)

const (
	// mostTicks bounds the ticks of one job in one list: a job every second for a day has fewer.
	mostTicks = 100_000
	// mostTogether bounds the ticks of all jobs that differ, in both lists. That many take a few seconds.
	mostTogether = 5_000_000
	// farthest is how far a moved tick may be from its old time. Beyond it, one tick is lost and another one gained: of
	// a daily job, the tick of the next day would be nearer.
	farthest = 12 * time.Hour
	// margin is how far the comparison looks around its time, for the other ends of moves.
	margin = 4 * farthest
)

// Job has the ticks of one job that differ, each list in order.
type Job struct {
	Name         string
	Gained, Lost []time.Time
	Moved        []Move
	// Before and After say whether the lists have the job.
	Before, After bool
}

// Move is a tick that has another time.
type Move struct{ From, To time.Time }

// Result is a comparison.
type Result struct {
	Jobs []Job // that differ, sorted by name
	Same int   // number of jobs that do not
}

// UnknownError says that the ticks of a job are not known: its schedule has a variable that is not set.
type UnknownError struct {
	Job   string
	After bool // the job is in the second list, and not in the first
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("the ticks of job %q are not known: its schedule or zone has a variable that is not set", e.Job)
}

// TooManyError says that a job has too many ticks to compare.
type TooManyError struct{ Job string } // "" = all jobs together

func (e *TooManyError) Error() string {
	if e.Job == "" {
		return fmt.Sprintf("the jobs that differ have more than %d ticks together", mostTogether)
	}
	return fmt.Sprintf("job %q has more than %d ticks in this time", e.Job, mostTicks)
}

// Jobs compares the ticks from a time, inclusive, to another, exclusive. Suspended jobs have none.
//
// A lost tick and a gained one are one moved tick if they are at most half a day apart and no other tick of the job
// lies between them, in either list. Where several pairs are possible, the nearest ticks make one. A move is in the
// result if one of its ends is in the time. The error is an UnknownError or a TooManyError.
func Jobs(before, after []config.Job, from, to time.Time) (*Result, error) {
	type pair struct{ before, after *config.Job }
	pairs := map[string]pair{}
	for i := range before {
		pairs[before[i].Name] = pair{before: &before[i]}
	}
	for i := range after {
		p := pairs[after[i].Name]
		p.after = &after[i]
		pairs[after[i].Name] = p
	}
	r, left := &Result{}, mostTogether
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		p := pairs[name]
		if p.before != nil && p.after != nil && same(p.before, p.after) {
			r.Same++
			continue
		}
		olds, err := ticks(p.before, from, to, &left)
		if err != nil {
			return nil, err
		}
		news, err := ticks(p.after, from, to, &left)
		if unknown, ok := err.(*UnknownError); ok {
			unknown.After = true
		}
		if err != nil {
			return nil, err
		}
		j := Job{Name: name, Before: p.before != nil, After: p.after != nil}
		j.compare(merge(olds, news), from, to)
		if len(j.Gained)+len(j.Lost)+len(j.Moved) == 0 {
			r.Same++
			continue
		}
		r.Jobs = append(r.Jobs, j)
	}
	return r, nil
}

// same reports whether two jobs have the same ticks, without a look at any: a fingerprint is of the schedule, its zone
// and window, and whether the job is suspended. If it is false, they may have the same ticks all the same.
func same(a, b *config.Job) bool {
	return a.Schedule != nil && b.Schedule != nil && a.Fingerprint == b.Fingerprint
}

// ticks returns the job's ticks in and around a time. A nil job has none.
func ticks(j *config.Job, from, to time.Time, left *int) (all []time.Time, err error) {
	switch {
	case j == nil || j.Suspend:
		return nil, nil
	case j.Schedule == nil:
		return nil, &UnknownError{Job: j.Name}
	}
	end := to.Add(margin)
	for t := j.Schedule.Next(from.Add(-margin - 1)); !t.IsZero() && t.Before(end); t = j.Schedule.Next(t) {
		if len(all) == mostTicks {
			return nil, &TooManyError{j.Name}
		}
		if *left--; *left < 0 {
			return nil, &TooManyError{}
		}
		all = append(all, t)
	}
	return all, nil
}

// tick is a tick that one of the lists has, or both.
type tick struct {
	at       time.Time
	old, new bool
}

// merge returns the ticks of both lists in order.
func merge(olds, news []time.Time) []tick {
	all := make([]tick, 0, max(len(olds), len(news)))
	for len(olds)+len(news) > 0 {
		t := tick{old: len(news) == 0 || len(olds) > 0 && !olds[0].After(news[0])}
		t.new = !t.old || len(news) > 0 && news[0].Equal(olds[0])
		if t.old {
			t.at, olds = olds[0], olds[1:]
		}
		if t.new {
			t.at, news = news[0], news[1:]
		}
		all = append(all, t)
	}
	return all
}

func (j *Job) compare(all []tick, from, to time.Time) {
	within := func(t time.Time) bool { return !t.Before(from) && t.Before(to) }
	moved := moves(all)
	for i, t := range all {
		other, isMoved := moved[i]
		switch {
		case t.old && t.new:
		case isMoved && t.old && (within(t.at) || within(all[other].at)):
			j.Moved = append(j.Moved, Move{t.at, all[other].at})
		case isMoved || !within(t.at):
		case t.old:
			j.Lost = append(j.Lost, t.at)
		default:
			j.Gained = append(j.Gained, t.at)
		}
	}
}

// moves pairs lost and gained ticks that follow each other, the nearest first. It returns for each of them the index of
// the other one.
func moves(all []tick) map[int]int {
	distance := func(i int) time.Duration { return all[i+1].at.Sub(all[i].at) }
	var near []int // indexes of the first ticks of possible pairs
	for i := range len(all) - 1 {
		if all[i].old != all[i+1].old && all[i].new != all[i+1].new && distance(i) <= farthest {
			near = append(near, i)
		}
	}
	slices.SortStableFunc(near, func(a, b int) int { return cmp.Compare(distance(a), distance(b)) })
	moved := map[int]int{}
	for _, i := range near {
		_, first := moved[i]
		_, second := moved[i+1]
		if !first && !second {
			moved[i], moved[i+1] = i+1, i
		}
	}
	return moved
}
