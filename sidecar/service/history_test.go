package service_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// settles runs the job once for a tick, to that outcome.
func settles(r *redisworld.Replica, n int, outcome string) {
	r.World.Helper()
	l, _ := r.Wins(r.Claim(n))
	e := r.World.Entry(l, outcome)
	e.Failed, e.Ended = outcome != "succeeded", r.World.Now().Truncate(time.Millisecond)
	if got, err := l.Finish(r.World.Context(), 0, e.Ending()); err != nil || got.Verdict != lock.OK {
		r.World.Fatalf("finish: %s, %v", got.Verdict, err)
	}
}

// written reads a history: the outcomes, and the ticks as milliseconds after the case's beginning.
func written(w *redisworld.World) func([]service.Entry, error) string {
	return func(entries []service.Entry, err error) string {
		w.Helper()
		w.Must(err)
		var words []string
		for _, e := range entries {
			words = append(words, fmt.Sprintf("%s %d", e.Outcome, e.Tick.Sub(w.Tick(0)).Milliseconds()))
		}
		return strings.Join(words, ", ")
	}
}

func TestHistoryIsNewestFirstAndEachRunOnce(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		for n, outcome := range []string{"succeeded", "failed", "succeeded", "timed_out"} {
			settles(a, n, outcome)
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
			if got := written(w)(a.Service.History(w.Context(), c.job, c.limit)); got != c.want {
				w.Errorf("%d of %q: %q, want %q", c.limit, c.job, got, c.want)
			}
		}
		if got := written(w)(a.Service.Search(w.Context(), service.Search{Jobs: []string{job}, Failed: true, Limit: 10})); got != "timed_out 3, failed 1" {
			w.Errorf("failures: %s", got)
		}
	})
}

// Ticks that no replica fired have no run, so no two rows of them are the same one.
func TestHistoryShowsEachRowOfTicksThatNoReplicaFired(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		for _, n := range []int{1, 5} {
			e := service.Entry{Job: job, Outcome: lock.Missed, Count: 2, First: w.Tick(n), Tick: w.Tick(n + 1), Ended: w.Now()}
			w.Must(a.Service.AppendHistory(w.Context(), e.Ending()))
			settles(a, n+2, "succeeded")
		}
		if got := written(w)(a.Service.History(w.Context(), job, 10)); got != "succeeded 7, missed 6, succeeded 3, missed 2" {
			w.Errorf("history: %s", got)
		}
	})
}

func TestTheHistoryOfFailuresIsBounded(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		const fill = `for i = 1, 10300 do redis.call('XADD', KEYS[1], '*', 'run', 'of another version') end`
		for _, key := range []string{"solotick:{svc}:runs", "solotick:{svc}:failures"} {
			if err := w.Admin.Eval(w.Context(), fill, []string{key}).Err(); err != nil && !errors.Is(err, redis.Nil) {
				w.Fatal(err)
			}
		}
		settles(a, 0, "failed")
		for _, key := range []string{"solotick:{svc}:runs", "solotick:{svc}:failures"} {
			if n := w.Admin.XLen(w.Context(), key).Val(); n < 10_000 || n > 10_200 { // Redis drops whole nodes of a stream
				w.Errorf("%s has %d entries", key, n)
			}
		}
		if got := written(w)(a.Service.Search(w.Context(), service.Search{Jobs: []string{job}, Failed: true, Limit: 10})); got != "failed 0" {
			w.Errorf("failures: %s", got)
		}
	})
}

// Runs of every replica have no lease, and no script that settles them.
func TestWhatIsAppendedIsInTheHistoryWhichIsBounded(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		s := w.Replica("a").Service
		const fill = `for i = 1, 10300 do redis.call('XADD', KEYS[1], '*', 'run', 'of another version') end`
		for _, key := range []string{"solotick:{svc}:runs", "solotick:{svc}:failures"} {
			if err := w.Admin.Eval(w.Context(), fill, []string{key}).Err(); err != nil && !errors.Is(err, redis.Nil) {
				w.Fatal(err)
			}
		}
		for n, outcome := range []string{"succeeded", "failed"} {
			e := service.Entry{Job: job, Tick: w.Tick(n), Run: outcome, Outcome: outcome, Failed: outcome == "failed"}
			w.Must(s.AppendHistory(w.Context(), e.Ending()))
		}
		for _, key := range []string{"solotick:{svc}:runs", "solotick:{svc}:failures"} {
			if n := w.Admin.XLen(w.Context(), key).Val(); n < 10_000 || n > 10_200 { // Redis drops whole nodes of a stream
				w.Errorf("%s has %d entries", key, n)
			}
		}
		if got := written(w)(s.History(w.Context(), job, 10)); got != "failed 1, succeeded 0" {
			w.Errorf("history: %s", got)
		}
		if got := written(w)(s.Search(w.Context(), service.Search{Jobs: []string{job}, Failed: true, Limit: 10})); got != "failed 1" {
			w.Errorf("failures: %s", got)
		}
	})
}

