package service_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

func TestTriggerMakesATickOfItsOwnDueNow(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		before, first := w.Field("tick"), w.Heard()
		asked := w.Now()
		d, err := a.Service.Trigger(w.Context(), job, uuid.NewString())
		w.Must(err)
		first()
		if ds := w.Dues(); len(ds) != 1 || !redisworld.Same(ds[0], d) || d.Kind != "manual" || d.Attempt != 1 || d.Job != job {
			w.Fatalf("due: %+v, want %+v", ds, d)
		}
		if late := d.Tick.Sub(asked); late < -time.Millisecond || late > time.Second {
			w.Errorf("the tick is %s, asked for at %s", d.Tick, asked)
		}
		if w.Field("tick") != before {
			w.Errorf("the ledger's tick moved to %s", w.Field("tick"))
		}
		seen, err := a.Service.Look(w.Context(), 10)
		if err != nil || len(seen.Due) != 1 {
			w.Fatalf("not due now: %+v, %v", seen.Due, err)
		}
		c := a.Claim(0)
		c.Tick, c.Member, c.Kind = d.Tick, d.Member(), d.Kind
		a.Wins(c)
	})
}

func TestTicksOfTriggersAreNeverASchedulesNorEqual(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) { // where all are asked for in the same millisecond
		w.Born()
		a := w.Replica("a")
		seen := map[int64]bool{}
		for range 30 {
			d, err := a.Service.Trigger(w.Context(), job, uuid.NewString())
			w.Must(err)
			ms := d.Tick.UnixMilli()
			if ms%10 == 0 || seen[ms] {
				w.Fatalf("tick %d is of a schedule, or was made before", ms)
			}
			seen[ms] = true
		}
		// The clock goes back; the ticks do not.
		w.Mini.SetTime(w.Start.Add(-time.Hour))
		d, err := a.Service.Trigger(w.Context(), job, uuid.NewString())
		if err != nil || seen[d.Tick.UnixMilli()] || d.Tick.Before(w.Start) {
			w.Errorf("tick %s, %v", d.Tick, err)
		}
	})
}

func TestAskedAgainWithTheSameIDNothingIsAdded(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		id := uuid.NewString()
		first, err := a.Service.Trigger(w.Context(), job, id)
		w.Must(err)
		c := a.Claim(0)
		c.Tick, c.Member = first.Tick, first.Member()
		l, _ := a.Wins(c)
		a.Finishes(l, 0)
		for range 20 {
			_, err := a.Service.Trigger(w.Context(), job, uuid.NewString())
			w.Must(err)
			w.Must(a.Service.Pause(w.Context(), job, "", time.Time{}))
			_, err = a.Service.Resume(w.Context(), job)
			w.Must(err)
		}
		if again, err := a.Service.Trigger(w.Context(), job, id); !redisworld.Same(again, first) || err != nil {
			w.Errorf("asked again: %+v, %v, want %+v", again, err, first)
		}
		if n := len(w.Dues()); n != 20 {
			w.Errorf("%d are due, want 20", n)
		}

		ticks := []time.Time{w.Tick(1), w.Tick(2)}
		id = uuid.NewString()
		for range 2 {
			if n, err := a.Service.Backfill(w.Context(), job, ticks, id, false); n != 2 || err != nil {
				w.Errorf("backfill: %d, %v", n, err)
			}
			w.Must(w.Admin.Del(w.Context(), dueSet).Err())
		}
		if _, err := a.Service.Backfill(w.Context(), job, ticks, id, false); err != nil || len(w.Dues()) != 0 {
			w.Errorf("backfilled again: %+v, %v", w.Dues(), err)
		}
		for _, memo := range memos(w) {
			if ttl := w.Admin.PTTL(w.Context(), memo).Val(); ttl <= 23*time.Hour || ttl > 24*time.Hour {
				w.Fatalf("%s is kept for %s, want a day", memo, ttl)
			}
		}
	})
}

// memos are the keys under which Redis remembers runs and requests.
func memos(w *redisworld.World) []string {
	w.Helper()
	keys, err := w.Admin.Keys(w.Context(), "solotick:{svc}:memo:*").Result()
	w.Must(err)
	return keys
}

