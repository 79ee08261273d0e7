package view

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/service"
)

// Health is what a person should know of a job first.
type Health string

// The healths, what is worst first.
const (
	Failing  Health = "failing"   // its newest tick failed; an every-replica job: its last run on some live replica
	Overdue  Health = "overdue"   // a tick came due, no replica runs it, and nothing explains that
	Missed   Health = "missed"    // its newest tick was missed
	NeverRan Health = "never_ran" // no run of it is known, nor need it be paused or suspended
	OK       Health = "ok"
)

var healths = []Health{Failing, Overdue, Missed, NeverRan, OK}

// patience is how long after a tick came due a replica may take to claim it before the tick is called overdue.
const patience = 10 * time.Second

// Health tells what a person should know of the job first.
func (l *Look) Health(j config.Job) Health {
	state, held := l.States[j.Name], j.Suspend || l.States[j.Name].IsPaused()
	switch {
	case l.fails(j):
		return Failing
	case !l.Overdue(j).IsZero():
		return Overdue
	case l.Missed(j) != nil && !held:
		return Missed
	case l.Last(j) == nil && l.LastScheduled(j) == nil && !held && len(state.Running) == 0:
		return NeverRan
	}
	return OK
}

// fails reports whether the job's newest tick failed, as consecutive_failures does. A run by hand says nothing of that.
func (l *Look) fails(j config.Job) bool {
	if j.Guarantee == config.EveryReplica {
		return slices.ContainsFunc(l.Results(j), func(e service.Entry) bool { return e.Failed })
	}
	return l.States[j.Name].Streak > 0
}

// Results returns the last run of an every-replica job on each live replica. Failed runs come first; within both groups
// the newest comes first.
func (l *Look) Results(j config.Job) []service.Entry {
	var all []service.Entry
	for _, r := range l.Replicas {
		if e, ok := r.Ran[j.Name]; ok && !l.Silent(r) && j.Guarantee == config.EveryReplica {
			all = append(all, e)
		}
	}
	sort.SliceStable(all, func(i, j int) bool {
		return cmp.Or(service.ByFailure(all[i], all[j]), cmp.Compare(all[i].Replica, all[j].Replica)) < 0
	})
	return all
}

// Last returns the run of a job that was settled last; for an every-replica job, the newest run on any replica. It
// returns nil if there is none.
func (l *Look) Last(j config.Job) *service.Entry {
	if j.Guarantee != config.EveryReplica {
		return l.States[j.Name].Last
	}
	var last *service.Entry
	for _, e := range l.Results(j) {
		if last == nil || e.Ended.After(last.Ended) {
			last = &e
		}
	}
	return last
}

// LastScheduled returns the run that ended the newest tick of the schedule; nil if there is none. Last may be a run by
// hand.
func (l *Look) LastScheduled(j config.Job) *service.Entry {
	if j.Guarantee == config.EveryReplica {
		return l.Last(j)
	}
	return l.States[j.Name].Scheduled
}

// Missed returns the ticks that were last found missed; nil if the schedule has run since.
func (l *Look) Missed(j config.Job) *service.Entry {
	missed, run := l.States[j.Name].Missed, l.LastScheduled(j)
	if missed == nil || run != nil && !run.Tick.Before(missed.Tick) {
		return nil
	}
	return missed
}

// Overdue returns the tick that came due and that no replica runs, although nothing holds it back; zero if there is
// none.
func (l *Look) Overdue(j config.Job) time.Time {
	state, known := l.States[j.Name]
	if !known || j.Suspend || j.Schedule == nil || j.Guarantee == config.EveryReplica ||
		state.IsPaused() || len(state.Running) > 0 {
		return time.Time{}
	}
	for _, w := range state.Waiting { // it was claimed, and no replica could start it
		if w.Kind != "manual" && w.Kind != "backfill" && l.Now.Sub(w.Tick) > patience+j.Jitter {
			return w.Tick
		}
	}
	from := slices.MaxFunc([]time.Time{state.Tick, state.Since, state.PausedTo}, time.Time.Compare)
	tick := j.Schedule.Next(from)
	if tick.IsZero() || l.Now.Sub(j.Schedule.Due(j.Name, tick, j.Jitter)) <= patience {
		return time.Time{}
	}
	return tick
}

// ByNeed returns the jobs, those that need a person first. Jobs with the same health keep their order.
func (l *Look) ByNeed() []config.Job {
	jobs := slices.Clone(l.Jobs)
	rank := make(map[string]int, len(jobs))
	for _, j := range jobs {
		rank[j.Name] = slices.Index(healths, l.Health(j))
	}
	sort.SliceStable(jobs, func(i, j int) bool { return rank[jobs[i].Name] < rank[jobs[j].Name] })
	return jobs
}

// Summary says in one line how the service fares, with the numbers in it.
type Summary struct {
	Text        string `json:"text"`
	Failing     int    `json:"failingJobs"`
	Overdue     int    `json:"overdueJobs"`
	NeverRan    int    `json:"neverRanJobs"`
	MissedToday int64  `json:"missedToday"`  // ticks that were found missed in the present day of UTC
	Live        int    `json:"liveReplicas"` // that are not silent
	Ready       int    `json:"readyReplicas"`
}

// Bad reports whether somebody should look after the service: a job fails or is overdue, or no replica would fire a
// tick.
func (s *Summary) Bad() bool { return s.Failing > 0 || s.Overdue > 0 || s.Ready == 0 }

// Summary sums the look up. A job that fails and is overdue counts as both.
func (l *Look) Summary() Summary {
	var s Summary
	for _, j := range l.Jobs {
		if l.fails(j) {
			s.Failing++
		}
		if !l.Overdue(j).IsZero() {
			s.Overdue++
		}
		if l.Health(j) == NeverRan {
			s.NeverRan++
		}
		s.MissedToday += l.States[j.Name].MissedToday
	}
	for _, r := range l.Live() {
		s.Live++
		if r.Ready == "" {
			s.Ready++
		}
	}
	silent := len(l.Replicas) - s.Live
	parts := []string{fmt.Sprintf("%d of %d failing", s.Failing, len(l.Jobs)), fmt.Sprintf("%d overdue", s.Overdue),
		fmt.Sprintf("%d missed today", s.MissedToday), fmt.Sprintf("%d/%d replicas ready", s.Ready, s.Live)}
	also := func(is bool, said string) {
		if is {
			parts = append(parts, said)
		}
	}
	also(silent > 0, fmt.Sprintf("%d silent", silent))
	also(l.Drift(), "tables differ")
	also(l.Mixed(), "only some replicas observe")
	also(l.Strange(), "environments differ")
	redis := "Redis ok"
	if silent > 0 && s.Live == 0 { // they are gone, or Redis refuses what writes
		redis = "Redis answers, but no replica writes to it"
	}
	s.Text = strings.Join(append(parts, redis), " · ")
	return s
}
