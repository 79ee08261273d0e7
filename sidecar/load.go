package sidecar

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/machine"
)

// load has this replica leave ticks to others, for a moment each, while it is busy and one of them is not. Nothing of
// it but busy changes once the replica is made.
type load struct {
	read       func() (machine.Load, error) // nil = there is nothing to read
	table      func() *config.Table         // in force
	rendezvous *rendezvous
	slots      *slots
	metrics    *metrics
	log        *slog.Logger

	busy atomic.Bool // the load is above the limit: the heartbeat tells the others
}

const (
	readEvery = time.Second     // how often the load is read
	askEvery  = 5 * time.Second // how often a replica without a limit looks whether its table has one
)

// run reads the load again and again, until ctx ends.
func (l *load) run(ctx context.Context) {
	failed := false
	for ctx.Err() == nil {
		why, wait := "", askEvery
		if limit := l.table().Busy; limit != (config.Busy{}) && l.read != nil {
			now, err := l.read()
			wait = readEvery
			if why = above(now, limit); err != nil {
				why = ""
			}
			if (err != nil) != failed {
				if failed = err != nil; failed {
					l.log.Error("this replica never counts as busy", "err", err)
				}
			}
		}
		l.report(why)
		pause(ctx, wait)
	}
}

// above tells what of the load is at or above its limit; "" if nothing is.
func above(now machine.Load, limit config.Busy) string {
	for _, part := range []struct {
		name  string
		used  float64
		limit int
	}{{"cpu", now.CPU, limit.CPU}, {"memory", now.Memory, limit.Memory}} {
		if percent := int(math.Round(100 * part.used)); part.limit > 0 && percent >= part.limit {
			return fmt.Sprintf("%s at %d%%, with a limit of %d%%", part.name, percent, part.limit)
		}
	}
	return ""
}

// report records why the replica is busy; "" if it is not. While no other replica could do better, it takes ticks at once.
func (l *load) report(why string) {
	l.busy.Store(why != "")
	if !l.rendezvous.spare.Load() {
		why = ""
	}
	before := l.slots.set(&l.slots.busy, why)
	show(l.metrics.busy, why != "")
	switch {
	case why != "" && before == "":
		l.log.Warn("this replica is busy: leaving ticks to others", "why", why)
	case why == "" && before != "":
		l.log.Info("this replica takes ticks again")
	}
}
