package sidecar

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// trialOf is an executor that runs for a second.
type trialOf struct {
	result execute.Result
	begins bool
	got    execute.Run
}

func (e *trialOf) Execute(ctx context.Context, r execute.Run) execute.Result {
	e.got = r
	if !e.begins {
		return e.result
	}
	r.Begun()
	select {
	case <-ctx.Done():
		return execute.Result{Status: execute.Canceled, Err: context.Cause(ctx), Code: -1}
	case <-time.After(time.Second):
		return e.result
	}
}

func TestATrialEndsAsARunDoes(t *testing.T) {
	refused := execute.Result{Status: execute.NotStarted, Err: errors.New("refused"), Code: -1}
	for name, row := range map[string]struct {
		executor *trialOf
		timeout  time.Duration
		cancel   time.Duration
		outcome  outcome
		took     time.Duration
	}{
		"well":          {&trialOf{result: execute.Result{Status: execute.Succeeded}, begins: true}, time.Minute, time.Hour, succeeded, time.Second},
		"badly":         {&trialOf{result: execute.Result{Status: execute.Failed}, begins: true}, time.Minute, time.Hour, failed, time.Second},
		"declined":      {&trialOf{result: execute.Result{Status: execute.Declined, Code: 409}, begins: true}, time.Minute, time.Hour, declined, time.Second},
		"too slow":      {&trialOf{begins: true}, time.Second / 2, time.Hour, timedOut, time.Second / 2},
		"by Ctrl-C":     {&trialOf{begins: true}, time.Minute, time.Second / 4, cancelled, time.Second / 4},
		"never started": {&trialOf{result: refused}, time.Minute, time.Hour, notStarted, 0},
		"impossible":    {&trialOf{result: execute.Result{Status: execute.Failed, Code: -1}}, time.Minute, time.Hour, notStarted, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), row.cancel)
				defer cancel()
				job := config.Job{Name: "mail", Timeout: row.timeout, Retry: config.Retry{Limit: 3, Backoff: time.Second}}
				now := time.Now()
				tried := Trial{Service: "shop", Replica: "mine", Job: job, Executor: row.executor}.Try(ctx)
				if tried.Outcome != string(row.outcome) || tried.Took != row.took {
					t.Errorf("%s after %s", tried.Outcome, tried.Took)
				}
				r := row.executor.got
				if r.Service != "shop" || r.Job != "mail" || r.Replica != "mine" || r.Kind != "manual" || r.Attempt != 1 || r.Token != 0 ||
					r.ID == "" || r.ID != tried.Run || !r.Tick.Equal(now.Truncate(time.Millisecond)) || !r.Tick.Equal(tried.Tick) {
					t.Errorf("the job was told %+v", r)
				}
			})
		})
	}
}
