package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/lock"
)

// same tells whether two members are one.
func same(a, b lock.Due) bool { return a.Member() == b.Member() }

// heard counts the nudges `due` from now on; the function returned waits for the first.
func (w *world) heard() (first func()) {
	w.Helper()
	sub := w.admin.Subscribe(w.Context(), "solotick:{svc}:events")
	w.Cleanup(func() { _ = sub.Close() })
	_, err := sub.Receive(w.Context())
	w.must(err)
	return func() {
		w.Helper()
		m, err := sub.ReceiveMessage(w.Context())
		if err != nil || m.Payload != "due" && m.Payload != "due "+job { // the latter of a resumed job
			w.Errorf("heard %v, %v", m, err)
		}
	}
}

func TestTriggerMakesATickOfItsOwnDueNow(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		before, first := w.field("tick"), w.heard()
		asked := w.now()
		d, err := a.Trigger(w.Context(), job, uuid.NewString())
		w.must(err)
		first()
		if ds := w.dues(); len(ds) != 1 || !same(ds[0], d) || d.Kind != "manual" || d.Attempt != 1 || d.Job != job {
			w.Fatalf("due: %+v, want %+v", ds, d)
		}
		if late := d.Tick.Sub(asked); late < -time.Millisecond || late > time.Second {
			w.Errorf("the tick is %s, asked for at %s", d.Tick, asked)
		}
		if w.field("tick") != before {
			w.Errorf("the ledger's tick moved to %s", w.field("tick"))
		}
		seen, err := a.Look(w.Context(), 10)
		if err != nil || len(seen.Due) != 1 {
			w.Fatalf("not due now: %+v, %v", seen.Due, err)
		}
		c := a.claim(0)
		c.Tick, c.Member, c.Kind = d.Tick, d.Member(), d.Kind
		a.wins(c)
	})
}

func TestTicksOfTriggersAreNeverASchedulesNorEqual(t *testing.T) {
	inBubble(t, func(w *world) { // where all are asked for in the same millisecond
		w.born()
		a := w.replica("a")
		seen := map[int64]bool{}
		for range 30 {
			d, err := a.Trigger(w.Context(), job, uuid.NewString())
			w.must(err)
			ms := d.Tick.UnixMilli()
			if ms%10 == 0 || seen[ms] {
				w.Fatalf("tick %d is of a schedule, or was made before", ms)
			}
			seen[ms] = true
		}
		// The clock goes back; the ticks do not.
		w.mini.SetTime(w.start.Add(-time.Hour))
		d, err := a.Trigger(w.Context(), job, uuid.NewString())
		if err != nil || seen[d.Tick.UnixMilli()] || d.Tick.Before(w.start) {
			w.Errorf("tick %s, %v", d.Tick, err)
		}
	})
}

func TestAskedAgainWithTheSameIDNothingIsAdded(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		id := uuid.NewString()
		first, err := a.Trigger(w.Context(), job, id)
		w.must(err)
		c := a.claim(0)
		c.Tick, c.Member = first.Tick, first.Member()
		l, _ := a.wins(c)
		a.finishes(l, 0)
		for range 20 {
			_, err := a.Trigger(w.Context(), job, uuid.NewString())
			w.must(err)
			w.must(a.Pause(w.Context(), job, "", time.Time{}))
			_, err = a.Resume(w.Context(), job)
			w.must(err)
		}
		if again, err := a.Trigger(w.Context(), job, id); !same(again, first) || err != nil {
			w.Errorf("asked again: %+v, %v, want %+v", again, err, first)
		}
		if n := len(w.dues()); n != 20 {
			w.Errorf("%d are due, want 20", n)
		}

		ticks := []time.Time{w.tick(1), w.tick(2)}
		id = uuid.NewString()
		for range 2 {
			if n, err := a.Backfill(w.Context(), job, ticks, id); n != 2 || err != nil {
				w.Errorf("backfill: %d, %v", n, err)
			}
			w.must(w.admin.Del(w.Context(), dueSet).Err())
		}
		if _, err := a.Backfill(w.Context(), job, ticks, id); err != nil || len(w.dues()) != 0 {
			w.Errorf("backfilled again: %+v, %v", w.dues(), err)
		}
		for _, memo := range w.memos() {
			if ttl := w.admin.PTTL(w.Context(), memo).Val(); ttl <= 23*time.Hour || ttl > 24*time.Hour {
				w.Fatalf("%s is kept for %s, want a day", memo, ttl)
			}
		}
	})
}

