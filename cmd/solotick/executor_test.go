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

func TestACommandGetsTheLimitsOfItsJob(t *testing.T) {
	e := executor(slog.New(slog.DiscardHandler), nil, nil, nil)(config.Job{
		Exec:      &config.Exec{Command: []string{"sh", "-c", `until [ "$(nice)" = 19 ]; do :; done`}}, // Solotick sets the niceness just after the start
		Resources: config.Resources{Nice: 19},
	})
	done := make(chan execute.Result)
	go func() { done <- e.Execute(t.Context(), execute.Run{}) }()
	select {
	case res := <-done:
		if res.Status != execute.Succeeded {
			t.Errorf("%+v", res)
		}
	case <-time.After(time.Minute):
		t.Error("its niceness stays")
	}
}

// A command that ignores TERM is killed within the second that a run has between the end of its trust in the lease and
// the end of the lease; left the grace of any other cancelled run, it would run beside the next.
func TestACommandWhoseLockIsLostIsKilledAtOnce(t *testing.T) {
	begun := make(chan struct{})
	log := slog.New(slog.NewTextHandler(hearing{"deaf", sync.OnceFunc(func() { close(begun) })}, nil))
	e := executor(log, nil, nil, nil)(config.Job{
		Exec: &config.Exec{Command: []string{"sh", "-c", `trap '' TERM; echo deaf; while :; do sleep 0.05; done`}},
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan execute.Result)
	go func() { done <- e.Execute(ctx, execute.Run{}) }()
	<-begun
	lost := time.Now()
	cancel(fmt.Errorf("renewing the lease: %w", lock.ErrLost))
	res := <-done
	if took := time.Since(lost); took > 3*time.Second || res.Status != execute.Canceled { // others have five seconds
		t.Errorf("it ended after %s: %+v", took, res)
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
