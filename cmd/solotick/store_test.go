package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// TestWhatWasNotAnsweredMayHaveBeenDone: an operator who gets no answer to a trigger must not simply repeat it.
func TestWhatWasNotAnsweredMayHaveBeenDone(t *testing.T) {
	for err, want := range map[error]string{
		lock.ErrNoAnswer:      "it may have been done or not: check with solotick status",
		service.ErrUnknownJob: "a replica registers its jobs as it starts: solotick status shows the replicas",
		service.ErrTimerFired: "for a day the id is not taken again: use another one",
		errors.New("other"):   "",
	} {
		f := operatorFailure(fmt.Errorf("triggering job %q: %w", "a", err))
		if f.hint != want || !strings.HasPrefix(f.Error(), "triggering job") {
			t.Errorf("%v: hint %q, want %q", err, f.hint, want)
		}
	}
}

// TestWithoutATableTheJobsAreThoseThatRedisKnows: a broken or absent table hides neither a job that fails on every
// replica nor one whose first run is not over. No run is requested that no replica would take.
func TestWithoutATableTheJobsAreThoseThatRedisKnows(t *testing.T) {
	s, err := seed("")
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	ctx, store := t.Context(), s.at("07:20:00")
	ended := service.Entry{Job: "everywhere", Tick: s.now.Add(-time.Minute), Replica: "app-4", Kind: "schedule", Attempt: 1,
		Outcome: "failed", Failed: true, Ended: s.now.Add(-50 * time.Second)}
	s.must(store.Beat(ctx, service.Replica{Name: "app-4", Ran: map[string]service.Entry{"everywhere": ended}}))
	for _, job := range []string{"everywhere", "first", "asked"} {
		_, err := store.Locks.Register(ctx, job, lock.NoTicks)
		s.must(err)
	}
	s.must(s.at("07:09:00").Beat(ctx, service.Replica{Name: "gone", Ran: map[string]service.Entry{"reports": ended, "everywhere": ended}}))
	store = s.at("07:20:02")
	_, _, err = store.Locks.Acquire(ctx, lock.Claim{Job: "first", Tick: s.now, Run: "11111111-0000-4000-8000-000000000000",
		Replica: "app-1", TTL: 15 * time.Second})
	s.must(err)
	_, err = store.Trigger(ctx, "asked", "22222222-0000-4000-8000-000000000000")
	s.must(err)
	table, err := config.NoTable("billing")
	s.must(err)
	if s.err != nil {
		t.Fatal(s.err)
	}
	d := operator{Operator: &service.Operator{Store: store, Table: func() *config.Table { return table }}}
	look, err := d.look(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, j := range look.Jobs {
		got = append(got, fmt.Sprintf("%s:%s:%d", j.Name, j.Guarantee, len(look.Results(j))))
	}
	if want := "asked::0 everywhere:every-replica:1 first::0 reports::0 send-invoices::0"; strings.Join(got, " ") != want {
		t.Errorf("the jobs are %q, want %q", got, want)
	}
	if _, err := d.Claimed(ctx, "everywhere"); err == nil {
		t.Error("a run is asked for that no replica would take")
	}
	if _, err := d.Claimed(ctx, "reports"); err != nil {
		t.Errorf("a replica that is gone ran it without a claim: %v", err)
	}
}