func TestBackfillMakesTheTicksDueInOrder(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		var ticks []time.Time
		for n := range service.MaxBackfill {
			ticks = append(ticks, w.Start.Truncate(time.Second).Add(time.Duration(n-5000)*time.Second).UTC())
		}
		first := w.Heard()
		if n, err := a.Service.Backfill(w.Context(), job, ticks, uuid.NewString(), false); n != len(ticks) || err != nil {
			w.Fatalf("%d, %v", n, err)
		}
		first()
		ds := w.Dues()
		for i, d := range ds {
			if !d.Tick.Equal(ticks[i]) || d.Kind != "backfill" || d.Attempt != 1 {
				w.Fatalf("due member %d is %+v, want tick %s", i, d, ticks[i])
			}
		}
		if len(ds) != len(ticks) {
			w.Errorf("%d are due", len(ds))
		}
		if _, err := a.Service.Backfill(w.Context(), job, append(ticks, w.Start), uuid.NewString(), false); err == nil {
			w.Error("more ticks than are allowed were taken")
		}
		if n, err := a.Service.Backfill(w.Context(), job, nil, uuid.NewString(), false); n != 0 || err != nil || len(w.Dues()) != len(ticks) {
			w.Errorf("no ticks: %d, %v, %d due", n, err, len(w.Dues()))
		}
	})
}

func TestAJobThatRedisDoesNotKnowIsAnError(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		id := uuid.NewString()
		for what, act := range map[string]func() error{
			"trigger": func() error { _, err := a.Service.Trigger(w.Context(), job, id); return err },
			"backfill": func() error {
				_, err := a.Service.Backfill(w.Context(), job, []time.Time{w.Tick(1)}, id, false)
				return err
			},
			"pause":  func() error { return a.Service.Pause(w.Context(), job, "why", time.Time{}) },
			"resume": func() error { _, err := a.Service.Resume(w.Context(), job); return err },
		} {
			if err := act(); !errors.Is(err, service.ErrUnknownJob) {
				w.Errorf("%s: %v", what, err)
			}
		}
		if left := w.Dump(); left != "map[]" {
			w.Errorf("Redis holds %s", left)
		}
		if _, err := a.Service.Trigger(w.Context(), job, "no-uuid"); err == nil || errors.Is(err, service.ErrUnknownJob) {
			w.Errorf("an id that is none: %v", err)
		}
	})
}

// A script that triggers in a loop must not fill Redis, nor what every replica reads at each look.
func TestTriggersOfAJobHaveABound(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born(job, "another")
		a := w.Replica("a")
		var ids []string
		for n := range 300 {
			ids = append(ids, uuid.NewString())
			_, err := a.Service.Trigger(w.Context(), job, ids[n])
			if want := n >= 100; errors.Is(err, service.ErrTooMany) != want || !want && err != nil {
				w.Fatalf("trigger %d: %v", n, err)
			}
		}
		if n := len(w.Dues()); n != 100 {
			w.Errorf("%d are due", n)
		}
		d, err := a.Service.Trigger(w.Context(), job, ids[7])
		if err != nil || d.Nonce != ids[7] {
			w.Errorf("asked again: %+v, %v", d, err)
		}
		if _, err := a.Service.Trigger(w.Context(), "another", uuid.NewString()); err != nil {
			w.Errorf("another job: %v", err)
		}
		c := a.Claim(0)
		c.Tick, c.Member, c.Kind = d.Tick, d.Member(), d.Kind
		l, _ := a.Wins(c)
		a.Finishes(l, 0)
		if _, err := a.Service.Trigger(w.Context(), job, ids[200]); err != nil {
			w.Errorf("one was run, and there is no room: %v", err)
		}
	})
}

func TestBackfillsHaveABound(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		var ticks []time.Time
		for n := range service.MaxBackfill {
			ticks = append(ticks, w.Tick(n-service.MaxBackfill))
		}
		for n := range 6 {
			if _, err := a.Service.Backfill(w.Context(), job, ticks, uuid.NewString(), false); errors.Is(err, service.ErrTooMany) != (n == 5) || n < 5 && err != nil {
				w.Errorf("backfill %d: %v", n, err)
			}
		}
		if _, err := a.Service.Trigger(w.Context(), job, uuid.NewString()); err != nil {
			w.Errorf("a trigger waits for backfills: %v", err)
		}
	})
}

