package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/rig"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

const (
	capacityTarget = 0.20
	capacityJobs   = 1000 // the burst of a thousand jobs at one tick
	capacityTime   = 4 * time.Second
)

// capacity measures how many ticks a second can be claimed by one of three contenders, run and settled, over what the
// same Redis does of plain SETs without pipelining; and beside it the same of a plain lock, which keeps no claim,
// lease, token or history. Each contender for a tick is a store with its own connections, as a replica has. Nothing is
// run between claim and finish, and the release follows at once, since the safety delay costs time and not capacity.
//
// The bench measures Redis, so the contenders must not be slow: they live in one process, which has to share the
// machine with it. No tick costs goroutines or timers of its own, and the garbage collector, which would look through
// the stacks of a thousand jobs every time, is made to come less often.
func (b *bench) capacity() (part, error) {
	redis, err := rig.StartRedis(b.dir)
	if err != nil {
		return part{}, err
	}
	defer func() { _ = redis.Stop(grace) }()
	defer debug.SetGCPercent(debug.SetGCPercent(400))

	var fires, sets, ratios, plain, overPlain []float64
	var spent map[string]rig.CommandStat
	var total int64
	for i := range b.rounds {
		before, err := yardstick(redis)
		if err != nil {
			return part{}, err
		}
		was, err := redis.CommandStats()
		if err != nil {
			return part{}, err
		}
		n, took, err := contend(b.ctx, redis.Addr(), fmt.Sprintf("capacity-%d", i))
		if err != nil {
			return part{}, err
		}
		if spent, err = redis.CommandStats(); err != nil {
			return part{}, err
		}
		for name, s := range spent {
			spent[name] = rig.CommandStat{Calls: s.Calls - was[name].Calls, Usec: s.Usec - was[name].Usec}
		}
		total = n
		locked, lockedIn, err := contendPlainly(b.ctx, redis.Addr())
		if err != nil {
			return part{}, err
		}
		after, err := yardstick(redis)
		if err != nil {
			return part{}, err
		}
		f, p, s := float64(n)/took.Seconds(), float64(locked)/lockedIn.Seconds(), (before+after)/2
		fires, sets, ratios = append(fires, f), append(sets, s), append(ratios, f/s)
		plain, overPlain = append(plain, p), append(overPlain, f/p)
	}
	scripted := spent["evalsha"]
	return part{Rows: []row{
		{What: "fires/s over SET/s of the same Redis", Unit: "/s", Ours: of(fires), Ratio: of(ratios), More: true,
			Targets: []target{{Of: "ratio", AtLeast: true, Limit: capacityTarget}},
			Note: fmt.Sprintf("%d jobs, %d replicas; redis-benchmark does %s SET/s",
				capacityJobs, replicas, of(sets))},
		{What: "fires/s over those with a plain lock", Unit: "/s", Ours: of(fires), Theirs: of(plain),
			Ratio: of(overPlain), More: true, Targets: []target{{Of: "ratio", AtLeast: true, Limit: 1}},
			Note: "theirs is SET NX, and a script that compares and deletes; it keeps no claim, lease, " +
				"token or history"},
		{What: "Redis' own time per fire", Unit: "µs", Ours: one(scripted.Usec / float64(total)),
			Note: fmt.Sprintf("%.2f scripts per fire; Redis alone would do %.0f/s",
				float64(scripted.Calls)/float64(total), float64(total)/scripted.Usec*1e6)},
	}}, nil
}

// yardstick is what redis-benchmark reports for SET with 50 connections and no pipelining, per second.
func yardstick(redis *rig.Redis) (float64, error) {
	out, err := exec.Command("redis-benchmark", "-p", strconv.Itoa(redis.Port),
		"-t", "set", "-c", "50", "-n", "100000", "--csv").Output()
	if err != nil {
		return 0, fmt.Errorf("running redis-benchmark: %w", err)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if f := strings.Split(line, ","); len(f) > 1 && strings.Trim(f[0], `"`) == "SET" {
			return strconv.ParseFloat(strings.Trim(f[1], `"`), 64)
		}
	}
	return 0, fmt.Errorf("running redis-benchmark: no figure for SET in %q", out)
}

