package service_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// BenchmarkTimers measures, on a redis-server of its own, setting timers (400 callers of one store; beside plain HSETs
// of the same size in pipelines of 200), a look while n of them wait, and how long it takes until all of a thousand
// that came due together are claimed by three stores that all see them (beside a thousand jobs of a table).
//
// go test ./sidecar/service -run '^$' -bench Timers
func BenchmarkTimers(b *testing.B) {
	b.Run("set", benchSet)
	for _, n := range []int{0, 1000, 100_000} {
		b.Run(fmt.Sprintf("look/%d wait", n), func(b *testing.B) { benchLook(b, n, nextYear, 0) })
	}
	for _, n := range []int{1000, 10_000, 100_000} { // after a day without replicas, say
		b.Run(fmt.Sprintf("look/%d due", n), func(b *testing.B) {
			benchLook(b, n, func(int) time.Time { return time.UnixMilli(1) }, 0)
		})
	}
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("look/%d of jobs due", n), func(b *testing.B) { benchLook(b, 0, nextYear, n) })
	}
	for _, n := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("claim a thousand/%d wait", n), func(b *testing.B) { benchClaims(b, n, true) })
	}
	b.Run("claim a thousand/table", func(b *testing.B) { benchClaims(b, 0, false) })
}

var benchSource = []byte(`{"at":"2026-12-24T18:00:00.000Z","http":{"method":"POST","url":"http://127.0.0.1:8080/orders/4711/reminder","body":"{}"},"timeout":"5m"}`)

type benched struct {
	b    *testing.B
	addr string
}

func benchRedis(b *testing.B) *benched {
	return &benched{b: b, addr: redistest.Start(b).Addr()}
}

func (r *benched) store() (*service.Store, redis.UniversalClient) {
	rdb := lock.NewClient(redis.UniversalOptions{Addrs: []string{r.addr}}, 5*time.Second)
	r.b.Cleanup(func() { _ = rdb.Close() })
	s, err := service.New(rdb, redisworld.Service, lock.Options{Timeout: 5 * time.Second})
	if err != nil {
		r.b.Fatal(err)
	}
	return s, rdb
}

// set sets n timers, by many callers at once.
func (r *benched) set(s *service.Store, prefix string, n int, at func(i int) time.Time) {
	r.together(n, func(i int) {
		if made, err := s.SetTimer(context.Background(), prefix+strconv.Itoa(i), at(i), benchSource); made != service.TimerSet || err != nil {
			r.b.Errorf("%s, %v", made, err)
		}
	})
}

func (r *benched) together(n int, do func(i int)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, 400)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	all.Wait()
}

func nextYear(i int) time.Time {
	return time.Now().Add(365*24*time.Hour + time.Duration(i)*time.Second)
}

func (r *benched) memory(rdb redis.UniversalClient) int {
	info, err := rdb.Info(context.Background(), "memory").Result()
	if err != nil {
		r.b.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "used_memory:")
	n, _ := strconv.Atoi(strings.Fields(rest)[0])
	return n
}

func benchSet(b *testing.B) {
	r := benchRedis(b)
	s, rdb := r.store()
	const n = 100_000
	plain := time.Now()
	for i := 0; i < n; i += 200 {
		pipe := rdb.Pipeline()
		for k := range 200 {
			pipe.HSet(b.Context(), "plain", strconv.Itoa(i+k), benchSource)
		}
		if _, err := pipe.Exec(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	yardstick := time.Since(plain)
	round := 0
	var took time.Duration
	var bytes int
	for b.Loop() {
		before, began := r.memory(rdb), time.Now()
		r.set(s, fmt.Sprint("order-", round, "-"), n, nextYear)
		took += time.Since(began)
		bytes += r.memory(rdb) - before
		round++
	}
	per := took / time.Duration(round)
	b.ReportMetric(float64(n)/per.Seconds(), "timers/s")
	b.ReportMetric(float64(bytes)/float64(n*round), "bytes/timer")
	b.ReportMetric(float64(len(benchSource)), "bytes/source")
	b.ReportMetric(per.Seconds()/yardstick.Seconds(), "×HSET")
}

func benchLook(b *testing.B, timers int, at func(i int) time.Time, ofJobs int) {
	r := benchRedis(b)
	s, rdb := r.store()
	r.set(s, "order-", timers, at)
	for i := range ofJobs {
		if err := rdb.ZAdd(b.Context(), dueSet, redis.Z{Score: float64(i), Member: dueOf("backfill", i)}).Err(); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := s.Look(b.Context(), 257); err != nil { // as a replica does that is busy with none
			b.Fatal(err)
		}
	}
}

func benchClaims(b *testing.B, waiting int, timers bool) {
	r := benchRedis(b)
	first, rdb := r.store()
	stores := []*service.Store{first}
	for range 2 {
		s, _ := r.store()
		stores = append(stores, s)
	}
	r.set(first, "order-", waiting, nextYear)
	const n = 1000
	tick := time.Now().Add(-time.Minute).Truncate(time.Second)
	for _, name := range append([]string{service.TimerJobs}, tableJobs(n)...) {
		if err := rdb.HSet(b.Context(), "solotick:{svc}:job:"+name, "born", 1, "tick", 1).Err(); err != nil {
			b.Fatal(err)
		}
	}
	for round := 0; b.Loop(); round++ {
		b.StopTimer()
		if timers {
			r.set(first, fmt.Sprint("now-", round, "-"), n, func(int) time.Time { return tick })
		}
		var mu sync.Mutex
		var leases []*lock.Lease
		claim := func(s *service.Store, c lock.Claim) {
			l, _, err := s.Locks.Acquire(b.Context(), c)
			if err != nil {
				b.Error(err)
			}
			if l != nil {
				mu.Lock()
				defer mu.Unlock()
				leases = append(leases, l)
			}
		}
		b.StartTimer()
		var all sync.WaitGroup
		for _, s := range stores {
			all.Go(func() {
				var each sync.WaitGroup
				defer each.Wait()
				if !timers {
					for _, name := range tableJobs(n) {
						each.Go(func() {
							claim(s, lock.Claim{Job: name, Tick: tick.Add(time.Duration(round) * time.Second), TTL: time.Minute})
						})
					}
					return
				}
				seen, err := s.Look(b.Context(), n)
				if err != nil {
					b.Error(err)
				}
				for _, d := range seen.Due {
					each.Go(func() {
						claim(s, lock.Claim{Job: d.Job, Tick: d.Tick, TTL: time.Minute, Kind: d.Kind, Member: d.Member()})
					})
				}
			})
		}
		all.Wait()
		b.StopTimer()
		if len(leases) != n {
			b.Fatalf("%d were claimed", len(leases))
		}
		r.together(n, func(i int) {
			if got, err := leases[i].Finish(b.Context(), 0, lock.Ending{}); got.Verdict != lock.OK || err != nil {
				b.Errorf("finish: %s, %v", got.Verdict, err)
			}
		})
		b.StartTimer()
	}
}

func tableJobs(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("job-", i))
	}
	return names
}
