package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

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
	checks(c, f.check)
}

func (f *waitFlags) check() error {
	if f.timeout.Duration > 0 && !f.wait {
		return usage(fmt.Sprintf("--wait --timeout %s", &f.timeout), "--timeout requires --wait")
	}
	return nil
}

// historyOfWait is how many runs of the job --wait looks through for the end of the one that it waits for.
const historyOfWait = 100

// errWaited is why a wait ends at its timeout.
var errWaited = errors.New("the time is over")

// asked tells how a request for a run goes on, and waits for the end of the run if that is wanted. before is the
// history of the job from before the request.
func (a *app) asked(ctx context.Context, op *operator, due lock.Due, before []service.Entry) error {
	a.warnIfNoReplica(ctx, op)
	result := view.NewTriggered(due)
	if !a.wait.wait {
		return a.printTriggered(result)
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
	entry, err := await(ctx, w, due)
	if err != nil {
		if errors.Is(context.Cause(ctx), errWaited) {
			return cannot("solotick history "+due.Job,
				"no longer waiting after %s; %s", &a.wait.timeout, w.stands())
		}
		return err
	}
	made := view.NewEntry(*entry, op.Table())
	result.Result = &made
	if err := a.printTriggered(result); err != nil {
		return err
	}
	if entry.Outcome != succeeded {
		return &failure{code: exitProblem} // the output says why
	}
	return nil
}

// quiet is for how long a wait says nothing: most runs begin at once.
const quiet = 2 * time.Second

// followed is the part of the store that shows what a run waits for.
type followed interface {
	records
	Replicas(ctx context.Context) ([]service.Replica, error)
}

// waiting are the records for await. It leaves out the runs from before the request, and says what the run waits for
// when that has changed.
type waiting struct {
	store  followed
	due    lock.Due
	now    func() time.Time // Redis' time
	out    io.Writer
	began  time.Time
	before map[string]bool // runs
	said   string

	refused *service.Entry // the last replica that could not start the run; nil = none is known
}

func (w *waiting) History(ctx context.Context, job string, limit int) ([]service.Entry, error) {
	history, err := w.store.History(ctx, job, limit)
	refused := func(e service.Entry) bool { return e.Outcome == service.HandedOver && e.Tick.Equal(w.due.Tick) }
	if i := slices.IndexFunc(history, refused); i >= 0 {
		last := history[i]
		w.refused = &last
	}
	return slices.DeleteFunc(history, func(e service.Entry) bool { return w.before[e.Run] }), err
}

func (w *waiting) States(ctx context.Context, jobs []string) (map[string]service.Ledger, error) {
	states, err := w.store.States(ctx, jobs)
	if err != nil {
		if ctx.Err() == nil {
			w.say("Redis does not answer")
		}
		return states, err
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
	return states, nil
}

// why says what keeps the run from its beginning.
func (w *waiting) why(state service.Ledger, replicas []service.Replica) string {
	silent := func(r service.Replica) bool { return w.now().Sub(r.Seen) > service.HeartbeatTimeout }
	replicas = slices.DeleteFunc(slices.Clone(replicas), silent)
	ready := slices.IndexFunc(replicas, func(r service.Replica) bool { return r.Ready == "" })
	switch {
	case len(replicas) == 0:
		return "no replica is running"
	case ready < 0:
		return "no replica is ready: " + replicas[0].Ready
	case len(state.Running) > 0:
		r := state.Running[0]
		return fmt.Sprintf("the run %s on %s is still going on", r.Run, r.Replica)
	}
	if w.refused != nil {
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
