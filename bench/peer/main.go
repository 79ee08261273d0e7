// Peer is one replica of what a Go team would write without Solotick: gocron, a locker around redsync, and net/http.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func main() {
	addr := flag.String("redis", "", "host:port")
	url := flag.String("url", "", "what a job calls, with one %s for its name")
	jobs := flag.Int("jobs", 1, "jobs, all of them every second")
	flag.Parse()
	if err := run(*addr, *url, *jobs); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(addr, url string, jobs int) error {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	cron, err := gocron.NewScheduler(gocron.WithDistributedLocker(&locker{redsync.New(goredis.NewPool(client))}))
	if err != nil {
		return err
	}
	// Connections enough for all jobs at once, as a program that has so many would keep.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = jobs, jobs
	caller := &http.Client{Transport: transport}
	for i := range jobs {
		name := fmt.Sprintf("job-%d", i)
		_, err := cron.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(post, caller, fmt.Sprintf(url, name)), gocron.WithName(name))
		if err != nil {
			return err
		}
	}
	cron.Start()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	<-ctx.Done()
	return cron.Shutdown()
}

func post(c *http.Client, url string) error {
	answer, err := c.Post(url, "", nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// locker is redsync behind gocron's interface: one try, one key per job, released when the job is over.
type locker struct{ rs *redsync.Redsync }

func (l *locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	m := l.rs.NewMutex(key, redsync.WithTries(1), redsync.WithExpiry(8*time.Second))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return &locked{m}, nil
}

type locked struct{ m *redsync.Mutex }

func (l *locked) Unlock(ctx context.Context) error {
	_, err := l.m.UnlockContext(ctx)
	return err
}
