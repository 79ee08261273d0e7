package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// waitFlags say whether to wait for the end of a run, and for how long.
type waitFlags struct {
	wait    bool
	timeout length
}

func (f *waitFlags) flags(c *cobra.Command) {
	c.Flags().BoolVar(&f.wait, "wait", false, "wait for the end of the run and show it")
	f.timeout.example = "10m"
	c.Flags().Var(&f.timeout, "timeout", "longest `duration` of --wait, such as 90s or 10m (default: no limit)")
	checks(c, func() error {
		if f.timeout.Duration > 0 && !f.wait {
			return usage(fmt.Sprintf("--wait --timeout %s", &f.timeout), "--timeout requires --wait")
		}
		return nil
	})
}

// historyOfWait is how many runs of the job --wait looks through for the end of the one that it waits for.
const historyOfWait = 100

// lookInterval is how often --wait asks Redis: it reports the end of a run late by up to this.
const lookInterval = 500 * time.Millisecond

// errWaited is why a wait ends at its timeout.
var errWaited = errors.New("the time is over")

// asked tells how a request for a run goes on, and waits for the end of the run if that is wanted. before is the
// history of the job from before the request.
func (a *app) asked(ctx context.Context, op *operator, due lock.Due, before []service.Entry) error {
	a.warnIfNoReplica(ctx, op)
	result := view.NewTriggered(due)
	if !a.wait.wait {
		return a.answer(result)
	}
	if limit := a.wait.timeout.Duration; limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, limit, errWaited)
		defer cancel()
		ctx = limited
	}
	w := &waiting{store: op.Store, due: due, now: op.now, out: a.err, began: time.Now(), before: map[string]bool{}}
	for _, e := range before {
		w.before[e.Run] = true
	}
	entry, err := w.end(ctx)
	if err != nil {
		if errors.Is(context.Cause(ctx), errWaited) {
			return cannot("solotick history "+due.Job, "no longer waiting after %s; %s", &a.wait.timeout, w.stands())
		}
		return err
	}
	made := view.NewEntry(*entry)
	result.Result = &made
	said := fmt.Sprintf("%s on %s", made.Outcome, made.Replica)
	if made.DurationMS > 0 {
		said += " after " + took(time.Duration(made.DurationMS)*time.Millisecond)
	}
	lines := []string{text.OneLine(said + ": run " + made.Run)}
	if made.Detail != "" {
		lines = append(lines, "  "+text.OneLine(made.Detail))
	}
	return a.judge(made.Outcome == succeeded, result, lines...)
}

// succeeded is the outcome of a run without a failure.
const succeeded = "succeeded"

// quiet is for how long a wait says nothing: most runs begin at once.
const quiet = 2 * time.Second

// followed is the part of the store that shows how a tick ended, and what it waits for.
type followed interface {
	History(ctx context.Context, job string, limit int) ([]service.Entry, error)
	States(ctx context.Context, jobs []string) (map[string]service.Ledger, error)
	Replicas(ctx context.Context) ([]service.Replica, error)
}

// waiting waits for the end of a tick, and says what it waits for when that has changed.
type waiting struct {
	store  followed
	due    lock.Due
	now    func() time.Time // Redis' time
	out    io.Writer
	began  time.Time
	before map[string]bool // runs from before the request, which do not count
	said   string

	refused *service.Entry // the last replica that could not start the run; nil = none is known
}

// end asks Redis until the tick has ended, and returns its end. The tick may be handed over from replica to replica.
// Errors of Redis do not end the wait.
func (w *waiting) end(ctx context.Context) (*service.Entry, error) {
	for gone := 0; ; {
		// If another replica repeats the newest run of the tick, the state shows the repetition, or the history that is
		// read after the state has its end.
		history, err := w.history(ctx)
		var state service.Ledger
		if err == nil {
			state, err = w.state(ctx)
		}
		if entry, over := ending(w.due, history, state); err == nil && over {
			if entry != nil && entry.Outcome != service.HandedOver {
				after, err := w.history(ctx)
				newest, _ := ending(w.due, after, state)
				if err == nil && newest != nil && newest.Run == entry.Run {
					return entry, nil
				}
				continue
			}
			switch gone++; { // the tick may have ended, or been handed over, between the two reads
			case gone < 3:
			case entry != nil: // the next replica has dropped it
				return entry, nil
			default:
				return nil, problem(
					"a replica may have dropped it, or Redis may have lost its data: see the replicas' logs",
					"the run neither waits nor runs, and the history does not have it")
			}
		}
		if !beat.Sleep(ctx, lookInterval) {
			return nil, cannot("solotick history "+w.due.Job, "no longer waiting; the run goes on")
		}
	}
}

