package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/lock"
)

// Operator carries out requests by hand. The error of each of its methods is a *Refusal.
type Operator struct {
	Store *Store
	Table func() *config.Table // in force on the replica, or else given on the command line
	Limit time.Duration        // how long a request is repeated if its answer was lost
}

// As returns an Operator whose requests have that author.
func (o *Operator) As(a Author) *Operator {
	theirs := *o
	theirs.Store = o.Store.As(a)
	return &theirs
}

// Acts returns the newest acts of operators on one job or, with "", on all. If there are none, it refuses a name that
// no job has.
func (o *Operator) Acts(ctx context.Context, job string, limit int) ([]Act, error) {
	acts, err := o.Store.Acts(ctx, job, limit)
	if err != nil {
		return nil, RefusalOf(err)
	}
	if len(acts) == 0 && job != "" {
		if _, err := o.Find(ctx, job); err != nil {
			return nil, err
		}
	}
	return acts, nil
}

// ask sends a request to Redis, within the operator's limit.
func ask[T any](ctx context.Context, o *Operator, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	answer, err := request(ctx)
	if err != nil {
		err = RefusalOf(err)
	}
	return answer, err
}

// Now returns Redis' time.
func (o *Operator) Now() (time.Time, error) {
	now, ok := o.Store.Now()
	if !ok {
		return now, RefusalOf(errors.New("no answer from Redis yet"))
	}
	return now, nil
}

// A Field is a part of a request: its name as the caller knows it (--until) and its text as the caller wrote it.
type Field struct{ Name, Text string }

// CheckPause checks the texts of a request to pause. The text of the reason is one line; an empty text was not given.
func CheckPause(reason, until, length Field) error {
	switch n := utf8.RuneCountInString(reason.Text); {
	case n == 0:
		return &Refusal{Kind: NoReason, Message: "a pause needs a reason: others will wonder"}
	case n > MaxReason:
		return refuse(Invalid, "%s has %d characters, at most %d are kept", reason.Name, n, MaxReason)
	case until.Text != "" && length.Text != "":
		return refuse(Invalid, "%s and %s both say when the pause ends", until.Name, length.Name).
			hint("leave one of them out")
	}
	return nil
}

// PauseEnd returns when a pause of that length ends that begins now, by the time by which ticks come. It is rounded up
// to the second: an operator means no milliseconds.
func (o *Operator) PauseEnd(ctx context.Context, length time.Duration) (time.Time, error) {
	now, err := o.Now()
	if at := o.Store.replicasTime(ctx); !at.IsZero() {
		now = at
	}
	return now.Add(length + time.Second - 1).Truncate(time.Second), err
}

// Pause pauses a job until the given time, or until it is resumed if that is zero.
func (o *Operator) Pause(ctx context.Context, job, reason string, until time.Time) error {
	_, err := ask(ctx, o, func(ctx context.Context) (any, error) { return nil, o.Store.Pause(ctx, job, reason, until) })
	return err
}

// Resume ends a pause of a job. It returns false if there was none.
func (o *Operator) Resume(ctx context.Context, job string) (bool, error) {
	return ask(ctx, o, func(ctx context.Context) (bool, error) { return o.Store.Resume(ctx, job) })
}

// Trigger has one replica run a job now. A request that is repeated with its id triggers nothing more; "" is a new id.
func (o *Operator) Trigger(ctx context.Context, j config.Job, id string) (lock.Due, error) {
	id, err := requestID(id)
	if err != nil {
		return lock.Due{}, err
	}
	return ask(ctx, o, func(ctx context.Context) (lock.Due, error) { return o.Store.Trigger(ctx, j.Name, id) })
}

// requestID returns the id of a request, or a new one if it is "".
func requestID(id string) (string, error) {
	if id == "" {
		return uuid.NewString(), nil
	}
	if _, err := uuid.Parse(id); err != nil || len(id) != len(uuid.Nil.String()) {
		return "", &Refusal{Kind: Invalid, Message: `"id" is not a UUID`, Hint: "as " + uuid.NewString()}
	}
	return id, nil
}

// Cancel ends the live runs of a job, and returns their UUIDs: all, or the one whose UUID begins with run. With
// waiting, it instead drops what waits because somebody asked for it, and returns the ticks.
func (o *Operator) Cancel(ctx context.Context, job, run string,
	waiting bool) (runs []string, waited []time.Time, err error) {
	switch {
	case !waiting:
		runs, err = o.cancelRuns(ctx, job, run)
	case run != "":
		err = &Refusal{Kind: Invalid, Message: "what waits is no run yet: give one of the two"}
	default:
		waited, err = o.cancelWaiting(ctx, job)
	}
	return runs, waited, err
}