func TestAPauseRefusesTheTableUntilItsEndAndResumeSettlesIt(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		until := w.Now().Add(time.Hour).Truncate(time.Millisecond)
		w.Must(a.Service.Pause(w.Context(), job, "moving\n\x1b[31m house ", until))
		if note := w.Field("paused"); !strings.HasSuffix(note, " moving [31m house") || !strings.HasPrefix(note, rds.Itoa(until.UnixMilli())+" ") {
			w.Errorf("note %q", note)
		}
		a.Loses(a.Claim(-5), lock.Paused)
		d, err := a.Service.Trigger(w.Context(), job, uuid.NewString())
		w.Must(err)
		c := a.Claim(0)
		c.Tick, c.Member, c.Kind = d.Tick, d.Member(), d.Kind
		l, _ := a.Wins(c)
		a.Finishes(l, 0)

		w.Must(a.Service.Pause(w.Context(), job, "", time.Time{})) // replaces the one before
		if note := w.Field("paused"); !strings.HasPrefix(note, "0 ") {
			w.Errorf("note %q", note)
		}
		a.Loses(a.Claim(-4), lock.Paused)
		first, before := w.Heard(), w.Now()
		if ended, err := a.Service.Resume(w.Context(), job); !ended || err != nil {
			w.Fatalf("resume: %t, %v", ended, err)
		}
		first()
		to := w.Number("pausedTo")
		if to < before.UnixMilli() || to > w.Now().UnixMilli() || w.Number("tick") != to || w.Field("paused") != "" {
			w.Errorf("after resume: %s", w.Dump())
		}
		a.Loses(a.Claim(-3), lock.Fired) // a tick of the pause, by one who comes late
		if ended, err := a.Service.Resume(w.Context(), job); ended || err != nil {
			w.Errorf("resumed twice: %t, %v", ended, err)
		}
	})
}

func TestThePauseOfAllJobsAndAJobsOwnKnowNothingOfEachOther(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		until := w.Now().Add(time.Hour).Truncate(time.Millisecond)
		w.Must(a.Service.Pause(w.Context(), job, "database migration", time.Time{}))
		all := a.Service.As(service.Author{All: "a command"})
		w.Must(all.Pause(w.Context(), job, "incident", until))
		states, err := a.Service.States(w.Context(), []string{job})
		w.Must(err)
		if s := states[job]; s.Paused == nil || s.Paused.Reason != "database migration" ||
			s.PausedAll == nil || s.PausedAll.Reason != "incident" || !s.PausedAll.Until.Equal(until) || !s.IsPaused() {
			t.Errorf("paused by %+v and %+v", s.Paused, s.PausedAll)
		}
		if answer := a.Loses(a.Claim(-5), lock.Paused); !answer.Until.IsZero() {
			t.Errorf("it is paused until %s, and nobody knows until when", answer.Until)
		}
		if ended, err := all.Resume(w.Context(), job); !ended || err != nil {
			t.Errorf("all resumed: %t, %v", ended, err)
		}
		a.Loses(a.Claim(-4), lock.Fired) // it came before all were resumed
		later := a.Claim(0)
		later.Tick = w.Now().Add(500 * time.Millisecond).Truncate(time.Millisecond)
		a.Loses(later, lock.Paused)
		if ended, err := all.Resume(w.Context(), job); ended || err != nil {
			t.Errorf("all resumed twice: %t, %v", ended, err)
		}
		if ended, err := a.Service.Resume(w.Context(), job); !ended || err != nil {
			t.Errorf("resumed: %t, %v", ended, err)
		}
		if states, err := a.Service.States(w.Context(), []string{job}); err != nil || states[job].IsPaused() {
			t.Errorf("it is still paused: %+v, %v", states[job], err)
		}
	})
}

func TestResumeAfterAPausesOwnEndSettlesNoMore(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		until := w.Now().Add(time.Minute).Truncate(time.Millisecond)
		w.Must(a.Service.Pause(w.Context(), job, "", until))
		w.Pass(80 * time.Second)
		if ended, err := a.Service.Resume(w.Context(), job); !ended || err != nil {
			w.Fatalf("resume: %t, %v", ended, err)
		}
		last := until.UnixMilli() - 1 // the tick at its end is none of its
		if w.Number("tick") != last || w.Number("pausedTo") != last {
			w.Errorf("tick %d, pausedTo %d, want %d", w.Number("tick"), w.Number("pausedTo"), last)
		}
		if err := a.Service.Pause(w.Context(), job, "", until); !errors.Is(err, service.ErrPast) || w.Field("paused") != "" {
			w.Errorf("a pause that is over: %v", err)
		}
		// Neither goes back when the clock does.
		w.Must(a.Service.Pause(w.Context(), job, "", time.Time{}))
		w.Mini.SetTime(until.Add(-30 * time.Second)) // by less than what the replicas do not believe
		_, err := a.Service.Resume(w.Context(), job)
		w.Must(err)
		if w.Number("tick") != last || w.Number("pausedTo") != last {
			w.Errorf("set back to tick %d, pausedTo %d", w.Number("tick"), w.Number("pausedTo"))
		}
		if err := a.Service.Pause(w.Context(), job, strings.Repeat("x", service.MaxReason+1), time.Time{}); err == nil {
			w.Error("an endless reason was taken")
		}
	})
}

