package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// runner is the part of a replica that waiting needs: it runs due ticks one after the other, each in the next of the
// given ways.
func runner(ctx context.Context, t *testing.T, s *service.Store, ways ...func(*lock.Lease, service.Entry) error) {
	for len(ways) > 0 && ctx.Err() == nil {
		seen, err := s.Look(ctx, 1)
		if err != nil || len(seen.Due) == 0 {
			<-time.After(10 * time.Millisecond)
			continue
		}
		d := seen.Due[0]
		l, _, err := s.Locks.Acquire(ctx, lock.Claim{Job: d.Job, Tick: d.Tick, Replica: "one", TTL: 15 * time.Second, Kind: d.Kind, Attempt: d.Attempt,
			Rounds: d.Rounds, Refused: d.Refused, Again: true, Member: d.Member()})
		if err == nil && l != nil {
			err = ways[0](l, service.Entry{Job: d.Job, Tick: d.Tick, Run: l.Run(), Replica: "one", Kind: d.Kind})
			ways = ways[1:]
		}
		if err != nil {
			t.Errorf("running what is due: %v", err)
		}
	}
}

func ends(e service.Entry) func(*lock.Lease, service.Entry) error {
	return func(l *lock.Lease, of service.Entry) error {
		e.Job, e.Tick, e.Run, e.Replica, e.Kind = of.Job, of.Tick, of.Run, of.Replica, of.Kind
		_, err := l.Finish(context.Background(), 0, e.Ending())
		return err
	}
}

func cutShort(l *lock.Lease, of service.Entry) error {
	of.Outcome, of.Failed = "shutdown", true
	_, err := l.Requeue(context.Background(), of.Ending())
	return err
}

func handsOver(l *lock.Lease, of service.Entry) error {
	const wait = 700 * time.Millisecond // longer than from one look to the next
	of.Outcome = service.HandedOver
	_, err := l.Handover(context.Background(), wait, of.Ending())
	return err
}

