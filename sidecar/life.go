package sidecar

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/solotick/solotick/sidecar/service"
)

// life is how long a replica takes new work, and how long its runs may last.
type life struct {
	accepting     context.Context // ends when no more ticks are taken
	stopAccepting context.CancelFunc
	working       context.Context // ends, with errShutdown, when running jobs have to end
	stopWorking   context.CancelCauseFunc
	fires         sync.WaitGroup // fires under way
	drained       chan struct{}  // closed when the last of them has ended, and no more can begin
}

func newLife() *life {
	l := &life{drained: make(chan struct{})}
	l.accepting, l.stopAccepting = context.WithCancel(context.Background())
	l.working, l.stopWorking = context.WithCancelCause(context.Background())
	return l
}

var (
	// errDraining is why a replica takes nothing new.
	errDraining = errors.New(service.Draining)
	// errShutdown is the cause with which a run's context ends at the end of the shutdown grace.
	errShutdown = errors.New("the shutdown grace is over")
)

// lookEvery is how often a replica reads the running set and the due set while there is something in them. After
// longestRest it looks when it wakes next: before the 31 seconds are over within which timer.lua tells of a timer.
const lookEvery, longestRest = time.Second, 25 * time.Second

// NoTable is why a replica that has started with a broken table takes no ticks.
const NoTable = "there is no table that can be used: nothing is fired here"
