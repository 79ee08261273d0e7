package main

import (
	"log/slog"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

func TestACommandGetsTheLimitsOfItsJob(t *testing.T) {
	e := executor(slog.New(slog.DiscardHandler))(config.Job{
		Exec:      &config.Exec{Command: []string{"sh", "-c", `until [ "$(nice)" = 19 ]; do :; done`}}, // it is set just after the start
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
