package lock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/lock"
)

// flights counts round trips of a client.
type flights struct{ n atomic.Int64 }

func (f *flights) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f *flights) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		f.n.Add(1)
		return next(ctx, cmd)
	}
}
func (f *flights) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		f.n.Add(1)
		return next(ctx, cmds)
	}
}

// occupy keeps both of a burst's flights under way for d, so that what is called next gathers behind them. The two calls
// have ended when done returns.
func (r *replica) occupy(d time.Duration) (done func()) {
	var wg sync.WaitGroup
	for i := range 2 { // one after the other, or they would share a flight
		f := r.proxy.On(lossy.Script(lock.RegisterSHA), 1, lossy.Delay(d))
		wg.Go(func() {
			if _, err := r.Register(r.w.Context(), fmt.Sprint("busy", i), ""); err != nil {
				r.w.Error(err)
			}
		})
		<-f.Struck()
	}
	return wg.Wait
}

func TestThousandCallsAtOnceAreAHandfulOfRoundTrips(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		a := w.slowReplica("a", time.Minute)
		w.must(a.Sync(w.Context()))
		f := &flights{}
		a.rdb.AddHook(f)
		arrived := a.proxy.Count(lossy.Script(lock.RegisterSHA))
		defer a.occupy(500 * time.Millisecond)()
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				if l, err := a.Register(w.Context(), fmt.Sprint("job", i), ""); err != nil || l.Born.IsZero() {
					w.Errorf("%+v, %v", l, err)
				}
			})
		}
		wg.Wait()
		// Two alone, the rest in full batches; a new connection adds its greeting.
		if n := f.n.Load(); n > 2+1000/lock.BatchSize+2 || arrived.N() != 1002 {
			w.Errorf("%d round trips for %d calls", n, arrived.N())
		}
		keys, err := w.admin.Keys(w.Context(), "solotick:{svc}:job:job*").Result()
		if err != nil || len(keys) != 1000 {
			w.Errorf("%d registered, %v", len(keys), err)
		}
	})
}

func TestCancelledCallerNeitherHangsNorLosesOthers(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		a := w.slowReplica("a", time.Minute)
		w.must(a.Sync(w.Context()))
		late := 500 * time.Millisecond
		defer a.occupy(late)()
		ctx, cancel := context.WithCancel(w.Context())
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				_, err := a.Register(w.Context(), fmt.Sprint("patient", i), "")
				if err != nil {
					w.Error(err)
				}
			})
			wg.Go(func() {
				_, err := a.Register(ctx, fmt.Sprint("cancelled", i), "")
				if !errors.Is(err, context.Canceled) {
					w.Error(err)
				}
				if d := time.Since(began); w.mini != nil && d != late/2 {
					w.Errorf("a cancelled call came back after %s", d)
				}
			})
		}
		time.AfterFunc(late/2, cancel)
		wg.Wait()
		if _, err := a.Register(ctx, "too-late", ""); !errors.Is(err, context.Canceled) {
			w.Error(err)
		}
	})
}

func TestErrorOfOneCommandDoesNotSpoilTheOthersOfItsBurst(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		a := w.slowReplica("a", time.Minute)
		w.must(a.Sync(w.Context()))
		w.must(w.admin.Set(w.Context(), "solotick:{svc}:job:bad", "not a hash", 0).Err())
		defer a.occupy(300 * time.Millisecond)()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				if _, err := a.Register(w.Context(), fmt.Sprint("good", i), ""); err != nil {
					w.Error(err)
				}
			})
			wg.Go(func() {
				if _, err := a.Register(w.Context(), "bad", ""); err == nil || errors.Is(err, context.DeadlineExceeded) {
					w.Errorf("the bad one: %v", err)
				}
			})
		}
		wg.Wait()
	})
}

func TestOtherRequestsFailureInTheCauseSaysNothingOfThisRequest(t *testing.T) {
	inBubble(t, func(w *world) {
		w.warm()
		w.born()
		a := w.replica("a")
		w.must(a.Sync(w.Context()))
		for name, cause := range map[string]error{
			"a dial that failed": &net.OpError{Op: "dial", Err: errors.New("connection refused")},
			"a closed client":    redis.ErrClosed,
			"a refusal of Redis": redis.ErrNoScript,
		} {
			ctx, cancel := context.WithCancelCause(w.Context())
			f := a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.HangReply)
			go func() {
				<-f.Struck()
				cancel(fmt.Errorf("another job: %w", cause))
			}()
			l, _, err := a.Store.Acquire(ctx, lock.Claim{Job: job, Tick: w.tick(1), TTL: w.ttl, Run: name[:1] + "-run"})
			if l != nil || !errors.Is(err, cause) {
				w.Fatalf("%s: %v, %v", name, l, err)
			}
			a.proxy.Heal()
			if w.runs() != 0 {
				w.Errorf("%s: a claim was left with nobody", name)
			}
			w.must(w.admin.HSet(w.Context(), ledger, "tick", 1).Err())
		}
	})
}
