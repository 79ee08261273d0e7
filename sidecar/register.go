package sidecar

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/solotick/solotick/internal/diagnosis"
	"github.com/solotick/solotick/lock"
)

const (
	// registerAtOnce jobs are told to Redis in one burst.
	registerAtOnce = 100
	// registerEvery keeps the ledgers of the table's jobs from expiring.
	registerEvery = 24 * time.Hour
)

// register tells Redis of the jobs that it has not been told of today. When it has forgotten one it is told of all: data
// that was lost was lost whole, and each job would pay for it with its next tick.
func (w *watcher) register(ctx context.Context, born time.Time) {
	s := w.sidecar
	all := append(slices.AppendSeq(make([]*job, 0, len(s.jobs())+1), maps.Values(s.jobs())), s.timers)
	if !s.timers.registerDue() && !born.Equal(s.timers.bornAt()) {
		s.log.Warn("Redis has lost its data: registering all jobs anew")
		s.store.CheckLeases()
		for _, j := range all {
			j.forget()
		}
	}
	var (
		registering sync.WaitGroup
		mu          sync.Mutex
		refused     string // a job that Redis refused, and why
		why         error
	)
	slots := make(chan struct{}, registerAtOnce)
	for _, j := range all {
		if !j.registerDue() {
			continue
		}
		slots <- struct{}{}
		registering.Go(func() {
			defer func() { <-slots }()
			if err := s.tell(ctx, j); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if why == nil || j != s.timers { // a name that readers of the log do not know
					refused, why = j.name, err
				}
			}
		})
	}
	registering.Wait()
	if ctx.Err() == nil {
		w.registered(refused, why)
	}
	w.gone.Range(func(_, gone any) bool {
		w.deregister(ctx, gone.(*job))
		return ctx.Err() == nil
	})
}

// registered logs when Redis answers but takes no jobs, and when it takes them again. A Redis that is a replica, or whose user
// may not write, takes none.
func (w *watcher) registered(refused string, err error) {
	switch {
	case err != nil:
		w.trouble.tell(w.sidecar.log, diagnosis.Of(err), "job", refused)
	case w.trouble.says != "":
		w.sidecar.log.Info("Redis takes the jobs")
		w.trouble.over()
	}
}

// tell makes a job known to Redis. One that every replica ran before is back: what was fired meanwhile is not fired again.
func (s *Sidecar) tell(ctx context.Context, j *job) error {
	i, ok := j.introduces(s.clock.Now())
	if !ok {
		return nil
	}
	if i.again {
		if _, err := s.store.Register(ctx, j.name, lock.NoTicks); err != nil {
			return err
		}
	}
	l, err := s.store.RegisterAgain(ctx, j.name, i.spec.fingerprint(), i.before)
	if err == nil {
		j.registeredAs(i, l)
	}
	return err
}

// deregister tells Redis that the job has left the table. Where another replica has it still, nothing comes of that but
// ticks missed before this moment that are not counted.
func (w *watcher) deregister(ctx context.Context, j *job) {
	s := w.sidecar
	if s.job(j.name) == nil {
		if _, err := s.store.Register(ctx, j.name, lock.NoTicks); err != nil {
			return // and tries again at the next look
		}
	}
	w.gone.CompareAndDelete(j.name, j)
}