// The end of a page is an entry that the next one begins behind.
func TestNoEntryIsOnTwoPages(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		s := w.Replica("a").Service
		for n := range 3 {
			e := service.Entry{Job: job, Outcome: lock.Missed, Count: 1, First: w.Tick(n), Tick: w.Tick(n)}
			w.Must(s.AppendHistory(w.Context(), e.Ending()))
		}
		w.Must(w.Admin.Do(w.Context(), "xadd", "solotick:{svc}:runs", "*", "run", "of another version").Err())
		if got := written(w)(s.History(w.Context(), "", 3)); got != "missed 2, missed 1, missed 0" {
			w.Errorf("history: %s", got)
		}
	})
}

func TestFailuresOutliveSuccesses(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		settles(a, 0, "failed")
		w.Pass(time.Second)
		settles(a, 1, "succeeded")
		w.Must(w.Admin.XTrimMaxLen(w.Context(), "solotick:{svc}:runs", 0).Err())
		settles(a, 2, "succeeded")
		if got := written(w)(a.Service.History(w.Context(), "", 10)); got != "succeeded 2, failed 0" {
			w.Errorf("history: %s", got)
		}
	})
}

func TestTheHistoryOfOneJobIsFoundBehindThatOfOthers(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		settles(a, 0, "failed")
		settles(a, 1, "succeeded")
		for part := range 12 { // each with the time of a round trip
			pipe := a.Client.Pipeline()
			for n := range 100 {
				text := fmt.Sprintf(`{"job":"other","run":"r%d","outcome":"succeeded"}`, 100*part+n)
				pipe.Do(w.Context(), "xadd", "solotick:{svc}:runs", "*", "run", text)
			}
			_, err := pipe.Exec(w.Context())
			w.Must(err)
		}
		if got := written(w)(a.Service.History(w.Context(), job, 10)); got != "succeeded 1, failed 0" {
			w.Errorf("of the job: %s", got)
		}
		all, err := a.Service.History(w.Context(), "", 2000)
		if len(all) != 1202 || err != nil {
			w.Errorf("of all: %d, %v", len(all), err)
		}
	})
}

func TestASearchFindsTheRunsThatAreWanted(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		var ended []time.Time
		for n, outcome := range []string{"succeeded", "failed", "succeeded", "timed_out"} {
			settles([]*redisworld.Replica{a, b}[n%2], n, outcome)
			ended = append(ended, w.Now().Truncate(time.Millisecond))
			time.Sleep(time.Second) // in the bubble
		}
		for _, c := range []struct {
			q    service.Search
			want string
		}{
			{service.Search{}, "timed_out 3, succeeded 2, failed 1, succeeded 0"},
			{service.Search{Jobs: []string{job, "other"}, Replicas: []string{"b"}}, "timed_out 3, failed 1"},
			{service.Search{Outcomes: []string{"timed_out", "succeeded"}}, "timed_out 3, succeeded 2, succeeded 0"},
			{service.Search{Failed: true, Outcomes: []string{"succeeded"}}, ""},
			{service.Search{Since: ended[2]}, "timed_out 3, succeeded 2"},
			{service.Search{Since: ended[2].Add(time.Millisecond)}, "timed_out 3"},
			{service.Search{Until: ended[1]}, "succeeded 0"},
			{service.Search{Until: ended[1].Add(time.Millisecond)}, "failed 1, succeeded 0"},
			{service.Search{Since: ended[1], Until: ended[3], Failed: true}, "failed 1"},
			{service.Search{Since: ended[3].Add(time.Hour)}, ""},
		} {
			c.q.Limit = 10
			if got := written(w)(a.Service.Search(w.Context(), c.q)); got != c.want {
				w.Errorf("%+v: %q, want %q", c.q, got, c.want)
			}
		}
	})
}