func (o *Operator) cancelRuns(ctx context.Context, job, run string) ([]string, error) {
	if run != "" && len(run) < leastOfRun {
		return nil, refuse(Invalid, "%q is too short for the id of a run: give at least %d characters", run, leastOfRun)
	}
	states, err := o.Store.States(ctx, []string{job})
	if err != nil {
		return nil, RefusalOf(err)
	}
	if _, known := states[job]; !known {
		return nil, RefusalOf(fmt.Errorf("cancelling job %q: %w", job, ErrUnknownJob))
	}
	var runs []string
	for _, r := range states[job].Running {
		if strings.HasPrefix(r.Run, strings.ToLower(run)) {
			runs = append(runs, r.Run)
		}
	}
	if run != "" && len(runs) > 1 {
		return nil, refuse(Invalid, "%d runs of job %q begin with %q", len(runs), job, run).hint("give more of the id")
	}
	if len(runs) > 0 {
		cancelled, err := ask(ctx, o, func(ctx context.Context) ([]string, error) {
			return o.Store.Cancel(ctx, job, runs, uuid.NewString())
		})
		if err != nil || len(cancelled) > 0 {
			return cancelled, err
		}
	}
	if run != "" {
		return nil, refuse(NoRun, "no run of job %q that begins with %q is going on", job, run).of(job)
	}
	return nil, refuse(NoRun, "no run of job %q is going on", job).of(job)
}

func (o *Operator) cancelWaiting(ctx context.Context, job string) ([]time.Time, error) {
	now, err := o.Now()
	if err != nil {
		return nil, err
	}
	ticks, err := ask(ctx, o, func(ctx context.Context) ([]time.Time, error) {
		return o.Store.CancelWaiting(ctx, job, uuid.NewString(), now.Add(o.Limit))
	})
	if err == nil && len(ticks) == 0 {
		err = refuse(NoRun, "no run of job %q that was asked for by hand waits", job).of(job)
	}
	return ticks, err
}

// leastOfRun is how many characters of a run's UUID name it.
const leastOfRun = 8

// A Moment is a Field that is a time.
type Moment struct {
	Field
	time.Time
}

func (m Moment) String() string { return m.Name + " " + m.Text }

// Ticks returns the ticks to backfill: those that the job's schedule has in [from, to), none of which is to come.
func Ticks(j config.Job, from, to Moment, now time.Time) ([]time.Time, error) {
	switch {
	case !from.Before(to.Time):
		return nil, refuse(Invalid, "%s is not before %s", from, to)
	case to.After(now):
		return nil, toCome(to, now).of(j.Name)
	}
	var ticks []time.Time
	for t := j.Schedule.Next(from.Add(-time.Nanosecond)); !t.IsZero() && t.Before(to.Time); t = j.Schedule.Next(t) {
		if len(ticks) == MaxBackfill {
			return nil, refuse(Invalid, "job %q has more than %d ticks from %s to %s",
				j.Name, MaxBackfill, from.Text, to.Text).hint("go in steps: " + to.Name + " " + t.Format(time.RFC3339))
		}
		ticks = append(ticks, t)
	}
	return ticks, nil
}

// Backfill has the replicas run a job for each of the ticks, and returns how many were enqueued. With anew, each tick
// gets a new idempotency key.
func (o *Operator) Backfill(ctx context.Context, job string, ticks []time.Time, anew bool) (int, error) {
	return ask(ctx, o, func(ctx context.Context) (int, error) {
		return o.Store.Backfill(ctx, job, ticks, uuid.NewString(), anew)
	})
}

// admits refuses what the table does not let a timer do.
func (o *Operator) admits(j *config.Job) error {
	if p := o.Table().Admits(j); p != nil {
		return wrong(NotAdmitted, config.Problems{*p})
	}
	return nil
}

// SetTimer keeps a timer for all replicas.
func (o *Operator) SetTimer(ctx context.Context, id string, source []byte) (*config.Timer, Change, error) {
	t, err := o.readTimer(id, source)
	if err != nil {
		return nil, "", err
	}
	made, err := ask(ctx, o, func(ctx context.Context) (Change, error) { return o.setTimer(ctx, t) })
	return t, made, err
}

// readTimer reads a timer, and checks all of it.
func (o *Operator) readTimer(id string, source []byte) (*config.Timer, error) {
	now, err := o.Now()
	if err != nil {
		return nil, err
	}
	t, err := config.ParseTimer(id, source, now)
	if err != nil {
		return nil, RefusalOf(err)
	}
	if t.Repeats != nil && t.At.IsZero() {
		p := config.Problem{File: "body",
			Message: fmt.Sprintf("timer %q: its schedule has no time in the next ten years", id)}
		return nil, wrong(Invalid, config.Problems{p})
	}
	return t, o.admits(&t.Job)
}

