package service_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// cancels cancels a run, and demands that it lived.
func cancels(w *redisworld.World, s *service.Store, l *lock.Lease) {
	w.Helper()
	if lived, err := s.Cancel(w.Context(), job, []string{l.Run()}, uuid.NewString()); err != nil || !slices.Equal(lived, []string{l.Run()}) {
		w.Fatalf("cancelled %q, %v; want %s", lived, err, l.Run())
	}
}

func TestACancelledRunEndsForGoodHoweverItEnds(t *testing.T) {
	for name, end := range map[string]func(w *redisworld.World, a *redisworld.Replica, l *lock.Lease) error{
		"finish": func(w *redisworld.World, _ *redisworld.Replica, l *lock.Lease) error {
			_, err := l.Finish(w.Context(), 0, lock.Ending{})
			return err
		},
		"requeue": func(w *redisworld.World, _ *redisworld.Replica, l *lock.Lease) error {
			_, err := l.Requeue(w.Context(), lock.Ending{})
			return err
		},
		"handover": func(w *redisworld.World, _ *redisworld.Replica, l *lock.Lease) error {
			_, err := l.Handover(w.Context(), 0, lock.Ending{})
			return err
		},
		"reap": func(w *redisworld.World, a *redisworld.Replica, l *lock.Lease) error {
			a.Reaps(1)
			_, err := l.Handover(w.Context(), 0, lock.Ending{}) // evidence that it never started
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, again := range []bool{false, true} {
				redisworld.InBubble(t, func(w *redisworld.World) {
					w.Born()
					a := w.Replica("a")
					c := a.Claim(-5)
					c.Again = again
					l, _ := a.Wins(c)
					w.Must(l.Verify(w.Context()))
					cancels(w, a.Service.As(by), l)
					if err := l.Verify(w.Context()); !errors.Is(err, lock.ErrCancelled) || !l.Trusted() {
						w.Errorf("extending a cancelled run: %v, trusted %t", err, l.Trusted())
					}
					w.Must(end(w, a, l))
					if ds := w.Dues(); len(ds) != 0 || strings.Contains(w.Dump(), "x:"+l.Run()) {
						w.Errorf("again %t: due are %+v, and Redis holds %s", again, ds, w.Dump())
					}
					next, _ := a.Wins(a.Claim(-4))
					w.Must(next.Verify(w.Context()))
				})
			}
		})
	}
}

func TestOnlyTheNamedRunsThatLiveAreCancelled(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		first, _ := a.Wins(a.ClaimUnder(lock.Allow, -5))
		second, _ := a.Wins(a.ClaimUnder(lock.Allow, -4))
		over, _ := a.Wins(a.ClaimUnder(lock.Allow, -3))
		a.Finishes(over, 0)
		s := a.Service.As(by)
		lived, err := s.Cancel(w.Context(), job, []string{over.Run(), second.Run()}, uuid.NewString())
		if err != nil || !slices.Equal(lived, []string{second.Run()}) {
			w.Errorf("cancelled %q, %v", lived, err)
		}
		w.Must(first.Verify(w.Context()))
		if err := second.Verify(w.Context()); !errors.Is(err, lock.ErrCancelled) {
			w.Errorf("the other: %v", err)
		}
		lived, err = s.Cancel(w.Context(), job, []string{over.Run()}, uuid.NewString())
		if err != nil || len(lived) != 0 {
			w.Errorf("what is over: %q, %v", lived, err)
		}
		acts, err := s.Acts(w.Context(), "", 9)
		if err != nil || len(acts) != 1 || acts[0].What != "cancel" || !slices.Equal(acts[0].Runs, []string{second.Run()}) || acts[0].By != by.By {
			w.Errorf("the acts are %+v, %v", acts, err)
		}
		if _, err := s.Cancel(w.Context(), "nobodys", []string{over.Run()}, uuid.NewString()); !errors.Is(err, service.ErrUnknownJob) {
			w.Errorf("of a job that Redis does not know: %v", err)
		}
	})
}

func TestTheKeeperOfACancelledRunHearsOfItAtOnce(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		listening, stop := context.WithCancel(w.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.Service.Listen(listening, func(string) {}, func(lock.Heard) {})
		}()
		defer func() { stop(); <-done }()
		w.Pass(time.Second)
		l, _ := a.Wins(a.Claim(-5))
		kept, end := l.Keep(w.Context())
		defer end()
		w.Pass(100 * time.Millisecond)
		cancels(w, w.Replica("b").Service, l)
		w.Pass(100 * time.Millisecond)
		if cause := context.Cause(kept); !errors.Is(cause, lock.ErrCancelled) {
			w.Errorf("the cause is %v", cause)
		}
		w.Pass(3 * w.TTL) // however long it takes to end, nobody takes it over
		if owner := w.Owner(); owner != l.Run() {
			w.Errorf("the lock is of %q", owner)
		}
	})
}

func TestUnansweredCancelIsAskedAgainAndAnsweredTheSame(t *testing.T) {
	onOperatorsLoss(t, func(w *redisworld.World, loss lossy.Action) {
		a, b := w.Replica("a"), w.Replica("b")
		_, err := b.Service.Cancel(w.Context(), "warm", nil, uuid.NewString()) // its script is known to Redis
		w.Must(err)
		l, _ := a.Wins(a.Claim(0))
		asked := b.Proxy.Count(lossy.Script(service.CancelSHA))
		b.Proxy.On(lossy.Script(service.CancelSHA), 1, loss)
		cancels(w, b.Service, l)
		if asked.N() != 2 {
			w.Errorf("asked %d times", asked.N())
		}
		acts, err := b.Service.Acts(w.Context(), job, 9)
		if err != nil || len(acts) != 1 {
			w.Errorf("the acts are %+v, %v", acts, err)
		}
	})
}

// The copy was under way while the run ended: the answer is the one of before, and the run of now is none of it.
func TestACancelThatComesLateHitsNoLaterRun(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		first, _ := a.Wins(a.Claim(-5))
		id := uuid.NewString()
		_, err := a.Service.Cancel(w.Context(), job, []string{first.Run()}, id)
		w.Must(err)
		a.Finishes(first, 0)
		later, _ := a.Wins(a.Claim(-4))
		if lived, err := a.Service.Cancel(w.Context(), job, []string{first.Run()}, id); err != nil || !slices.Equal(lived, []string{first.Run()}) {
			w.Errorf("asked again: %q, %v", lived, err)
		}
		if lived, err := a.Service.Cancel(w.Context(), job, []string{first.Run()}, uuid.NewString()); err != nil || len(lived) != 0 {
			w.Errorf("another request: %q, %v", lived, err)
		}
		w.Must(later.Verify(w.Context()))
	})
}
