package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed pop.lua
	popSource string
	//go:embed keep.lua
	keepSource string

	pop, keep = redis.NewScript(popSource), redis.NewScript(keepSource)
	sets      = []string{"due", "running", "periods"}
)

// sortedSet has the jobs in a sorted set by their next tick, by Redis' clock. A replica that takes a tick moves it to a
// running set with a lease, which it renews; whichever replica finds an expired lease gives the tick back.
func (r *replica) sortedSet() (func() error, error) {
	ctx, cancel := context.WithCancel(context.Background())
	var loops, runs sync.WaitGroup
	loops.Go(func() { r.keepSets(ctx) })
	loops.Go(func() { r.takeDue(ctx, &runs) })
	return func() error {
		cancel()
		loops.Wait()
		runs.Wait()
		return nil
	}, nil
}

// keepSets gives back each second what is left of dead replicas.
func (r *replica) keepSets(ctx context.Context) {
	var args []any
	for _, j := range r.jobs {
		args = append(args, j.Name, j.period().Milliseconds())
	}
	for wait(ctx, 0); ctx.Err() == nil; wait(ctx, time.Second) {
		if err := keep.Run(ctx, r.redis, sets, args...).Err(); err != nil && err != redis.Nil {
			fmt.Fprintln(os.Stderr, "keeping the sets:", err)
		}
	}
}

func (r *replica) takeDue(ctx context.Context, runs *sync.WaitGroup) {
	jobs := map[string]job{}
	for _, j := range r.jobs {
		jobs[j.Name] = j
	}
	for ctx.Err() == nil {
		taken, err := pop.Run(ctx, r.redis, sets, lease.Milliseconds()).Slice()
		if err != nil {
			wait(ctx, 200*time.Millisecond)
			continue
		}
		for _, member := range taken[1:] {
			name, ms, _ := strings.Cut(member.(string), " ")
			tick, err := strconv.ParseInt(ms, 10, 64)
			if err != nil {
				fmt.Fprintln(os.Stderr, "reading a due tick:", err)
				continue
			}
			runs.Go(func() { r.work(jobs[name], time.UnixMilli(tick), member.(string)) })
		}
		wait(ctx, min(time.Duration(taken[0].(int64))*time.Millisecond, time.Second))
	}
}

// work runs a tick, renews its lease meanwhile, and takes it out of the running set.
func (r *replica) work(j job, tick time.Time, member string) {
	ctx, over := context.WithCancel(context.Background())
	go func() {
		for wait(ctx, lease/3); ctx.Err() == nil; wait(ctx, lease/3) {
			// this clock and Redis' differ by less than a lease
			end := float64(time.Now().Add(lease).UnixMilli())
			_ = r.redis.ZAddXX(ctx, sets[1], redis.Z{Score: end, Member: member}).Err() // the next one may succeed
		}
	}()
	err := r.call(ctx, j, tick, 0)
	over()
	if err == nil {
		err = r.redis.ZRem(context.Background(), sets[1], member).Err()
	}
	if err != nil { // its lease ends, and another replica runs it
		fmt.Fprintln(os.Stderr, "running", member+":", err)
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
