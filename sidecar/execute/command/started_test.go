package command

import (
	"context"
	"testing"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// Starts are counted by this call: one too many is a tick fired twice in the eyes of an operator.
func TestStartedIsCalledOnceWhenTheCommandBegins(t *testing.T) {
	for path, want := range map[string]struct {
		status  execute.Status
		started int
	}{
		"/bin/true": {execute.Succeeded, 1},
		"/no/such":  {execute.NotStarted, 0},
	} {
		started := 0
		r := aRun()
		r.Started = func() { started++ }
		res := New(config.Exec{Command: []string{path}}, Options{}).Execute(t.Context(), r)
		if res.Status != want.status || started != want.started {
			t.Errorf("%s: %s (%v) after %d calls of Started", path, res.Status, res.Err, started)
		}
	}
}

// A command that may not begin, because its lock was lost while it was made ready, is not started.
func TestACommandThatMayNotBeginIsNotBegun(t *testing.T) {
	ctx, cancel := contextWithCause(t)
	r := aRun()
	r.Await = func(context.Context) { cancel(errLockLost) }
	r.Started = func() { t.Error("Started was called") }
	wantCause(t, New(config.Exec{Command: []string{"/bin/true"}}, Options{}).Execute(ctx, r))
}
