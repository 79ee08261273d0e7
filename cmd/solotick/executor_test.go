package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

// A command that ignores TERM is killed within the second that a run has between the end of its trust in the lease and
// the end of the lease. With the grace of another cancelled run, five seconds, it would run beside the next.
func TestACommandWhoseLockIsLostIsKilledBeforeOthers(t *testing.T) {
	t.Parallel()
	ended := make(chan string, 2)
	begin := func(how string) (end context.CancelCauseFunc) {
		begun := make(chan struct{})
		log := slog.New(slog.NewTextHandler(hearing{"deaf", sync.OnceFunc(func() { close(begun) })}, nil))
		e := executor(log, nil, nil)(config.Job{
			Exec: &config.Exec{Command: []string{"sh", "-c", `trap '' TERM; echo deaf; while :; do sleep 0.05; done`}},
		})
		ctx, end := context.WithCancelCause(t.Context())
		go func() {
			r := execute.Run{Lasts: func(time.Duration) bool { return how != "lost" }}
			if res := e.Execute(ctx, r); res.Status != execute.Canceled {
				t.Errorf("%s: %+v", how, res)
			}
			ended <- how
		}()
		<-begun
		return end
	}
	cancelled, lost := begin("cancelled"), begin("lost")
	cancelled(context.Canceled)
	time.Sleep(time.Second) // with the same grace, the other would now end a second later
	lost(fmt.Errorf("renewing the lease: %w", lock.ErrLost))
	if first, second := <-ended, <-ended; first != "lost" {
		t.Errorf("%s ended before %s", first, second)
	}
}

// hearing is a log that tells when a line has a text.
type hearing struct {
	text  string
	heard func()
}

func (h hearing) Write(line []byte) (int, error) {
	if strings.Contains(string(line), h.text) {
		h.heard()
	}
	return len(line), nil
}