// ending reports whether a tick no longer waits or runs, and returns its newest entry in the history; nil if there is
// none. The history must have its newest entry first.
func ending(due lock.Due, history []service.Entry, state service.Ledger) (entry *service.Entry, over bool) {
	if slices.ContainsFunc(state.Waiting, func(w lock.Due) bool { return w.Tick.Equal(due.Tick) }) ||
		slices.ContainsFunc(state.Running, func(r service.RunState) bool { return r.Tick.Equal(due.Tick) }) {
		return nil, false
	}
	i := slices.IndexFunc(history, func(e service.Entry) bool { return e.Tick.Equal(due.Tick) })
	if i < 0 {
		return nil, true
	}
	return &history[i], true
}

// history returns the newest runs of the job, without those from before the request.
func (w *waiting) history(ctx context.Context) ([]service.Entry, error) {
	history, err := w.store.History(ctx, w.due.Job, historyOfWait)
	refused := func(e service.Entry) bool { return e.Outcome == service.HandedOver && e.Tick.Equal(w.due.Tick) }
	if i := slices.IndexFunc(history, refused); i >= 0 {
		w.refused = new(history[i])
	}
	return slices.DeleteFunc(history, func(e service.Entry) bool { return w.before[e.Run] }), err
}

// state returns the state of the job, and says what it tells of the run.
func (w *waiting) state(ctx context.Context) (service.Ledger, error) {
	states, err := w.store.States(ctx, []string{w.due.Job})
	if err != nil && ctx.Err() == nil {
		w.say("Redis does not answer")
	}
	state := states[w.due.Job]
	ours := func(r service.RunState) bool { return r.Tick.Equal(w.due.Tick) && !w.before[r.Run] }
	if i := slices.IndexFunc(state.Running, ours); i >= 0 {
		r := state.Running[i]
		w.say(fmt.Sprintf("running on %s since %s UTC", r.Replica, r.Since.UTC().Format(time.TimeOnly)))
	} else if slices.ContainsFunc(state.Waiting, func(d lock.Due) bool { return d.Tick.Equal(w.due.Tick) }) {
		if replicas, err := w.store.Replicas(ctx); err == nil {
			w.say("waiting: " + w.why(state, replicas))
		}
	}
	return state, err
}

// why says what keeps the run from its beginning.
func (w *waiting) why(state service.Ledger, replicas []service.Replica) string {
	look := view.Look{Now: w.now(), Replicas: replicas}
	replicas = look.Live()
	ready := slices.IndexFunc(replicas, func(r service.Replica) bool { return r.Ready == "" })
	switch {
	case len(replicas) == 0:
		return "no replica is running"
	case ready < 0:
		return "no replica is ready: " + replicas[0].Ready
	case len(state.Running) > 0:
		r := state.Running[0]
		return fmt.Sprintf("the run %s on %s is still going on", r.Run, r.Replica)
	case w.refused != nil:
		return fmt.Sprintf("%s could not start it: %s", w.refused.Replica, w.refused.Detail)
	}
	return "no ready replica has taken it; all slots may be taken"
}

func (w *waiting) say(what string) {
	if what != w.said && time.Since(w.began) >= quiet {
		w.said = what
		fmt.Fprintf(w.out, "note: %s\n", text.OneLine(what))
	}
}

// stands says what has become of the run when nobody waits for it any more.
func (w *waiting) stands() string {
	if w.said == "" {
		return "the run goes on"
	}
	return "the run goes on or still waits: " + text.OneLine(w.said)
}