// memos are the keys under which Redis remembers runs and requests.
func (w *world) memos() []string {
	w.Helper()
	keys, err := w.admin.Keys(w.Context(), "solotick:{svc}:memo:*").Result()
	w.must(err)
	return keys
}

func TestBackfillMakesTheTicksDueInOrder(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		var ticks []time.Time
		for n := range lock.MaxBackfill {
			ticks = append(ticks, w.start.Truncate(time.Second).Add(time.Duration(n-5000)*time.Second).UTC())
		}
		first := w.heard()
		if n, err := a.Backfill(w.Context(), job, ticks, uuid.NewString()); n != len(ticks) || err != nil {
			w.Fatalf("%d, %v", n, err)
		}
		first()
		ds := w.dues()
		for i, d := range ds {
			if !d.Tick.Equal(ticks[i]) || d.Kind != "backfill" || d.Attempt != 1 {
				w.Fatalf("due member %d is %+v, want tick %s", i, d, ticks[i])
			}
		}
		if len(ds) != len(ticks) {
			w.Errorf("%d are due", len(ds))
		}
		if _, err := a.Backfill(w.Context(), job, append(ticks, w.start), uuid.NewString()); err == nil {
			w.Error("more ticks than are allowed were taken")
		}
		if n, err := a.Backfill(w.Context(), job, nil, uuid.NewString()); n != 0 || err != nil || len(w.dues()) != len(ticks) {
			w.Errorf("no ticks: %d, %v, %d due", n, err, len(w.dues()))
		}
	})
}

func TestAJobThatRedisDoesNotKnowIsAnError(t *testing.T) {
	onEvery(t, func(w *world) {
		a := w.replica("a")
		id := uuid.NewString()
		for what, act := range map[string]func() error{
			"trigger":  func() error { _, err := a.Trigger(w.Context(), job, id); return err },
			"backfill": func() error { _, err := a.Backfill(w.Context(), job, []time.Time{w.tick(1)}, id); return err },
			"pause":    func() error { return a.Pause(w.Context(), job, "why", time.Time{}) },
			"resume":   func() error { _, err := a.Resume(w.Context(), job); return err },
		} {
			if err := act(); !errors.Is(err, lock.ErrUnknownJob) {
				w.Errorf("%s: %v", what, err)
			}
		}
		if left := w.dump(); left != "map[]" {
			w.Errorf("Redis holds %s", left)
		}
		if _, err := a.Trigger(w.Context(), job, "no-uuid"); err == nil || errors.Is(err, lock.ErrUnknownJob) {
			w.Errorf("an id that is none: %v", err)
		}
	})
}

// A script that triggers in a loop must not fill Redis, nor what every replica reads at each look.
func TestTriggersOfAJobHaveABound(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born(job, "another")
		a := w.replica("a")
		var ids []string
		for n := range 300 {
			ids = append(ids, uuid.NewString())
			_, err := a.Trigger(w.Context(), job, ids[n])
			if want := n >= 100; errors.Is(err, lock.ErrTooMany) != want || !want && err != nil {
				w.Fatalf("trigger %d: %v", n, err)
			}
		}
		if n := len(w.dues()); n != 100 {
			w.Errorf("%d are due", n)
		}
		d, err := a.Trigger(w.Context(), job, ids[7])
		if err != nil || d.Nonce != ids[7] {
			w.Errorf("asked again: %+v, %v", d, err)
		}
		if _, err := a.Trigger(w.Context(), "another", uuid.NewString()); err != nil {
			w.Errorf("another job: %v", err)
		}
		c := a.claim(0)
		c.Tick, c.Member, c.Kind = d.Tick, d.Member(), d.Kind
		l, _ := a.wins(c)
		a.finishes(l, 0)
		if _, err := a.Trigger(w.Context(), job, ids[200]); err != nil {
			w.Errorf("one was run, and there is no room: %v", err)
		}
	})
}

func TestBackfillsHaveABound(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		var ticks []time.Time
		for n := range lock.MaxBackfill {
			ticks = append(ticks, w.tick(n-lock.MaxBackfill))
		}
		for n := range 6 {
			if _, err := a.Backfill(w.Context(), job, ticks, uuid.NewString()); errors.Is(err, lock.ErrTooMany) != (n == 5) || n < 5 && err != nil {
				w.Errorf("backfill %d: %v", n, err)
			}
		}
		if _, err := a.Trigger(w.Context(), job, uuid.NewString()); err != nil {
			w.Errorf("a trigger waits for backfills: %v", err)
		}
	})
}

