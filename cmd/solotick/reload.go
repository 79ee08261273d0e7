package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/sidecar"
)

// complainEvery is how often a replica without a usable table reads it again, and so logs what is wrong. Tests are in a
// hurry.
var complainEvery = time.Minute

// reloadWhenTold reloads the table whenever its file changes or SIGHUP arrives, until ctx ends. source is the content
// of the file that the table in force was read from; nil if that was another file. It calls end if a replica without a
// table needs a restart for the one that it now has: there is nothing to keep.
func (a *app) reloadWhenTold(ctx context.Context, background *sync.WaitGroup, s *sidecar.Sidecar, source []byte,
	end func(error), log *slog.Logger) {
	inForce := sha256.Sum256(source)
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGHUP)
	changed := make(chan struct{}, 1)
	background.Go(func() {
		config.Watch(ctx, a.config, beat.Rest, func() { beat.Kick(changed) })
	})
	background.Go(func() {
		defer signal.Stop(told)
		for {
			select {
			case <-changed:
				// The first report comes even if the file is as it was. To read thousands of jobs takes as long as the
				// start.
				if found, err := config.ReadFile(a.config); err == nil && sha256.Sum256(found) == inForce {
					continue
				}
			case <-time.After(complainEvery):
				if s.Table().MaxRunning >= 0 {
					continue
				}
			case <-told:
				log.Info("SIGHUP: reading the table")
			case <-ctx.Done():
				return
			}
			before := s.Table()
			t, source, err := a.load()
			if err == nil && before.MaxRunning < 0 && before.Restart(t) != nil {
				end(fmt.Errorf("the table is mended: %w", before.Restart(t)))
				return
			}
			if s.Reload(t, err) != nil {
				inForce = [sha256.Size]byte{}
				continue
			}
			inForce = sha256.Sum256(source)
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
