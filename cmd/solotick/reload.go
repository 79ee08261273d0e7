package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar"
)

// lookAtTable is how often the replica looks at the table's file. It reads a changed file at the second look that finds
// it the same, so that it never reads half a change.
const lookAtTable = time.Second

// reloadWhenTold reloads the table whenever its file changes or SIGHUP arrives, until ctx ends.
func (a *app) reloadWhenTold(ctx context.Context, background *sync.WaitGroup, s *sidecar.Sidecar, log *slog.Logger) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGHUP)
	changed := make(chan struct{}, 1)
	background.Go(func() {
		config.Watch(ctx, a.config, lookAtTable, func() {
			select {
			case changed <- struct{}{}:
			default: // a reload is pending already
			}
		})
	})
	background.Go(func() {
		defer signal.Stop(told)
		for {
			select {
			case <-changed:
			case <-told:
				log.Info("SIGHUP: reading the table")
			case <-ctx.Done():
				return
			}
			before := s.Table()
			t, source, err := a.load()
			if s.Reload(t, err) != nil {
				continue
			}
			a.state.keep(source, log)
			if s.Table() != before {
				warn(log, t)
			}
		}
	})
}

// warn logs the table's warnings.
func warn(log *slog.Logger, t *config.Table) {
	for _, w := range t.Warnings {
		log.Warn(w.Message, "file", w.File, "line", w.Line)
	}
}
