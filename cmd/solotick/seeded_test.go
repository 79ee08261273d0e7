package main

import (
	"context"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// morning is the day of the service that the operating verbs are shown with. Its clock then stands still at "now".
var morning = time.Date(2027, 3, 28, 0, 0, 0, 0, time.UTC)

// seeded is a Redis with that morning in it.
type seeded struct {
	mini *miniredis.Miniredis
	rdb  redis.UniversalClient
	ctx  context.Context
	now  time.Time
	err  error // the first; nothing is done after it
}

// seed starts a Redis and plays the morning. send-invoices has failed, has a manual run and a waiting backfill, and is
// paused. reports is well, and tidy-up is paused. app-2 has a table with another hash, and app-3 is gone.
func seed(hash string) (*seeded, error) {
	s := &seeded{mini: miniredis.NewMiniRedis(), ctx: context.Background()}
	if err := s.mini.Start(); err != nil {
		return nil, err
	}
	s.rdb = lock.NewClient(redis.UniversalOptions{Addrs: []string{s.mini.Addr()}}, patience)
	for _, job := range []string{"send-invoices", "reports", "tidy-up"} {
		_, err := s.at("06:00:00").Locks.Register(s.ctx, job, "")
		s.must(err)
	}
	s.run("07:00:00", "reports", "0e0c0a51-6d1f-4f0e-9d3e-5a1c1f0c7a01", "app-2", time.Second, service.Entry{Outcome: "succeeded", Took: 812 * time.Millisecond})
	s.run("07:00:00", "send-invoices", "7f5d3b9a-2f60-4b57-8f0f-0d4f3c2b1a02", "app-1", 12*time.Second,
		service.Entry{Attempt: 2, Outcome: "failed", Failed: true, Took: 11500 * time.Millisecond, Detail: "exit code 3: \x1b[31mdisk full\nno invoices"})
	s.must(s.at("07:09:30").Beat(s.ctx, service.Replica{Name: "app-3", Version: "v0.2.0", Table: hash}))
	by := s.manualRun()
	_, err := s.at("07:19:00").Backfill(s.ctx, "send-invoices", []time.Time{morning.Add(-17 * time.Hour)}, "3a1e6c58-90ab-4cde-8f01-23456789ab03", false)
	s.must(err)
	s.must(s.at("07:19:30").As(service.Author{By: "anna@ops"}).Pause(s.ctx, "send-invoices", "database migration", morning.Add(12*time.Hour)))
	s.must(s.at("07:05:00").Pause(s.ctx, "tidy-up", "fills the \x1b[2Jdisk", time.Time{}))
	now := s.at("07:20:00")
	overlap := service.Skip{Tick: morning.Add(7*time.Hour + time.Minute), Reason: "overlap", At: morning.Add(7*time.Hour + time.Minute)}
	s.must(now.Beat(s.ctx, service.Replica{Name: "app-1", Version: "v0.1.0", Table: hash, Offset: 1250 * time.Microsecond,
		Skips: map[string]service.Skip{"send-invoices": overlap, "reports": overlap}}))
	s.must(now.Beat(s.ctx, service.Replica{Name: "app-2", Version: "v0.1.0", Table: "0123456789ab", Offset: -3 * time.Second, Ready: "no answer from Redis yet",
		Reload: "table.yaml:3:15: schedule \"61 * * * *\": minute \"61\"",
		Skips:  map[string]service.Skip{"reports": overlap}}))
	if s.err == nil {
		s.must(by.Verify(s.ctx))
	}
	if s.err != nil {
		s.close()
	}
	return s, s.err
}

func (s *seeded) close() {
	_ = s.rdb.Close()
	s.mini.Close()
}

func (s *seeded) must(err error) {
	if s.err == nil {
		s.err = err
	}
}

// at sets Redis' clock and returns a Store for which time stands still there.
func (s *seeded) at(clock string) *service.Store {
	t, err := time.Parse(time.TimeOnly, clock)
	s.must(err)
	s.now = morning.Add(t.Sub(t.Truncate(24 * time.Hour)))
	s.mini.SetTime(s.now)
	store, err := service.New(s.rdb, "billing", lock.Options{Timeout: patience, Boottime: still})
	s.must(err)
	return store
}

// run plays one run.
func (s *seeded) run(clock, job, run, replica string, after time.Duration, e service.Entry) {
	store := s.at(clock)
	tick := s.now
	l, _, err := store.Locks.Acquire(s.ctx, lock.Claim{Job: job, Tick: tick, Run: run, Replica: replica, TTL: 15 * time.Second, Attempt: e.Attempt})
	s.must(err)
	if s.err != nil {
		return
	}
	e.Job, e.Tick, e.Run, e.Replica, e.Kind = job, tick, l.Run(), replica, "schedule"
	e.Ended = tick.Add(after)
	e.Attempt = max(e.Attempt, 1)
	s.mini.SetTime(e.Ended)
	_, err = l.Finish(s.ctx, 0, e.Ending())
	s.must(err)
}

// manualRun triggers send-invoices and has app-2 run it.
func (s *seeded) manualRun() *lock.Lease {
	store := s.at("07:18:00")
	d, err := store.Trigger(s.ctx, "send-invoices", "c2f1d0e9-8b7a-4c6d-9e5f-4a3b2c1d0e04")
	s.must(err)
	l, _, err := store.Locks.Acquire(s.ctx, lock.Claim{Job: "send-invoices", Tick: d.Tick, Run: "5e4d3c2b-1a09-4f8e-8d7c-6b5a49382705", Replica: "app-2",
		TTL: 15 * time.Second, Kind: d.Kind, Attempt: d.Attempt, Member: d.Member()})
	s.must(err)
	return l
}

// seedCommand is `seeded-redis TABLE`: the commands after it talk to a Redis with the morning in it.
func seedCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: seeded-redis TABLE")
	}
	t, err := config.Read(ts.MkAbs(args[0]), func(string) (string, bool) { return "", false })
	ts.Check(err)
	s, err := seed(t.Hash)
	ts.Check(err)
	ts.Defer(s.close)
	ts.Setenv(redisVariable, "redis://"+s.mini.Addr()+"/0")
}
