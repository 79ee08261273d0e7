package service_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// history and failures are the streams of the job.
const history, failures = "solotick:{svc}:history:" + job, "solotick:{svc}:failures:" + job

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
			{job, 10, "timed_out 3, succeeded 2, failed 1, succeeded 0"},
			{job, 2, "timed_out 3, succeeded 2"},
			{job, 3, "timed_out 3, succeeded 2, failed 1"},
			{"other", 10, ""},
			{job, 0, ""},
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
			w.Must(a.Service.AppendHistory(w.Context(), &e))
			settles(a, n+2, "succeeded")
		}
		if got := written(w)(a.Service.History(w.Context(), job, 10)); got != "succeeded 7, missed 6, succeeded 3, missed 2" {
			w.Errorf("history: %s", got)
		}
	})
}

// Runs of every replica have no lease, and no script that settles them.
func TestWhatIsAppendedIsInTheHistoryWhichIsBounded(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		s := w.Replica("a").Service
		const fill = `for i = 1, 800 do redis.call('XADD', KEYS[1], '*', 'run', 'of another version') end`
		for _, key := range []string{history, failures} {
			if err := w.Admin.Eval(w.Context(), fill, []string{key}).Err(); err != nil && !errors.Is(err, redis.Nil) {
				w.Fatal(err)
			}
		}
		for n, outcome := range []string{"succeeded", "failed"} {
			e := service.Entry{Job: job, Tick: w.Tick(n), Run: outcome, Outcome: outcome, Failed: outcome == "failed"}
			w.Must(s.AppendHistory(w.Context(), &e))
		}
		for key, least := range map[string]int64{history: 200, failures: 50} {
			if n := w.Admin.XLen(w.Context(), key).Val(); n < least || n > least+100 { // Redis drops whole nodes of a stream
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
			w.Must(s.AppendHistory(w.Context(), &e))
		}
		w.Must(w.Admin.Do(w.Context(), "xadd", history, "*", "run", "of another version").Err())
		if got := written(w)(s.History(w.Context(), job, 3)); got != "missed 2, missed 1, missed 0" {
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
		w.Must(w.Admin.XTrimMaxLen(w.Context(), history, 0).Err())
		settles(a, 2, "succeeded")
		if got := written(w)(a.Service.History(w.Context(), job, 10)); got != "succeeded 2, failed 0" {
			w.Errorf("history: %s", got)
		}
	})
}

// A job that fires each second pushes nothing of another one out, and both are read together.
func TestTheHistoriesOfManyJobsAreReadTogether(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		settles(a, 0, "failed")
		settles(a, 1, "succeeded")
		w.Pass(time.Millisecond)
		jobs := []string{job}
		for part := range 12 { // each with the time of a round trip
			name := fmt.Sprint("other-", part)
			jobs = append(jobs, name)
			for n := range 100 {
				e := service.Entry{Job: name, Run: fmt.Sprintf("r%d", 100*part+n), Outcome: "succeeded"}
				w.Must(a.Service.AppendHistory(w.Context(), &e))
			}
			w.Pass(time.Millisecond)
		}
		if got := written(w)(a.Service.History(w.Context(), job, 10)); got != "succeeded 1, failed 0" {
			w.Errorf("of the job: %s", got)
		}
		all, err := a.Service.Search(w.Context(), service.Search{Jobs: jobs, Limit: 2000})
		if len(all) != 1202 || err != nil || all[0].Run != "r1199" || all[1199].Run != "r0" || all[1201].Outcome != "failed" {
			w.Errorf("of all: %d, %v", len(all), err)
		}
		few, err := a.Service.Search(w.Context(), service.Search{Jobs: jobs, Limit: 150})
		if len(few) != 150 || err != nil || few[149].Run != "r1050" {
			w.Errorf("of the newest: %d, %v", len(few), err)
		}
		each, err := a.Service.Search(w.Context(), service.Search{Jobs: jobs, Limit: 2000, Each: 2})
		if len(each) != 26 || err != nil || !each[25].Tick.Equal(w.Tick(0)) || each[22].Run != "r99" {
			w.Errorf("two of each: %d, %v", len(each), err)
		}
	})
}

// A replica that could not start a run handed it on. Its entry belongs to the run that followed.
func TestHandoversDoNotCountAmongTheNewestOfEachJob(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		s := w.Replica("a").Service
		for n, outcome := range []string{"succeeded", service.HandedOver, "failed", service.HandedOver} {
			e := service.Entry{Job: job, Tick: w.Tick(n), Run: fmt.Sprint("r", n), Outcome: outcome}
			w.Must(s.AppendHistory(w.Context(), &e))
		}
		q := service.Search{Jobs: []string{job}, Limit: 10, Each: 1}
		if got := written(w)(s.Search(w.Context(), q)); got != "handed_over 3, failed 2" {
			w.Errorf("the newest: %s", got)
		}
	})
}

