package command

import (
	"context"
	"fmt"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// NewReady returns a Ready that asks the app by the table's command. env is its environment, as of os.Environ; the
// command is told of no run. An error has the last line that the command printed. If the answer takes longer than the
// timeout, the command is killed at once with its process group: it has nothing to tidy up, and the next question
// comes soon. Probe returns at most a second later.
func NewReady(c config.Ready, env []string) *execute.Ready {
	e := New(config.Exec{Command: c.Exec}, Options{Env: env}).(*command)
	e.noRun = true
	e.grace = func(execute.Run) time.Duration { return 0 }
	return &execute.Ready{Timeout: c.Timeout, Ask: func(ctx context.Context) error {
		res := e.Execute(ctx, execute.Run{})
		if res.Reason != "" {
			return fmt.Errorf("%w: %s", res.Err, res.Reason)
		}
		return res.Err
	}}
}
