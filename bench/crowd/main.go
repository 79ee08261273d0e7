// Crowd is many replicas of Solotick in one process, over a real Redis. Each has a store and connections of its own, as
// a replica has. Their jobs do nothing: what is left is what the replicas ask of Redis.
//
// It prints "ready" when all replicas take ticks, and ends with SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

func main() {
	addr := flag.String("redis", "", "host:port")
	table := flag.String("table", "", "file")
	replicas := flag.Int("replicas", 3, "how many")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, *addr, *table, *replicas); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr, file string, replicas int) error {
	t, err := config.Load(file, os.LookupEnv)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, replicas)
	var all []*sidecar.Sidecar
	for i := range replicas {
		s, closeClient, err := replica(t, addr, fmt.Sprintf("crowd-%d", i))
		if err != nil {
			return err
		}
		defer closeClient()
		all = append(all, s)
	}
	var running sync.WaitGroup
	for _, s := range all {
		running.Go(func() { ended <- s.Run(ctx) })
	}
	for _, s := range all {
		for s.Ready() != nil && ctx.Err() == nil {
			select {
			case <-time.After(50 * time.Millisecond):
			case err := <-ended:
				cancel()
				running.Wait()
				return errors.Join(errors.New("a replica ended"), err)
			}
		}
	}
	fmt.Println("ready")
	running.Wait()
	close(ended)
	for err := range ended {
		if err != nil {
			return err
		}
	}
	return nil
}

func replica(t *config.Table, addr, name string) (*sidecar.Sidecar, func() error, error) {
	client := lock.NewClient(redis.UniversalOptions{Addrs: []string{addr}}, t.Redis.Timeout)
	store, err := service.New(client, t.Service, lock.Options{Timeout: t.Redis.Timeout})
	if err != nil {
		return nil, nil, err
	}
	s, err := sidecar.New(sidecar.Options{Table: t, Store: store, Redis: addr, Replica: name, Version: "bench",
		Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		Executor: func(config.Job) execute.Executor { return nothing{} }})
	return s, client.Close, err
}

// nothing is a job that succeeds at once.
type nothing struct{}

func (nothing) Execute(ctx context.Context, r execute.Run) execute.Result {
	if err := r.Wait(ctx); err != nil {
		return execute.Result{Status: execute.Canceled, Err: err, Code: -1}
	}
	r.Begun()
	return execute.Result{Status: execute.Succeeded, Code: -1}
}
