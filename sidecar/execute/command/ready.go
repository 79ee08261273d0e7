package command

import (
	"context"
	"fmt"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// NewReady returns what asks the app by the table's command, with env as its environment, as of os.Environ: it is told of
// no run, since there is none. Of what the command says an error has the last line. When the answer takes longer than the
// timeout the command is killed at once with its process group: it has nothing to tidy up, and the next question comes
// soon. Probe returns at most a second later.
func NewReady(c config.Ready, env []string) *execute.Ready {
	e := New(config.Exec{Command: c.Exec}, Options{Env: env}).(*command)
	e.noRun = true
	e.grace = func(error) time.Duration { return 0 }
	return &execute.Ready{Timeout: c.Timeout, Ask: func(ctx context.Context) error {
		res := e.Execute(ctx, execute.Run{})
		if res.Reason != "" {
			return fmt.Errorf("%w: %s", res.Err, res.Reason)
		}
		return res.Err
	}}
}
