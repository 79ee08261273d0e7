package service_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/sidecar/service"
)

func TestARerunIsABackfillOfOneTick(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		id, tick := uuid.NewString(), w.Tick(1).Truncate(time.Second)
		for range 2 {
			d, err := a.Service.As(by).Rerun(w.Context(), job, tick, id)
			if ds := w.Dues(); err != nil || len(ds) != 1 || !redisworld.Same(ds[0], d) || d.Kind != "backfill" || d.Key != "" || !d.Tick.Equal(tick) {
				w.Fatalf("due are %+v, want %+v, %v", ds, d, err)
			}
		}
		acts, err := a.Service.Acts(w.Context(), "", 9)
		if err != nil || len(acts) != 1 || acts[0].What != "rerun" || !acts[0].Tick.Equal(tick) {
			w.Errorf("the acts are %+v, %v", acts, err)
		}
	})
}

func TestTheTickToRerunIsTheNewestThatFailedOrTheGivenOne(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		s := w.Replica("a").Service
		o := &service.Operator{Store: s, Table: func() *config.Table { return &config.Table{} }, Limit: time.Second}
		hourly, err := schedule.Parse("0 * * * *", schedule.Options{})
		w.Must(err)
		j := config.Job{Name: job, Schedule: hourly}
		w.Must(s.Sync(w.Context()))
		now, _ := s.Now()
		hour := func(n int) time.Time { return now.Truncate(time.Hour).Add(time.Duration(n) * time.Hour) }
		force := true
		asks := func(t time.Time) (time.Time, *service.Refusal) {
			tick, err := o.TickToRerun(w.Context(), j, service.Moment{Field: service.Field{Name: "--tick", Text: t.String()}, Time: t}, force)
			var r *service.Refusal
			errors.As(err, &r)
			return tick, r
		}
		if _, r := asks(time.Time{}); r == nil || r.Kind != service.NoFailure {
			w.Errorf("nothing has failed: %v", r)
		}
		for i, e := range []service.Entry{
			{Tick: hour(-9), Kind: "schedule", Outcome: "failed", Failed: true},
			{Tick: hour(-8), Kind: "schedule", Outcome: "failed", Failed: true},
			{Tick: hour(-7), Kind: "schedule", Outcome: "interrupted", Failed: true}, // and run again
			{Tick: hour(-7), Kind: "takeover", Outcome: "succeeded"},
			{Tick: hour(-9), Kind: "backfill", Outcome: "failed", Failed: true},
			{Tick: hour(-8), Kind: "backfill", Outcome: "succeeded"},
			{Tick: hour(-3).Add(7 * time.Millisecond), Kind: "manual", Outcome: "failed", Failed: true},
			{Tick: hour(-4), Kind: "handover", Outcome: service.HandedOver},
			{Tick: hour(-8).Add(30 * time.Minute), Kind: "handover", Outcome: "failed", Failed: true}, // and, settled later:
			{Tick: hour(-8).Add(30 * time.Minute), Kind: "schedule", Outcome: service.HandedOver},
			{Tick: hour(-6).Add(time.Minute), Kind: "schedule", Outcome: "succeeded"}, // by a schedule of before
		} {
			e.Job, e.Run, e.Replica, e.Attempt, e.Ended = job, uuid.NewString(), "a", i+1, now
			w.Must(s.AppendHistory(w.Context(), &e))
		}
		// It was mended since, and Redis has the failure alone.
		mended := fmt.Sprintf(`{"job":"%s","tick":%d,"run":"r","outcome":"failed","failed":true}`, job, hour(-2).UnixMilli())
		w.Must(w.Admin.Do(w.Context(), "xadd", failures, "*", "run", mended).Err())
		for given, want := range map[time.Time]time.Time{{}: hour(-8).Add(30 * time.Minute), hour(-5): hour(-5), hour(-6).Add(time.Minute): hour(-6).Add(time.Minute)} {
			if tick, r := asks(given); r != nil || !tick.Equal(want) {
				w.Errorf("asked for %s: %s, %v; want %s", given, tick, r, want)
			}
		}
		if _, r := asks(hour(-5).Add(time.Minute)); r == nil || r.Kind != service.Invalid ||
			!strings.Contains(r.Hint, hour(-5).Format(time.RFC3339)+" "+hour(-4).Format(time.RFC3339)) {
			w.Errorf("no tick: %+v", r)
		}
		if _, r := asks(hour(+1)); r == nil || r.Kind != service.Future {
			w.Errorf("yet to come: %+v", r)
		}
		force = false
		for given, want := range map[time.Time]string{hour(-2): "has no run of it", hour(-9): "", hour(-7): "has it as succeeded", hour(-8): "has it as succeeded", hour(-5): "has no run of it",
			hour(-4): "has no run of it"} {
			tick, r := asks(given)
			if want == "" && (r != nil || !tick.Equal(given)) || want != "" && (r == nil || r.Kind != service.NoFailure || !strings.Contains(r.Message, want)) {
				w.Errorf("%s without force: %s, %v; want %q", given, tick, r, want)
			}
		}
		force = true
		j.Schedule = nil
		if _, r := asks(hour(-5)); r == nil || r.Kind != service.Partial {
			w.Errorf("without a schedule: %+v", r)
		}
		if tick, r := asks(hour(-8)); r != nil || !tick.Equal(hour(-8)) {
			w.Errorf("without a schedule, of the history: %s, %v", tick, r)
		}
	})
}