// setTimer sends a timer to Redis. A timer with a schedule then has the time for which it waits.
func (o *Operator) setTimer(ctx context.Context, t *config.Timer) (made Change, err error) {
	if t.Repeats == nil {
		return o.Store.SetTimer(ctx, t.ID, t.At, t.Source)
	}
	t.At, made, err = o.Store.SetSeries(ctx, t.ID, t.At, t.Source)
	return made, err
}

// MaxTimerBatch bounds how many timers SetTimers sets.
const MaxTimerBatch = 1000

// TimerAnswer is the answer to one of several requests to set a timer.
type TimerAnswer struct {
	ID    string
	Timer *config.Timer
	Made  Change // "" if it is refused
	Err   error  // of which RefusalOf makes a Refusal
}

// SetTimers sets timers as SetTimer does, side by side, and those of one id in their order. A source is the timer's
// keys in JSON, its id among them. Answers are in the order of the sources, and tell ten problems of one at most.
func (o *Operator) SetTimers(ctx context.Context, sources []json.RawMessage) []TimerAnswer {
	ctx, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	answers, seen := make([]TimerAnswer, len(sources)), map[string]bool{}
	var all sync.WaitGroup
	for i, source := range sources {
		a := &answers[i]
		if json.Unmarshal(source, &struct{ ID *string }{&a.ID}) != nil {
			a.Err = refuse(Invalid, "it is no JSON object with an id")
			continue
		}
		if a.Timer, a.Err = o.readTimer(a.ID, source); a.Err == nil {
			if seen[a.ID] {
				all.Wait()
			}
			seen[a.ID] = true
			all.Go(func() { a.Made, a.Err = o.setTimer(ctx, a.Timer) })
		} else if r, ok := errors.AsType[*Refusal](a.Err); ok {
			r.Problems = slices.Clone(r.Problems[:min(len(r.Problems), 10)])
		}
	}
	all.Wait()
	return answers
}

// Timer returns the definition of a timer that waits, and when it comes due.
func (o *Operator) Timer(ctx context.Context, id string) (source []byte, at time.Time, err error) {
	err = ErrNoTimer
	if config.IsTimerID(id) {
		source, at, err = o.Store.Timer(ctx, id)
	}
	switch {
	case errors.Is(err, ErrNoTimer):
		err = noTimer(id)
	case err != nil:
		err = RefusalOf(err)
	}
	return source, at, err
}

// FindAny is Find, of timers too. One that does not wait is only a name.
func (o *Operator) FindAny(ctx context.Context, name string) (config.Job, error) {
	if !IsTimer(name) {
		return o.Find(ctx, name)
	}
	j := config.Job{Name: name}
	source, at, err := o.Timer(ctx, TimerID(name))
	if err != nil {
		if r := RefusalOf(err); r.Kind != NoTimer {
			return j, err
		}
		return j, nil
	}
	if t, err := config.ParseTimer(TimerID(name), source, at); err == nil { // else another version wrote it
		j, j.Schedule = t.Job, t.Repeats
	}
	return j, nil
}

// DeleteTimer takes back a timer that waits.
func (o *Operator) DeleteTimer(ctx context.Context, id string) error {
	if config.IsTimerID(id) {
		removed, err := ask(ctx, o, func(ctx context.Context) (bool, error) { return o.Store.DeleteTimer(ctx, id) })
		if err != nil || removed {
			return err
		}
	}
	return noTimer(id)
}

// Timers returns the timers that wait, or with a group those of it, by the time at which they come due.
func (o *Operator) Timers(ctx context.Context, group string, limit int) (waiting []TimerState, err error) {
	if group == "" {
		waiting, err = o.Store.Timers(ctx, limit)
	} else if err = checkGroup(group); err == nil {
		waiting, err = o.Store.GroupTimers(ctx, group, limit)
	}
	if err != nil {
		err = RefusalOf(err)
	}
	return waiting, err
}

// noTimer is the refusal of an id under which no timer waits.
func noTimer(id string) *Refusal { return refuse(NoTimer, "no timer %q waits", id).of(id) }

// Search returns the entries of the history that are wanted, the newest first: without names, of all jobs and timers.
// It refuses a name that no job has, unless the history has runs of it.
func (o *Operator) Search(ctx context.Context, q Search) ([]Entry, error) {
	if len(q.Jobs) == 0 {
		jobs, err := o.Jobs(ctx)
		if err != nil {
			return nil, err
		}
		q.all = append(namesOf(jobs), rds.TimerJobs)
	}
	entries, err := o.Store.Search(ctx, q)
	if err != nil {
		return nil, RefusalOf(err)
	}
	for _, job := range q.Jobs {
		if IsTimer(job) || slices.ContainsFunc(entries, func(e Entry) bool { return e.Job == job }) {
			continue
		}
		if _, err := o.Find(ctx, job); err != nil {
			if runs, _ := o.Store.History(ctx, job, 1); len(runs) == 0 { // it may have been deleted since
				return nil, err
			}
		}
	}
	return entries, nil
}