// A replica that was taken for dead may have finished all the same: its second entry is the one that counts.
func TestARunThatEndsTwiceIsShownAsItEndedLast(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		s := w.Replica("a").Service
		for _, outcome := range []string{"interrupted", "succeeded"} {
			e := service.Entry{Job: job, Tick: w.Tick(1), Run: "r", Outcome: outcome, Failed: outcome == "interrupted"}
			w.Must(s.AppendHistory(w.Context(), &e))
		}
		for _, outcomes := range [][]string{nil, {"interrupted"}} {
			got := written(w)(s.Search(w.Context(), service.Search{Jobs: []string{job}, Outcomes: outcomes, Limit: 10}))
			if want := map[int]string{0: "succeeded 1"}[len(outcomes)]; got != want {
				w.Errorf("%v: %q, want %q", outcomes, got, want)
			}
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
			if c.q.Jobs == nil {
				c.q.Jobs = []string{job}
			}
			if got := written(w)(a.Service.Search(w.Context(), c.q)); got != c.want {
				w.Errorf("%+v: %q, want %q", c.q, got, c.want)
			}
		}
	})
}

// They are no runs, and a job that is paused or overlaps often has many of them.
func TestTicksThatOverlappedAreFoundByTheirOutcomeAlone(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		s := w.Replica("a").Service
		for n, fate := range []string{lock.Missed, lock.Overlapped, lock.PausedTick} {
			e := service.Entry{Job: job, Outcome: fate, Count: 1, First: w.Tick(n), Tick: w.Tick(n)}
			w.Must(s.AppendHistory(w.Context(), &e))
		}
		for want, outcomes := range map[string][]string{"missed 0": nil, "paused 2, overlapped 1": {lock.Overlapped, lock.PausedTick}} {
			if got := written(w)(s.Search(w.Context(), service.Search{Jobs: []string{job}, Outcomes: outcomes, Limit: 10})); got != want {
				w.Errorf("%v: %q, want %q", outcomes, got, want)
			}
		}
	})
}

func TestEachJobHasItsNewestRunsWhateverPushesThemBack(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		s := w.Replica("a").Service
		appended := func(e service.Entry) { w.Must(s.AppendHistory(w.Context(), &e)) }
		appended(service.Entry{Job: "seldom", Tick: w.Tick(0), Run: "r", Outcome: "succeeded"})
		for n := range 60 {
			w.Pass(time.Millisecond)
			appended(service.Entry{Job: "seldom", Outcome: lock.Overlapped, Count: 1, First: w.Tick(n), Tick: w.Tick(n)})
			appended(service.Entry{Job: "often", Run: fmt.Sprint("r", n), Outcome: "succeeded"})
		}
		q := service.Search{Jobs: []string{"often", "seldom"}, Limit: math.MaxInt, Each: 2}
		if all, err := s.Search(w.Context(), q); len(all) != 3 || all[0].Run != "r59" || all[2].Run != "r" || err != nil {
			w.Errorf("the newest: %+v, %v", all, err)
		}
	})
}

// Redis before 7.2 has other clocks within one script.
func TestTheCopyOfAFailureIsNotNewerThanWhatFollowedIt(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		for _, e := range []struct{ key, id, run string }{
			{history, "999-0", "failed"}, {failures, "1000-0", "failed"}, {history, "1000-0", "after it"},
		} {
			text := fmt.Sprintf(`{"run":%q,"outcome":"failed","failed":true}`, e.run)
			w.Must(w.Admin.Do(w.Context(), "xadd", e.key, e.id, "run", text).Err())
		}
		all, err := w.Replica("a").Service.History(w.Context(), job, 10)
		if len(all) != 2 || all[0].Run != "after it" || err != nil {
			w.Errorf("%+v, %v", all, err)
		}
	})
}

// Many jobs end in one millisecond.
func TestWhatEndsAtTheSameTimeIsInTheSameOrderEachTime(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		s := w.Replica("a").Service
		jobs := strings.Fields("a b c d e f")
		for _, name := range jobs {
			w.Must(s.AppendHistory(w.Context(), &service.Entry{Job: name, Run: name, Outcome: "succeeded"}))
		}
		for range 20 {
			all, err := s.Search(w.Context(), service.Search{Jobs: jobs, Limit: 3})
			if len(all) != 3 || all[0].Run+all[1].Run+all[2].Run != "abc" {
				w.Fatalf("%+v, %v", all, err)
			}
		}
	})
}

// Few users of Redis may scan it.
func TestWithoutATableTheJobsWithAHistoryAreFoundIfTheUserMayScan(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		s := w.Replica("a").Service
		w.Must(s.AppendHistory(w.Context(), &service.Entry{Job: job, Run: "r", Outcome: "succeeded"}))
		unknown := &config.Table{Unknown: map[string]string{config.Names: "there is no table"}}
		o := &service.Operator{Store: s, Table: func() *config.Table { return unknown }, Limit: time.Second}
		for _, said := range []string{"", "NOPERM this user has no permissions to run the 'scan' command", "ERR broken"} {
			w.Mini.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
				if said == "" || strings.ToUpper(cmd) != "SCAN" {
					return false
				}
				c.WriteError(said)
				return true
			})
			jobs, err := o.Jobs(w.Context())
			if (len(jobs) == 1) != (said == "") || (err != nil) != (said == "ERR broken") {
				w.Errorf("%q: %+v, %v", said, jobs, err)
			}
		}
	})
}