func TestAPauseRefusesTheTableUntilItsEndAndResumeSettlesIt(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		until := w.now().Add(time.Hour).Truncate(time.Millisecond)
		w.must(a.Pause(w.Context(), job, "moving\n\x1b[31m house ", until))
		if note := w.field("paused"); !strings.HasSuffix(note, " moving [31m house") || !strings.HasPrefix(note, fmtInt(until.UnixMilli())+" ") {
			w.Errorf("note %q", note)
		}
		a.loses(a.claim(-5), lock.Paused)
		d, err := a.Trigger(w.Context(), job, uuid.NewString())
		w.must(err)
		c := a.claim(0)
		c.Tick, c.Member, c.Kind = d.Tick, d.Member(), d.Kind
		l, _ := a.wins(c)
		a.finishes(l, 0)

		w.must(a.Pause(w.Context(), job, "", time.Time{})) // replaces the one before
		if note := w.field("paused"); !strings.HasPrefix(note, "0 ") {
			w.Errorf("note %q", note)
		}
		a.loses(a.claim(-4), lock.Paused)
		first, before := w.heard(), w.now()
		if ended, err := a.Resume(w.Context(), job); !ended || err != nil {
			w.Fatalf("resume: %t, %v", ended, err)
		}
		first()
		to := number(w, "pausedTo")
		if to < before.UnixMilli() || to > w.now().UnixMilli() || number(w, "tick") != to || w.field("paused") != "" {
			w.Errorf("after resume: %s", w.dump())
		}
		a.loses(a.claim(-3), lock.Fired) // a tick of the pause, by one who comes late
		if ended, err := a.Resume(w.Context(), job); ended || err != nil {
			w.Errorf("resumed twice: %t, %v", ended, err)
		}
	})
}

func TestThePauseOfAllJobsAndAJobsOwnKnowNothingOfEachOther(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		until := w.now().Add(time.Hour).Truncate(time.Millisecond)
		w.must(a.Pause(w.Context(), job, "database migration", time.Time{}))
		w.must(a.PauseWithAll(w.Context(), job, "incident", until))
		states, err := a.States(w.Context(), []string{job})
		w.must(err)
		if s := states[job]; s.Paused == nil || s.Paused.Reason != "database migration" ||
			s.PausedAll == nil || s.PausedAll.Reason != "incident" || !s.PausedAll.Until.Equal(until) || !s.IsPaused() {
			t.Errorf("paused by %+v and %+v", s.Paused, s.PausedAll)
		}
		if answer := a.loses(a.claim(-5), lock.Paused); !answer.Until.IsZero() {
			t.Errorf("it is paused until %s, and nobody knows until when", answer.Until)
		}
		if ended, err := a.ResumeWithAll(w.Context(), job); !ended || err != nil {
			t.Errorf("all resumed: %t, %v", ended, err)
		}
		a.loses(a.claim(-4), lock.Fired) // it came before all were resumed
		later := a.claim(0)
		later.Tick = w.now().Add(500 * time.Millisecond).Truncate(time.Millisecond)
		a.loses(later, lock.Paused)
		if ended, err := a.ResumeWithAll(w.Context(), job); ended || err != nil {
			t.Errorf("all resumed twice: %t, %v", ended, err)
		}
		if ended, err := a.Resume(w.Context(), job); !ended || err != nil {
			t.Errorf("resumed: %t, %v", ended, err)
		}
		if states, err := a.States(w.Context(), []string{job}); err != nil || states[job].IsPaused() {
			t.Errorf("it is still paused: %+v, %v", states[job], err)
		}
	})
}

