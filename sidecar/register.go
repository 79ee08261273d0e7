package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/solotick/solotick/lock"
)

// registerAtOnce is how many jobs are registered at the same time.
const registerAtOnce = 100

// registrar tells Redis which jobs there are.
type registrar struct {
	locks       *lock.Store
	log         *slog.Logger
	now         func() time.Time // the cluster clock's
	jobs        func() roster
	timerLedger *job     // stands for all timers
	gone        sync.Map // by name: jobs that left the table, and that Redis still has; written by reloads and looks
}

// registerAll tells Redis of the jobs that it has not been told of today. It tells a Redis that came back of all jobs:
// if one ledger is gone, so may be all, and an unregistered job loses its next tick; or its data may be older than its
// claims. registerAll returns a job that Redis refused, and why.
func (g *registrar) registerAll(ctx context.Context, born time.Time, came bool) (refused string, why error) {
	jobs := g.jobs()
	lost := !g.timerLedger.registerDue(time.Now()) && !born.Equal(g.timerLedger.bornAt())
	if lost {
		g.log.Warn("Redis has lost its data: registering all jobs anew")
	}
	if lost || came {
		g.locks.CheckLeases("")
		g.timerLedger.forget()
		for _, j := range jobs {
			j.forget()
		}
	}
	var (
		registering sync.WaitGroup
		mu          sync.Mutex
	)
	atOnce := make(chan struct{}, registerAtOnce)
	for _, j := range g.unregistered(jobs) {
		atOnce <- struct{}{}
		registering.Go(func() {
			defer func() { <-atOnce }()
			if err := g.register(ctx, j); err != nil && !errors.Is(err, errLeft) {
				mu.Lock()
				defer mu.Unlock()
				if why == nil || j != g.timerLedger { // a name that readers of the log do not know
					refused, why = j.name, err
				}
			}
		})
	}
	registering.Wait()
	g.gone.Range(func(_, gone any) bool {
		g.deregister(ctx, gone.(*job))
		return ctx.Err() == nil
	})
	if ctx.Err() != nil {
		return "", nil
	}
	return refused, why
}

// owes reports whether Redis has yet to be told of a job that left.
func (g *registrar) owes() (some bool) {
	g.gone.Range(func(any, any) bool { some = true; return false })
	return some
}

// unregistered are the jobs that Redis must be told of.
func (g *registrar) unregistered(jobs roster) []*job {
	var due []*job
	at := time.Now()
	for _, j := range jobs {
		if j.registerDue(at) {
			due = append(due, j)
		}
	}
	if g.timerLedger.registerDue(at) {
		due = append(due, g.timerLedger)
	}
	return due
}

var errLeft = errors.New("the job has left the table")

// register makes a job known to Redis.
func (g *registrar) register(ctx context.Context, j *job) error {
	sp, known := j.registration(g.now())
	if sp == nil {
		return errLeft
	}
	l, err := g.locks.RegisterAgain(ctx, j.name, sp.fingerprint(), known)
	if err == nil {
		j.registeredAs(sp, l)
	}
	return err
}

// deregister tells Redis that the job has left the table. Where another replica has it still, nothing comes of that but
// ticks missed before this moment that are not counted.
func (g *registrar) deregister(ctx context.Context, j *job) {
	if g.jobs()[j.name] == nil {
		if _, err := g.locks.Register(ctx, j.name, lock.NoTicks); err != nil {
			return // and tries again at the next look
		}
	}
	g.gone.CompareAndDelete(j.name, j)
}
