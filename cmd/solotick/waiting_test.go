package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// scene is what a wait finds in Redis from a moment on.
type scene struct {
	from     time.Duration
	state    service.Ledger
	replicas []service.Replica
	history  []service.Entry
	err      error
}

// play is a store that shows one scene after the other.
type play struct {
	began  time.Time
	scenes []scene
}

func (p *play) now() scene {
	s := p.scenes[0]
	for _, next := range p.scenes {
		if time.Since(p.began) >= next.from {
			s = next
		}
	}
	return s
}

func (p *play) History(context.Context, string, int) ([]service.Entry, error) {
	return append([]service.Entry(nil), p.now().history...), nil
}

func (p *play) States(context.Context, []string) (map[string]service.Ledger, error) {
	return map[string]service.Ledger{"a": p.now().state}, p.now().err
}

func (p *play) Replicas(context.Context) ([]service.Replica, error) { return p.now().replicas, nil }

func TestAWaitSaysWhatItWaitsForWhenThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		due := lock.Due{Job: "a", Tick: morning, Kind: "backfill"}
		waits := service.Ledger{Waiting: []lock.Due{due}}
		runs := func(tick time.Time, run string) service.Ledger {
			return service.Ledger{Running: []service.RunState{{Run: run, Since: morning.Add(time.Hour), Record: lock.Record{Tick: tick, Replica: "one"}}}}
		}
		behind := runs(morning.Add(-time.Hour), "run-1")
		behind.Waiting = waits.Waiting
		before := service.Entry{Job: "a", Tick: morning, Run: "of before", Outcome: "failed"}
		refused := service.Entry{Job: "a", Tick: morning, Run: "run-0", Replica: "one", Outcome: "handed_over", Detail: "connection refused"}
		well, busy := service.Replica{Name: "one", Seen: morning}, service.Replica{Name: "one", Ready: "the app\nsays no", Seen: morning}
		p := &play{began: time.Now(), scenes: []scene{
			{0, behind, []service.Replica{well}, []service.Entry{before}, nil}, // which is over before anything is said of it
			{1 * time.Second, waits, []service.Replica{{Name: "gone", Seen: morning.Add(-time.Minute)}}, []service.Entry{before}, nil},
			{5 * time.Second, waits, []service.Replica{busy}, []service.Entry{before}, nil},
			{10 * time.Second, behind, []service.Replica{busy, well}, []service.Entry{before}, nil},
			{15 * time.Second, waits, []service.Replica{well}, []service.Entry{before}, nil},
			{17 * time.Second, waits, []service.Replica{well}, []service.Entry{refused, before}, nil},
			{20 * time.Second, service.Ledger{}, nil, nil, errors.New("away")},
			{25 * time.Second, runs(morning, "run-2"), []service.Replica{well}, []service.Entry{before}, nil},
			{29400 * time.Millisecond, service.Ledger{}, nil, []service.Entry{before}, nil}, // it ends between two reads
			{30 * time.Second, service.Ledger{}, nil, []service.Entry{{Job: "a", Tick: morning, Run: "run-2", Outcome: "succeeded"}, before}, nil},
		}}
		var said bytes.Buffer
		w := &waiting{store: p, due: due, now: func() time.Time { return morning }, out: &said, began: p.began, before: map[string]bool{"of before": true}}
		entry, err := w.end(t.Context())
		if err != nil || entry.Run != "run-2" {
			t.Errorf("ended by %+v, %v", entry, err)
		}
		want := `note: waiting: no replica is running
note: waiting: no replica is ready: the app says no
note: waiting: the run run-1 on one is still going on
note: waiting: no ready replica has taken it; all slots may be taken
note: waiting: one could not start it: connection refused
note: Redis does not answer
note: running on one since 01:00:00 UTC
`
		if said.String() != want {
			t.Errorf("said\n%s\nwant\n%s", said.String(), want)
		}
		if stands := w.stands(); !strings.Contains(stands, "running on one since") {
			t.Errorf("it stands as %q", stands)
		}
	})
}