// onOperatorsLoss is onEveryLoss for scripts that its world has not sent before.
func onOperatorsLoss(t *testing.T, play func(w *redisworld.World, loss lossy.Action)) {
	redisworld.OnEveryLoss(t, func(w *redisworld.World, loss lossy.Action) {
		w.Born("warm")
		warm := w.Replica("warm")
		_, err := warm.Service.Trigger(w.Context(), "warm", uuid.NewString())
		w.Must(err)
		_, err = warm.Service.Resume(w.Context(), "warm")
		w.Must(err)
		w.Must(w.Admin.Del(w.Context(), dueSet).Err())
		play(w, loss)
	})
}

func TestUnansweredTriggerIsAskedAgainAndRunsOnce(t *testing.T) {
	onOperatorsLoss(t, func(w *redisworld.World, loss lossy.Action) {
		a, b := w.Replica("a"), w.Replica("b")
		asked := a.Proxy.Count(lossy.Script(service.AskSHA))
		a.Proxy.On(lossy.Script(service.AskSHA), 1, loss)
		d, err := a.Service.Trigger(w.Context(), job, uuid.NewString())
		w.Must(err)
		if ds := w.Dues(); len(ds) != 1 || !redisworld.Same(ds[0], d) || asked.N() != 2 {
			w.Fatalf("asked %d times; due: %+v, want %+v", asked.N(), ds, d)
		}
		c := b.Claim(0)
		c.Tick, c.Member = d.Tick, d.Member()
		b.Wins(c)
	})
}

func TestUnansweredResumeIsAskedAgainAndAnsweredTheSame(t *testing.T) {
	onOperatorsLoss(t, func(w *redisworld.World, loss lossy.Action) {
		a := w.Replica("a")
		a.Proxy.On(lossy.Script(service.PauseSHA), 1, loss)
		w.Must(a.Service.Pause(w.Context(), job, "why", time.Time{}))
		if w.Field("paused") == "" {
			w.Fatal("not paused")
		}
		a.Proxy.On(lossy.Script(service.PauseSHA), 1, loss)
		if ended, err := a.Service.Resume(w.Context(), job); !ended || err != nil {
			w.Fatalf("resume: %t, %v", ended, err)
		}
	})
}

func TestAPauseThatComesLateDoesNotUndoTheResume(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		w.Must(a.Service.Pause(w.Context(), job, "why", time.Time{}))
		memo := memos(w)[0]
		_, err := a.Service.Resume(w.Context(), job)
		w.Must(err)
		// The copy of the first request that was under way all the time.
		w.Must(w.Admin.EvalSha(w.Context(), service.PauseSHA, []string{ledger, memo}, "events", job, "pause", w.Now().Add(time.Hour).UnixMilli(), 0, 0, "why").Err())
		if w.Field("paused") != "" {
			w.Error("paused again")
		}
	})
}

// TestAPauseThatWasGivenUpDoesNotUndoTheResume has no copy of the pause arrive before the resume.
func TestAPauseThatWasGivenUpDoesNotUndoTheResume(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		w.Must(a.Sync(w.Context()))
		f := a.Proxy.On(lossy.Script(service.PauseSHA), 1, lossy.HangRequest)
		ctx, cancel := context.WithTimeout(w.Context(), a.Timeout/2)
		defer cancel()
		if err := a.Service.Pause(ctx, job, "why", time.Time{}); !errors.Is(err, lock.ErrNoAnswer) {
			w.Fatalf("paused: %v", err)
		}
		_, err := b.Service.Resume(w.Context(), job)
		w.Must(err)
		reply, err := f.Deliver(w.Context())
		if err != nil || !strings.Contains(reply, "STALE") || w.Field("paused") != "" {
			w.Errorf("the late copy: %q, %v; paused: %q", reply, err, w.Field("paused"))
		}
	})
}

func TestWithoutAnAnswerTheOperatorIsToldSo(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		w.Mini.SetError("ERR out of order")
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
		defer cancel()
		if _, err := a.Service.Trigger(ctx, job, uuid.NewString()); !errors.Is(err, lock.ErrNoAnswer) {
			w.Errorf("trigger: %v", err)
		}
	})
}
