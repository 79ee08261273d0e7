// Command embed uses the lock package of Solotick inside a Go program, in both of its ways.
//
//	go run ./examples/embed                                              # two schedulers over an embedded Redis
//	REDIS_URL=redis://127.0.0.1:6379/0 go run ./examples/embed -for 30s  # start it twice, or on two machines
//
// Two gocron schedulers, as in two processes, run the job "report" every two seconds. gocron's Locker is that of
// [gocronlock], and each tick is fired by one of the two. Beside it the job "invoices" takes its ticks without a
// scheduler: Acquire, Keep, Finish. It is the better way where a job has to know that it lost its lock (the context
// ends) or hands a fencing token on.
//
// The embedded Redis (miniredis) lives and dies with this process: good for trying out, and good for nothing else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-co-op/gocron/v2"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/lock/gocronlock"
)

const (
	period = 2 * time.Second
	ttl    = 5 * time.Second
)

func main() {
	duration := flag.Duration("for", 10*time.Second, "how long to run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *duration)
	defer cancel()
	if err := run(ctx, os.Getenv("REDIS_URL"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run lets two replicas fire until ctx ends.
func run(ctx context.Context, url string, out io.Writer) error {
	if url == "" {
		server, err := miniredis.Run()
		if err != nil {
			return fmt.Errorf("starting the embedded Redis: %w", err)
		}
		defer server.Close()
		server.ClockTTL(true) // miniredis expires keys by the clock only when told so
		url = "redis://" + server.Addr()
	}
	lines := &printer{out: out}
	var wg sync.WaitGroup
	errs := make(chan error, 2)
	for n := range cap(errs) {
		name := fmt.Sprintf("%d-%d", os.Getpid(), n+1)
		wg.Go(func() { errs <- replica(ctx, url, name, lines) })
	}
	wg.Wait()
	return errors.Join(<-errs, <-errs)
}

// replica is what would be a process of its own.
func replica(ctx context.Context, url, name string, out *printer) error {
	o, err := redis.ParseURL(url)
	if err != nil {
		return fmt.Errorf("reading the URL of Redis: %w", err)
	}
	rdb := lock.NewClient(redis.UniversalOptions{
		Addrs: []string{o.Addr}, DB: o.DB, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
	}, 0)
	defer rdb.Close()
	store, err := lock.New(rdb, "embed-example", lock.Options{})
	if err != nil {
		return err
	}
	if _, err := store.Register(ctx, "invoices", "every 2s"); err != nil {
		return err
	}
	stop, err := schedule(ctx, store, name, out)
	if err != nil {
		return err
	}
	err = invoices(ctx, store, name, out)
	return errors.Join(err, stop())
}

// schedule is the first way: gocron decides when, the Locker who.
func schedule(ctx context.Context, store *lock.Store, name string, out *printer) (stop func() error, err error) {
	locker := &gocronlock.Locker{
		Store:       store,
		TickOf:      func(_ string, now time.Time) time.Time { return now.Round(period) },
		TTL:         ttl,
		SafetyDelay: time.Second,
		Replica:     name,
	}
	if err := locker.Register(ctx, "report"); err != nil {
		return nil, err
	}
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker), gocron.WithLocation(time.UTC))
	if err != nil {
		return nil, fmt.Errorf("making a scheduler: %w", err)
	}
	_, err = s.NewJob(gocron.CronJob("*/2 * * * * *", true), gocron.NewTask(func() {
		now, _ := store.Now()
		out.printf("report %s by %s\n", now.Round(period).Format(time.TimeOnly), name)
	}), gocron.WithName("report"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("scheduling: %w", err), s.Shutdown())
	}
	s.Start()
	return s.Shutdown, nil
}

// invoices is the second way: for each tick Acquire waits until Redis' clock says that it has come.
func invoices(ctx context.Context, store *lock.Store, name string, out *printer) error {
	now, _ := store.Now() // Register has asked Redis
	for tick := now.Truncate(period).Add(period); ctx.Err() == nil; tick = tick.Add(period) {
		lease, _, err := store.Acquire(ctx,
			lock.Claim{Job: "invoices", Tick: tick, TTL: ttl, Period: period, Replica: name})
		switch {
		case ctx.Err() != nil && lease == nil:
			return nil
		case err != nil:
			return err
		case lease == nil: // the other replica has it
			if !sleep(ctx, period/4) {
				return nil
			}
			continue
		}
		if err := invoice(ctx, lease, tick, name, out); err != nil {
			return err
		}
	}
	return nil
}

func invoice(ctx context.Context, lease *lock.Lease, tick time.Time, name string, out *printer) error {
	run, stop := lease.Keep(ctx)
	defer stop()
	out.printf("invoices %s by %s, token %d\n", tick.Format(time.TimeOnly), name, lease.Token)
	worked := sleep(run, period/4) // the work, which ends when the lock is lost

	outcome := "succeeded"
	if !worked {
		outcome = "interrupted"
	}
	// A run that has begun is settled, also when this program is told to end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ttl)
	defer cancel()
	_, err := lease.Finish(ctx, time.Second, lock.Ending{Entry: outcome})
	return err
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// printer lets two replicas share one output.
type printer struct {
	mu  sync.Mutex
	out io.Writer
}

func (p *printer) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format, args...)
}
