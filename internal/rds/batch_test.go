package rds_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
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

func TestThousandCallsAtOnceAreAHandfulOfRoundTrips(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		a := w.SlowReplica("a", time.Minute)
		w.Must(a.Sync(w.Context()))
		f := &flights{}
		a.Client.AddHook(f)
		arrived := a.Proxy.Count(w.Script("../../lock/register.lua"))
		a.Gather(1000, func(i int) {
			if l, err := a.Register(w.Context(), fmt.Sprint("job", i), ""); err != nil || l.Born.IsZero() {
				w.Errorf("%+v, %v", l, err)
			}
		})
		// Two alone, the rest in full batches; a new connection adds its greeting.
		if n := f.n.Load(); n > 2+1000/rds.BatchSize+2 || arrived.N() != 1002 {
			w.Errorf("%d round trips for %d calls", n, arrived.N())
		}
		keys, err := w.Admin.Keys(w.Context(), "solotick:{svc}:job:job*").Result()
		if err != nil || len(keys) != 1000 {
			w.Errorf("%d registered, %v", len(keys), err)
		}
	})
}

func TestABatchSendsTheSourceOfAScriptOnce(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		a := w.SlowReplica("a", time.Minute)
		w.Must(a.Sync(w.Context()))
		w.Must(w.Admin.ScriptFlush(w.Context()).Err())
		sources := a.Proxy.Count(lossy.Command("eval"))
		a.Gather(500, func(i int) {
			if counted, err := a.Book(w.Context(), fmt.Sprint("job", i), "1-3 ", nil); err != nil || counted {
				w.Errorf("%t, %v", counted, err)
			}
		})
		before := sources.N()
		if before > 4 { // two batches are under way at once: of a call that registers, then of many that book
			w.Errorf("sources were sent %d times", before)
		}
		w.Must(w.Admin.ScriptFlush(w.Context()).Err()) // as a restart does
		if l, err := a.Register(w.Context(), "after", ""); err != nil || l.Born.IsZero() || sources.N() != before+1 {
			w.Errorf("%+v, %v, and %d sources", l, err, sources.N())
		}
	})
}

func TestCancelledCallerNeitherHangsNorLosesOthers(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		a := w.SlowReplica("a", time.Minute)
		w.Must(a.Sync(w.Context()))
		release := a.Occupy()
		ctx, cancel := context.WithCancel(w.Context())
		began := time.Now()
		var patient, impatient sync.WaitGroup
		for i := range 20 {
			patient.Go(func() {
				_, err := a.Register(w.Context(), fmt.Sprint("patient", i), "")
				if err != nil {
					w.Error(err)
				}
			})
			impatient.Go(func() {
				_, err := a.Register(ctx, fmt.Sprint("cancelled", i), "")
				if !errors.Is(err, context.Canceled) {
					w.Error(err)
				}
				if d := time.Since(began); w.Mini != nil && d != time.Second {
					w.Errorf("a cancelled call came back after %s", d)
				}
			})
		}
		time.AfterFunc(time.Second, cancel)
		impatient.Wait()
		release()
		patient.Wait()
		if _, err := a.Register(ctx, "too-late", ""); !errors.Is(err, context.Canceled) {
			w.Error(err)
		}
	})
}

func TestErrorOfOneCommandDoesNotSpoilTheOthersOfItsBurst(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		a := w.SlowReplica("a", time.Minute)
		w.Must(a.Sync(w.Context()))
		w.Must(w.Admin.Set(w.Context(), "solotick:{svc}:job:bad", "not a hash", 0).Err())
		a.Gather(100, func(i int) {
			if i%2 == 0 {
				if _, err := a.Register(w.Context(), fmt.Sprint("good", i), ""); err != nil {
					w.Error(err)
				}
			} else if _, err := a.Register(w.Context(), "bad", ""); err == nil || errors.Is(err, context.DeadlineExceeded) {
				w.Errorf("the bad one: %v", err)
			}
		})
	})
}

func TestNoneOfManyCallsIsRunOverAConnectionThatRedisRefuses(t *testing.T) {
	for _, replicas := range []int{0, 1} {
		server := miniredis.RunT(t)
		server.RequireAuth("another")
		r, err := rds.Open(rds.NewClient(redis.UniversalOptions{Addrs: []string{server.Addr()}, Password: "wrong"}, 0), "svc",
			rds.Options{WaitReplicas: replicas})
		if err != nil {
			t.Fatal(err)
		}
		sc := rds.NewScript("return {'OK'}", rds.AllAnswers)
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				if answer, err := r.Run(t.Context(), sc, nil); err == nil || !rds.WithoutEffect(err) {
					t.Errorf("waiting for %d replicas: %v, %v", replicas, answer, err)
				}
			})
		}
		calls.Wait()
	}
}
