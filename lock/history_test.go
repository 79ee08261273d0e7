package lock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/lock"
)

// settled runs the job once for a tick, to that outcome.
func (r *replica) settled(n int, outcome string) {
	r.w.Helper()
	l, _ := r.wins(r.claim(n))
	e := &lock.Entry{Outcome: outcome, Failed: outcome != "succeeded", Ended: r.w.now().Truncate(time.Millisecond)}
	if got, err := l.Finish(r.w.Context(), 0, e); err != nil || got != lock.OK {
		r.w.Fatalf("finish: %s, %v", got, err)
	}
}

// written are the outcomes, and the ticks as milliseconds after the case's beginning, of a history.
func (w *world) written(entries []lock.Entry, err error) string {
	w.Helper()
	w.must(err)
	var words []string
	for _, e := range entries {
		words = append(words, fmt.Sprintf("%s %d", e.Outcome, e.Tick.Sub(w.tick(0)).Milliseconds()))
	}
	return strings.Join(words, ", ")
}

func TestHistoryIsNewestFirstAndEachRunOnce(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		for n, outcome := range []string{"succeeded", "failed", "succeeded", "timed_out"} {
			a.settled(n, outcome)
		}
		for _, c := range []struct {
			job   string
			limit int
			want  string
		}{
			{"", 10, "timed_out 3, succeeded 2, failed 1, succeeded 0"},
			{job, 10, "timed_out 3, succeeded 2, failed 1, succeeded 0"},
			{"", 2, "timed_out 3, succeeded 2"},
			{job, 3, "timed_out 3, succeeded 2, failed 1"},
			{"other", 10, ""},
			{"", 0, ""},
		} {
			if got := w.written(a.History(w.Context(), c.job, c.limit)); got != c.want {
				w.Errorf("%d of %q: %q, want %q", c.limit, c.job, got, c.want)
			}
		}
		if got := w.written(a.Failures(w.Context(), job, 10)); got != "timed_out 3, failed 1" {
			w.Errorf("failures: %s", got)
		}
	})
}

func TestFailuresOutliveSuccesses(t *testing.T) {
	inBubble(t, func(w *world) {
		w.born()
		a := w.replica("a")
		a.settled(0, "failed")
		a.settled(1, "succeeded")
		w.must(w.admin.XTrimMaxLen(w.Context(), "solotick:{svc}:runs", 0).Err())
		a.settled(2, "succeeded")
		if got := w.written(a.History(w.Context(), "", 10)); got != "succeeded 2, failed 0" {
			w.Errorf("history: %s", got)
		}
	})
}

func TestTheHistoryOfOneJobIsFoundBehindThatOfOthers(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		a.settled(0, "failed")
		a.settled(1, "succeeded")
		pipe := a.rdb.Pipeline()
		for n := range 1200 {
			text := fmt.Sprintf(`{"job":"other","run":"r%d","outcome":"succeeded"}`, n)
			pipe.Do(w.Context(), "xadd", "solotick:{svc}:runs", "*", "run", text)
		}
		_, err := pipe.Exec(w.Context())
		w.must(err)
		if got := w.written(a.History(w.Context(), job, 10)); got != "succeeded 1, failed 0" {
			w.Errorf("of the job: %s", got)
		}
		all, err := a.History(w.Context(), "", 2000)
		if len(all) != 1202 || err != nil {
			w.Errorf("of all: %d, %v", len(all), err)
		}
	})
}