func TestTriggerWaitsForTheEndOfTheRunWhereverThatIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ways []func(*lock.Lease, service.Entry) error
		code int
		said string
	}{
		"succeeded":   {[]func(*lock.Lease, service.Entry) error{ends(service.Entry{Outcome: "succeeded", Took: 1500 * time.Millisecond})}, 0, "succeeded on one after 1.5s: run "},
		"failed":      {[]func(*lock.Lease, service.Entry) error{ends(service.Entry{Outcome: "failed", Failed: true, Detail: "exit\x1b code 1"})}, 1, "\n  exit code 1\n"},
		"timed out":   {[]func(*lock.Lease, service.Entry) error{ends(service.Entry{Outcome: "timed_out", Failed: true})}, 1, "timed_out on one"},
		"declined":    {[]func(*lock.Lease, service.Entry) error{ends(service.Entry{Outcome: "declined"})}, 1, "declined on one"},
		"lost lock":   {[]func(*lock.Lease, service.Entry) error{ends(service.Entry{Outcome: "lost_lock", Failed: true})}, 1, "lost_lock on one"},
		"interrupted": {[]func(*lock.Lease, service.Entry) error{ends(service.Entry{Outcome: "interrupted", Failed: true})}, 1, "interrupted on one"},
		"not started": {[]func(*lock.Lease, service.Entry) error{ends(service.Entry{Outcome: "not_started", Failed: true})}, 1, "not_started on one"},
		"cut short":   {[]func(*lock.Lease, service.Entry) error{cutShort, ends(service.Entry{Outcome: "succeeded"})}, 0, "succeeded on one"},
		"handed over": {[]func(*lock.Lease, service.Entry) error{handsOver, ends(service.Entry{Outcome: "succeeded"})}, 0, "succeeded on one"},
		"forgotten": {[]func(*lock.Lease, service.Entry) error{func(l *lock.Lease, _ service.Entry) error {
			_, err := l.Finish(context.Background(), 0, lock.Ending{})
			return err
		}}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mini := miniredis.RunT(t)
			rdb := lock.NewClient(redis.UniversalOptions{Addrs: []string{mini.Addr()}}, 10*time.Second)
			defer rdb.Close()
			s, err := service.New(rdb, "billing", lock.Options{Timeout: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Locks.Register(t.Context(), "send-invoices", ""); err != nil {
				t.Fatal(err)
			}
			table := filepath.Join(t.TempDir(), "table.yaml")
			if err := os.WriteFile(table, []byte(documented["table.yaml"]), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			done := make(chan struct{})
			go func() {
				defer close(done)
				runner(ctx, t, s, c.ways...)
			}()
			var out, errOut bytes.Buffer
			code := commandLine([]string{"trigger", "-c", table, "--redis", "redis://" + mini.Addr() + "/0", "send-invoices", "--wait"}, &out, &errOut)
			<-done
			if code != c.code || !strings.Contains(out.String(), c.said) || !strings.HasPrefix(out.String(), "triggered send-invoices: tick ") {
				t.Errorf("exit code %d, want %d\n%s%s", code, c.code, out.String(), errOut.String())
			}
			if !strings.Contains(errOut.String(), "note: no replica has reported in the last 15s") {
				t.Errorf("nobody sent a heartbeat, and standard error is %q", errOut.String())
			}
			if name == "forgotten" && !strings.Contains(errOut.String(), "error: the run neither waits nor runs") {
				t.Errorf("standard error is %q", errOut.String())
			}
		})
	}
}

// looks has the outcome that each read of the history finds. Further reads find the last one. No tick waits or runs.
type looks []string

func (l *looks) History(_ context.Context, job string, _ int) ([]service.Entry, error) {
	outcome := (*l)[0]
	if len(*l) > 1 {
		*l = (*l)[1:]
	}
	if outcome == "" {
		return nil, nil
	}
	return []service.Entry{{Job: job, Tick: morning, Run: outcome, Outcome: outcome}}, nil
}

func (*looks) States(context.Context, []string) (map[string]service.Ledger, error) { return nil, nil }

func (*looks) Replicas(context.Context) ([]service.Replica, error) { return nil, nil }

// The history is read before the state. A tick that was handed over or cut short at the first read may have been run by
// the second.
func TestARunThatIsRepeatedIsNotTheEnd(t *testing.T) {
	for _, c := range []struct {
		looks looks
		want  string
	}{
		{looks{service.HandedOver, "succeeded"}, "succeeded"},
		{looks{"shutdown", "succeeded"}, "succeeded"}, // the repetition has ended between two reads
		{looks{"interrupted", "shutdown", "failed"}, "failed"},
		{looks{"", service.HandedOver, "failed"}, "failed"},
		{looks{service.HandedOver}, service.HandedOver},
		{looks{""}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			found := slices.Clone(c.looks)
			w := &waiting{store: &found, due: lock.Due{Job: "a", Tick: morning}, out: io.Discard, began: time.Now()}
			entry, err := w.end(t.Context())
			if (entry == nil) != (c.want == "") || (err == nil) != (c.want != "") || entry != nil && entry.Outcome != c.want {
				t.Errorf("of the looks %q: %+v, %v; want %q", c.looks, entry, err, c.want)
			}
		})
	}
}

func TestATickThatWaitsOrRunsAgainHasNotEnded(t *testing.T) {
	due := lock.Due{Tick: morning.Add(time.Millisecond)}
	history := []service.Entry{{Tick: morning}, {Tick: due.Tick, Outcome: "second"}, {Tick: due.Tick, Outcome: "first"}}
	waits := service.Ledger{Waiting: []lock.Due{{Tick: morning}, due}}
	runs := service.Ledger{Running: []service.RunState{{}, {Record: lock.Record{Tick: due.Tick}}}}
	others := service.Ledger{Waiting: []lock.Due{{Tick: morning}}, Running: []service.RunState{{Record: lock.Record{Tick: morning}}}}
	for _, c := range []struct {
		history []service.Entry
		state   service.Ledger
		over    bool
		outcome string
	}{
		{history, waits, false, ""},
		{history, runs, false, ""},
		{nil, waits, false, ""},
		{history, others, true, "second"},
		{history[:1], others, true, ""},
	} {
		e, over := ending(due, c.history, c.state)
		if over != c.over || (e != nil) != (c.outcome != "") || e != nil && e.Outcome != c.outcome {
			t.Errorf("%+v: %+v, %t; want %t", c, e, over, c.over)
		}
	}
}
