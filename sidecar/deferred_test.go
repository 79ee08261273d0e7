package sidecar

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

func TestOneAtATimeIsBusyWithADueMember(t *testing.T) {
	d := newDeferred(&sync.WaitGroup{})
	done, ok := d.begin("m")
	if _, again := d.begin("m"); !ok || again {
		t.Errorf("the first may begin: %t, the second: %t", ok, again)
	}
	if _, ok := d.begin("n"); !ok {
		t.Error("another member is held up")
	}
	done()
	if _, ok := d.begin("m"); !ok {
		t.Error("nobody may begin when the first is done")
	}
}

func TestWhatIsLeftAloneIsSoUntilItsTimeOrAResumption(t *testing.T) {
	now := time.Now()
	for resumed, want := range map[string][]string{"": {"a1", "b1", "t1"}, "a": {"b1", "t1"}, "b": {"a1", "t1"}, service.AnyJob: nil} {
		d := newDeferred(&sync.WaitGroup{})
		d.deferUntil("a1", "a", now.Add(time.Second))
		d.deferUntil("b1", "b", now.Add(time.Second))
		d.deferUntil("t1", "timer:t1", now.Add(time.Second))
		d.deferUntil("late", "a", now)
		d.expire(now)
		if n := d.deferredTimers(); n != 1 {
			t.Errorf("%d timers are left alone, want 1", n)
		}
		if resumed != "" {
			d.resume(resumed)
		}
		var got []string
		for _, m := range []string{"a1", "b1", "late", "t1"} {
			if d.isDeferred(m) {
				got = append(got, m)
			}
		}
		if len(got) != len(want) {
			t.Errorf("after the resumption of %q: %q, want %q", resumed, got, want)
		}
	}
}

// A resumption may be heard while its job is asked for, and the answer still be that it is paused.
func TestWhatIsResumedMeanwhileIsNotLeftAlone(t *testing.T) {
	d := newDeferred(&sync.WaitGroup{})
	before := d.resumptionCount()
	d.resume("a")
	d.deferPaused("a1", "a", time.Now().Add(time.Minute), before)
	if d.isDeferred("a1") {
		t.Error("it is left alone")
	}
	d.deferPaused("a1", "a", time.Now().Add(time.Minute), d.resumptionCount())
	if !d.isDeferred("a1") {
		t.Error("it is not left alone")
	}
}

// A look may show a tick before it shows the run in its way: the tick is left alone for a second then.
func TestABackfillDoesNotOvertakeATickThatIsLeftAloneForARun(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(time.Second)
		w.at(10 * time.Second)
		late := lock.Due{Tick: w.origin().Add(5 * time.Second), Job: "minute", Kind: "catchup", Attempt: 1, Nonce: uuid.NewString()}
		r.looker.deferred.deferUntil(late.Member(), "minute", time.Now().Add(time.Second))
		_, err := w.redis.ZAdd(dueSet, 1, late.Member())
		w.must(err)
		_, err = r.store.Backfill(w.t.Context(), "minute", []time.Time{w.origin().Add(-100 * time.Minute)}, uuid.NewString(), false)
		w.must(err)
		w.at(15 * time.Second)
		w.expectOrder("minute", "0s schedule", "5s catchup", "-1h40m0s backfill")
	})
}