func TestResumeAfterAPausesOwnEndSettlesNoMore(t *testing.T) {
	inBubble(t, func(w *world) {
		w.born()
		a := w.replica("a")
		until := w.now().Add(time.Minute).Truncate(time.Millisecond)
		w.must(a.Pause(w.Context(), job, "", until))
		w.pass(80 * time.Second)
		if ended, err := a.Resume(w.Context(), job); !ended || err != nil {
			w.Fatalf("resume: %t, %v", ended, err)
		}
		last := until.UnixMilli() - 1 // the tick at its end is none of its
		if number(w, "tick") != last || number(w, "pausedTo") != last {
			w.Errorf("tick %d, pausedTo %d, want %d", number(w, "tick"), number(w, "pausedTo"), last)
		}
		if err := a.Pause(w.Context(), job, "", until); !errors.Is(err, lock.ErrPast) || w.field("paused") != "" {
			w.Errorf("a pause that is over: %v", err)
		}
		// Neither goes back when the clock does.
		w.must(a.Pause(w.Context(), job, "", time.Time{}))
		w.mini.SetTime(until.Add(-30 * time.Second)) // by less than what the replicas do not believe
		_, err := a.Resume(w.Context(), job)
		w.must(err)
		if number(w, "tick") != last || number(w, "pausedTo") != last {
			w.Errorf("set back to tick %d, pausedTo %d", number(w, "tick"), number(w, "pausedTo"))
		}
		if err := a.Pause(w.Context(), job, strings.Repeat("x", lock.MaxReason+1), time.Time{}); err == nil {
			w.Error("an endless reason was taken")
		}
	})
}

func number(w *world, field string) int64 {
	w.Helper()
	n, err := w.admin.HGet(w.Context(), ledger, field).Int64()
	w.must(err)
	return n
}

// onOperatorsLoss is onEveryLoss for scripts that its world has not sent before.
func onOperatorsLoss(t *testing.T, play func(w *world, loss lossy.Action)) {
	onEveryLoss(t, func(w *world, loss lossy.Action) {
		w.born("warm")
		warm := w.replica("warm")
		_, err := warm.Trigger(w.Context(), "warm", uuid.NewString())
		w.must(err)
		_, err = warm.Resume(w.Context(), "warm")
		w.must(err)
		w.must(w.admin.Del(w.Context(), dueSet).Err())
		play(w, loss)
	})
}

func TestUnansweredTriggerIsAskedAgainAndRunsOnce(t *testing.T) {
	onOperatorsLoss(t, func(w *world, loss lossy.Action) {
		a, b := w.replica("a"), w.replica("b")
		asked := a.proxy.Count(lossy.Script(lock.AskSHA))
		a.proxy.On(lossy.Script(lock.AskSHA), 1, loss)
		d, err := a.Trigger(w.Context(), job, uuid.NewString())
		w.must(err)
		if ds := w.dues(); len(ds) != 1 || !same(ds[0], d) || asked.N() != 2 {
			w.Fatalf("asked %d times; due: %+v, want %+v", asked.N(), ds, d)
		}
		c := b.claim(0)
		c.Tick, c.Member = d.Tick, d.Member()
		b.wins(c)
	})
}

func TestUnansweredResumeIsAskedAgainAndAnsweredTheSame(t *testing.T) {
	onOperatorsLoss(t, func(w *world, loss lossy.Action) {
		a := w.replica("a")
		a.proxy.On(lossy.Script(lock.PauseSHA), 1, loss)
		w.must(a.Pause(w.Context(), job, "why", time.Time{}))
		if w.field("paused") == "" {
			w.Fatal("not paused")
		}
		a.proxy.On(lossy.Script(lock.PauseSHA), 1, loss)
		if ended, err := a.Resume(w.Context(), job); !ended || err != nil {
			w.Fatalf("resume: %t, %v", ended, err)
		}
	})
}

func TestAPauseThatComesLateDoesNotUndoTheResume(t *testing.T) {
	inBubble(t, func(w *world) {
		w.born()
		a := w.replica("a")
		w.must(a.Pause(w.Context(), job, "why", time.Time{}))
		memo := w.memos()[0]
		_, err := a.Resume(w.Context(), job)
		w.must(err)
		// The copy of the first request that was under way all the time.
		w.must(w.admin.EvalSha(w.Context(), lock.PauseSHA, []string{ledger, memo}, "events", "pause", 0, 0, "why").Err())
		if w.field("paused") != "" {
			w.Error("paused again")
		}
	})
}

func TestWithoutAnAnswerTheOperatorIsToldSo(t *testing.T) {
	inBubble(t, func(w *world) {
		w.born()
		a := w.replica("a")
		w.mini.SetError("ERR out of order")
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
		defer cancel()
		if _, err := a.Trigger(ctx, job, uuid.NewString()); !errors.Is(err, lock.ErrNoAnswer) {
			w.Errorf("trigger: %v", err)
		}
	})
}
