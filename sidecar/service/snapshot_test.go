package service_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

func TestDueMembersAreSeenWhenTheirTimeHasComeAndDroppedOnce(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		_, err := l.Handover(w.Context(), w.TTL, lock.Ending{})
		w.Must(err)
		w.Must(w.Admin.Do(w.Context(), "ZADD", dueSet, 1, "written by another version").Err())
		seen, err := b.Service.Look(w.Context(), 10)
		if err != nil || len(seen.Due) != 0 {
			w.Fatalf("due too early: %+v, %v", seen.Due, err)
		}
		last, err := w.Admin.ZRangeWithScores(w.Context(), dueSet, -1, -1).Result()
		if err != nil || seen.Next.UnixMilli() != int64(last[0].Score) {
			w.Errorf("the next comes due at %s, want %v, %v", seen.Next, last, err)
		}
		w.Pass(w.TTL)
		seen, err = b.Service.Look(w.Context(), 10)
		ds := seen.Due
		if err != nil || len(ds) != 1 || ds[0].Nonce != l.Run() || !seen.Next.IsZero() {
			w.Fatalf("due: %+v, next %s, %v", ds, seen.Next, err)
		}
		for _, want := range []bool{true, false} {
			if got, _, err := b.Drop(w.Context(), ds[0], ""); err != nil || got != want {
				w.Errorf("drop: %v, %v; want %v", got, err, want)
			}
		}
	})
}

func TestNothingIsSeenAsDueBeforeItsTimeHoweverUnsureTheClock(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		b := w.Replica("b")
		w.Must(b.Sync(w.Context()))
		w.Pass(time.Hour) // in which clocks may have parted by a third of a second
		first, second := w.Now().Add(100*time.Millisecond).UnixMilli(), w.Now().Add(time.Minute).UnixMilli()
		for _, at := range []int64{first, second} {
			w.Must(w.Admin.Do(w.Context(), "ZADD", dueSet, at, rds.Itoa(at)+" "+job+" catchup 1 0 0 nonce").Err())
		}
		for _, want := range []struct {
			due  int
			next int64
		}{{0, first}, {1, second}} {
			seen, err := b.Service.Look(w.Context(), 10)
			if err != nil || len(seen.Due) != want.due || seen.Next.UnixMilli() != want.next {
				w.Errorf("%+v, %v, want %+v", seen, err, want)
			}
			w.Pass(100 * time.Millisecond)
		}
	})
}

func TestALookTellsWhenRedisMemoryBegan(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		if seen, err := a.Service.Look(w.Context(), 10); !seen.Born.IsZero() || err != nil {
			w.Errorf("born before it was registered: %v, %v", seen.Born, err)
		}
		got, err := a.Register(w.Context(), service.TimerJobs, "")
		w.Must(err)
		if seen, err := a.Service.Look(w.Context(), 10); !seen.Born.Equal(got.Born) || err != nil {
			w.Errorf("born %v, %v, and registered as %v", seen.Born, err, got.Born)
		}
		w.Must(w.Admin.FlushAll(w.Context()).Err())
		if seen, err := a.Service.Look(w.Context(), 10); !seen.Born.IsZero() || err != nil {
			w.Errorf("born %v, %v in a Redis that has lost its data", seen.Born, err)
		}
	})
}

// between does something after each command of a pipeline.
type between struct{ then func(redis.Cmder) }

func (between) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (between) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (b between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if err := next(ctx, []redis.Cmder{cmd}); err != nil {
				return err
			}
			b.then(cmd)
		}
		return nil
	}
}

// A look is not one step for Redis. When a run takes a due member in the midst of it, the next one must not seem to
// wait for nothing.
func TestALookSeesTheRunThatWaitsWhileItReads(t *testing.T) {
	for _, after := range []string{dueSet, running} {
		t.Run(after, func(t *testing.T) {
			redisworld.OnEvery(t, func(w *redisworld.World) {
				w.Born()
				for n := 1; n <= 2; n++ {
					d := lock.Due{Tick: w.Tick(n), Job: job, Kind: "catchup", Attempt: 1, Nonce: "nonce"}
					w.Must(w.Admin.Do(w.Context(), "ZADD", dueSet, n, d.Member()).Err())
				}
				a, b := w.Replica("a"), w.Replica("b")
				w.Must(b.Sync(w.Context()))
				dues := w.Dues()
				took := false
				b.Client.AddHook(between{func(cmd redis.Cmder) {
					if args := cmd.Args(); !took && len(args) > 1 && args[1] == after {
						took = true
						a.Wins(a.ClaimOf(dues[0]))
					}
				}})
				seen, err := b.Service.Look(w.Context(), 10)
				if err != nil || !took {
					w.Fatalf("%v; the run began: %v", err, took)
				}
				if len(seen.Due) == 1 && len(seen.Runs) == 0 {
					w.Errorf("%+v seems to wait for no run", seen.Due)
				}
			})
		})
	}
}
