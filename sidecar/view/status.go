package view

import (
	"cmp"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// Stamp writes a time for the JSON: RFC 3339 in UTC with milliseconds; "" for the zero time.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// Each returns what show makes of each element; never nil, so that JSON has a list.
func Each[T, S any](all []T, show func(T) S) []S {
	shown := make([]S, 0, len(all))
	for _, one := range all {
		shown = append(shown, show(one))
	}
	return shown
}

// Status is a look in the JSON of `status -o json` and GET /v1/status.
type Status struct {
	Service  string    `json:"service"`
	Time     string    `json:"time"`
	Table    string    `json:"table"`
	Drift    bool      `json:"drift"`
	Jobs     []Job     `json:"jobs"`
	Replicas []Replica `json:"replicas"`
	Summary  Summary   `json:"summary"`
}

// Job is one job of a Status.
type Job struct {
	Job        string `json:"job"`
	Schedule   string `json:"schedule"`
	TimeZone   string `json:"timeZone"`
	Guarantee  string `json:"guarantee"`
	Registered bool   `json:"registered"`
	Suspended  bool   `json:"suspended"`
	Next       string `json:"next,omitempty"`
	Last       *Entry `json:"last,omitempty"`

	Health        Health `json:"health"`
	LastScheduled *Entry `json:"lastScheduled,omitempty"` // Last may be a run by hand
	Failures      int64  `json:"failures,omitempty"`      // ticks in a row that failed
	FailingSince  string `json:"failingSince,omitempty"`
	LastSuccess   string `json:"lastSuccess,omitempty"` // of a tick of the schedule
	LastFailure   string `json:"lastFailure,omitempty"`
	Overdue       string `json:"overdue,omitempty"`     // the tick that no replica runs
	Missed        *Entry `json:"missed,omitempty"`      // the ticks that were last found missed
	MissedToday   int64  `json:"missedToday,omitempty"` // how many were, in the present day of UTC

	Running   []Run     `json:"running"`
	Waiting   []Waiting `json:"waiting"`
	Paused    *Pause    `json:"paused,omitempty"`    // the job's own pause, or else that of all jobs
	PausedAll *Pause    `json:"pausedAll,omitempty"` // that of all jobs
	Skips     []Skip    `json:"skips"`
	Results   []Entry   `json:"results,omitempty"` // of an every-replica job: its last run on each replica

	Description string            `json:"description,omitempty"`
	Owner       string            `json:"owner,omitempty"`
	Runbook     string            `json:"runbook,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// Run is a live run.
type Run struct {
	Tick     string `json:"tick"`
	Run      string `json:"run"`
	Replica  string `json:"replica"`
	Kind     string `json:"kind"`
	Attempt  int    `json:"attempt"`
	Since    string `json:"since"`
	LeaseEnd string `json:"leaseEnd,omitempty"`
}

// Waiting is a due member: a tick that waits to be run, beside the schedule.
type Waiting struct {
	Tick    string `json:"tick"`
	Kind    string `json:"kind"`
	Attempt int    `json:"attempt"`
}

// Pause is one of the two pauses that a job can have.
type Pause struct {
	Reason string `json:"reason"`
	At     string `json:"at"`
	Until  string `json:"until,omitempty"`
	All    bool   `json:"all,omitempty"` // whether it is the pause of all jobs
	By     string `json:"by,omitempty"`  // who paused the job
}

// newPause returns a pause in JSON; nil if there is none.
func newPause(p *service.Pause, all bool) *Pause {
	if p == nil {
		return nil
	}
	return &Pause{p.Reason, Stamp(p.At), Stamp(p.Until), all, p.By}
}

// Skip is a replica's last skip of a job.
type Skip struct {
	Replica string `json:"replica"`
	Tick    string `json:"tick"`
	Reason  string `json:"reason"`
	At      string `json:"at"`
}

// Replica is one replica of a Status.
type Replica struct {
	Replica  string  `json:"replica"`
	Version  string  `json:"version"`
	Table    string  `json:"table"`
	Observes bool    `json:"observes,omitempty"` // it takes ticks, and calls no job
	OffsetMS float64 `json:"offsetMs"`
	Ready    bool    `json:"ready"`
	NotReady string  `json:"notReady,omitempty"`
	Reload   string  `json:"notReloaded,omitempty"` // why the last reload failed
	Silent   bool    `json:"silent"`
	SameName bool    `json:"sameName,omitempty"` // another process has the same name
	Seen     string  `json:"seen"`
}

// Entry is a settled run in the history, or ticks that no replica fired.
type Entry struct {
	Job        string `json:"job"`
	Tick       string `json:"tick"`
	Run        string `json:"run"`
	Replica    string `json:"replica"`
	Kind       string `json:"kind"`
	Attempt    int    `json:"attempt"`
	Outcome    string `json:"outcome"`
	Failed     bool   `json:"failed"`
	Ended      string `json:"ended,omitempty"`
	DurationMS int64  `json:"durationMs"`
	Detail     string `json:"detail,omitempty"`
	First      string `json:"first,omitempty"` // of several ticks: tick is the last one
	Ticks      int    `json:"ticks,omitempty"` // how many were not fired; 0 = it is a run
}

// NewEntry returns an entry of the history in JSON.
func NewEntry(e service.Entry) Entry {
	return Entry{e.Job, Stamp(e.Tick), e.Run, e.Replica, e.Kind, e.Attempt, e.Outcome, e.Failed, Stamp(e.Ended),
		e.Took.Milliseconds(), e.Detail, Stamp(e.First), e.Count}
}

// NewEntries returns entries of the history in JSON, in their order; never null.
func NewEntries(entries []service.Entry) []Entry { return Each(entries, NewEntry) }

// Status returns the look in JSON.
func (l *Look) Status() Status {
	return Status{l.Table.Service, Stamp(l.Now), l.Table.Hash, l.Drift(), Each(l.Jobs, l.job),
		Each(l.Replicas, l.replica), l.Summary()}
}

func (l *Look) replica(r service.Replica) Replica {
	silent := l.Silent(r)
	return Replica{r.Name, r.Version, r.Table, r.Observe, float64(r.Offset.Microseconds()) / 1000,
		r.Ready == "" && !silent, r.Ready, r.Reload, silent, l.Twins(r), Stamp(r.Seen)}
}

func newRuns(live []service.RunState) []Run {
	return Each(live, func(r service.RunState) Run {
		return Run{Stamp(r.Tick), r.Run, r.Replica, r.Kind, r.Attempt, Stamp(r.Since), Stamp(r.LeaseEnd)}
	})
}

// entry returns an entry of the history in JSON; nil if there is none.
func entry(e *service.Entry) *Entry {
	if e == nil {
		return nil
	}
	return new(NewEntry(*e))
}

func (l *Look) job(j config.Job) Job {
	state, known := l.States[j.Name]
	schedule := ""
	if j.Schedule != nil { // without a readable table only the name is known
		schedule = j.Schedule.String()
	}
	out := Job{Job: j.Name, Schedule: schedule, TimeZone: j.TimeZone,
		Guarantee: string(j.Guarantee), Registered: known, Suspended: j.Suspend, Next: Stamp(l.Next(j)),
		Running: newRuns(state.Running),
		Health:  l.Health(j), Failures: state.Streak, FailingSince: Stamp(state.FailingSince),
		LastSuccess: Stamp(state.LastSuccess), LastFailure: Stamp(state.LastFailure),
		Overdue: Stamp(l.Overdue(j)), MissedToday: state.MissedToday,
		Description: j.Description, Owner: j.Owner, Runbook: j.Runbook, Labels: j.Labels}
	out.Last, out.LastScheduled, out.Missed = entry(l.Last(j)), entry(l.LastScheduled(j)), entry(state.Missed)
	if results := l.Results(j); len(results) > 0 {
		out.Results = NewEntries(results)
	}
	out.Waiting = Each(state.Waiting, func(w lock.Due) Waiting { return Waiting{Stamp(w.Tick), w.Kind, w.Attempt} })
	out.Skips = Each(l.Skips(j.Name), func(k Skipped) Skip {
		return Skip{k.Replica, Stamp(k.Tick), k.Reason, Stamp(k.At)}
	})
	out.PausedAll = newPause(state.PausedAll, true)
	out.Paused = cmp.Or(newPause(state.Paused, false), out.PausedAll)
	return out
}