// contend lets three stores race for tick after tick of many jobs, and returns how many were fired in which time.
func contend(ctx context.Context, addr, name string) (int64, time.Duration, error) {
	var heard atomic.Int64
	var listening sync.WaitGroup
	defer listening.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stores := make([]*lock.Store, replicas)
	for i := range stores {
		client := lock.NewClient(redis.UniversalOptions{Addrs: []string{addr}}, 5*time.Second)
		defer client.Close()
		store, err := service.New(client, name, lock.Options{Timeout: 5 * time.Second})
		if err != nil {
			return 0, 0, err
		}
		if err := store.Sync(ctx); err != nil {
			return 0, 0, err
		}
		listening.Go(func() { store.Listen(ctx, func(string) {}, func(lock.Heard) { heard.Add(1) }) })
		stores[i] = store.Locks
	}
	jobs, born := make([]string, capacityJobs), make([]lock.Ledger, capacityJobs)
	for i := range jobs {
		jobs[i] = fmt.Sprintf("job-%d", i)
		var err error
		if born[i], err = stores[0].Register(ctx, jobs[i], ""); err != nil {
			return 0, 0, err
		}
	}
	time.Sleep(2 * time.Second) // ticks of a new ledger's first second count as claimed

	fired, took, err := fireAll(func(job int, n int64) error {
		// far faster than time would bring them, and never ahead of it
		tick := born[job].Born.Add(time.Second + time.Duration(n)*time.Millisecond)
		first := (job + int(n)) % len(stores)
		return fire(ctx, stores[first], askers[first], jobs[job], tick)
	})
	for until := time.Now().Add(grace); err == nil && heard.Load() < fired*replicas; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			err = fmt.Errorf("the replicas have heard of %d claims, of %d ticks", heard.Load(), fired)
		}
	}
	return fired, took, err
}

// fireAll fires the ticks of all jobs at once, each job's one after the other, and returns how many in which time.
func fireAll(fire func(job int, n int64) error) (int64, time.Duration, error) {
	var fired atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, capacityJobs)
	began := time.Now()
	for job := range capacityJobs {
		all.Go(func() {
			for n := int64(1); time.Since(began) < capacityTime; n++ {
				if err := fire(job, n); err != nil {
					errs <- err
					return
				}
				fired.Add(1)
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	close(errs)
	return fired.Load(), took, <-errs
}

var askers = [replicas]string{"r0", "r1", "r2"}

// fire claims one tick, finishes its run and has the lock released. The other replicas hear of the claim, and do not ask.
func fire(ctx context.Context, store *lock.Store, replica, job string, tick time.Time) error {
	won, _, err := store.Acquire(ctx, lock.Claim{Job: job, Tick: tick, TTL: 15 * time.Second, Replica: replica})
	if err != nil {
		return err
	}
	if won == nil {
		return fmt.Errorf("nobody won tick %s of %s", tick, job)
	}
	entry := fmt.Sprintf(`{"job":%q,"tick":%d,"run":%q,"replica":"a","kind":"schedule","attempt":1,`+
		`"outcome":"succeeded","ended":%[2]d,"ms":5}`, job, tick.UnixMilli(), won.Run())
	if _, err := won.Finish(ctx, time.Second, lock.Ending{At: tick, Entry: entry, Fate: "succeeded"}); err != nil {
		return err
	}
	won.Release(0)
	return nil
}

// contendPlainly lets three contenders ask for a plain lock on the same jobs: SET NX PX with a random value, and a
// script that compares and deletes. It is given back when all have asked: sooner, and another one would fire the tick
// again.
func contendPlainly(ctx context.Context, addr string) (int64, time.Duration, error) {
	clients := make([]*redis.Client, replicas)
	for i := range clients {
		clients[i] = redis.NewClient(&redis.Options{Addr: addr, PoolTimeout: time.Minute})
		defer clients[i].Close()
	}
	keys := make([]string, capacityJobs)
	for i := range keys {
		keys[i] = fmt.Sprintf("plain-%d", i)
	}
	unlock := redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then ` +
		`return redis.call("DEL", KEYS[1]) end return 0`)
	return fireAll(func(job int, _ int64) error {
		var winner *redis.Client
		var value string
		for _, c := range clients {
			mine := uuid.NewString()
			err := c.SetArgs(ctx, keys[job], mine, redis.SetArgs{Mode: "NX", TTL: 15 * time.Second}).Err()
			switch {
			case err == nil:
				winner, value = c, mine
			case !errors.Is(err, redis.Nil):
				return err
			}
		}
		if winner == nil {
			return fmt.Errorf("nobody won %s", keys[job])
		}
		return unlock.Run(ctx, winner, keys[job:job+1], value).Err()
	})
}
