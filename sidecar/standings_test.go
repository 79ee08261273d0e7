package sidecar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// These tests read what a scrape says of jobs in the cluster.

// ledger writes fields to the ledger of a job, in pairs.
func (w *world) ledger(job string, fields ...any) {
	for i := 0; i < len(fields); i += 2 {
		w.redis.HSet("solotick:{test}:job:"+job, fields[i].(string), fmt.Sprint(fields[i+1]))
	}
}

// shows compares a gauge or counter of a replica.
func (r *replica) shows(want float64, name string, labels ...string) {
	r.world.t.Helper()
	if got := r.value(name, labels...); got != want {
		r.world.t.Errorf("%s shows %s%v as %v, want %v", r.name, name, labels, got, want)
	}
}

// lines are the series of a job that a scrape of a replica has.
func (r *replica) lines(job string) []string {
	return slices.DeleteFunc(strings.Split(string(r.exposition()), "\n"), func(l string) bool {
		return strings.HasPrefix(l, "#") || !strings.Contains(l, fmt.Sprintf("job=%q", job))
	})
}

const yearly = "\njobs:\n  - {name: year, schedule: '@yearly', exec: {command: [x]}}\n"

func TestEveryReplicaShowsHowAJobFaresInTheCluster(t *testing.T) {
	simulate(t, yearly, func(w *world) {
		w.replica(0)
		w.at(0)
		at := w.origin().Add(-time.Hour)
		w.ledger("year", "lastSuccess", at.UnixMilli(), "lastFailure", at.UnixMilli()+500, "ended", fmt.Sprint("9 3 ", at.UnixMilli()+250),
			"fate:succeeded", 7, "fate:missed", 2, "fate:failed", 3)
		w.at(10 * time.Second)
		w.replica(0) // it has seen no run
		w.at(11 * time.Second)
		for _, r := range w.replicas {
			r.shows(seconds(at), "last_success_timestamp_seconds", "year")
			r.shows(3, "consecutive_failures", "year")
			r.shows(7, "ticks_total", "year", "succeeded")
			r.shows(2, "ticks_total", "year", "missed")
			r.shows(3, "ticks_total", "year", "failed")
			r.shows(0, "job_paused", "year")
			if n := len(slices.DeleteFunc(r.lines("year"), func(l string) bool { return !strings.Contains(l, "ticks_total") })); n != 3 {
				t.Errorf("%d fates are shown", n)
			}
		}
	})
}

func TestScrapesAskRedisNoMoreThanOnceInFiveSeconds(t *testing.T) {
	simulate(t, yearly, func(w *world) {
		r := w.replica(0)
		w.at(0)
		r.shows(0, "consecutive_failures", "year")
		w.ledger("year", "ended", "9 1 7")
		w.at(standingsFresh - time.Millisecond)
		r.shows(0, "consecutive_failures", "year")
		w.at(standingsFresh + time.Second)
		r.shows(1, "consecutive_failures", "year")
	})
}

func TestWithoutRedisAScrapeShowsWhatItSaidLast(t *testing.T) {
	simulate(t, yearly, func(w *world) {
		r := w.replica(0, func(r *replica) { r.cut = true })
		w.at(0)
		for _, l := range r.lines("year") {
			if strings.Contains(l, "last_success") || strings.Contains(l, "ticks_total") || strings.Contains(l, "consecutive") ||
				strings.Contains(l, "last_failure") || strings.Contains(l, "success_due") || strings.Contains(l, "job_paused") {
				t.Errorf("Redis has said nothing yet, and the scrape has %s", l)
			}
		}
		r.disconnect(false)
		w.at(10 * time.Second)
		at := w.origin().Add(-time.Hour)
		w.ledger("year", "lastSuccess", at.UnixMilli(), "ended", "9 2 7", "fate:missed", 4)
		w.at(20 * time.Second)
		r.shows(seconds(at), "last_success_timestamp_seconds", "year")
		r.disconnect(true)
		w.at(30 * time.Second)
		r.shows(seconds(at), "last_success_timestamp_seconds", "year")
		r.shows(2, "consecutive_failures", "year")
		r.shows(4, "ticks_total", "year", "missed")
		r.disconnect(false)
		w.at(40 * time.Second)
		w.redis.FlushAll()
		w.at(60 * time.Second)
		r.shows(seconds(at), "last_success_timestamp_seconds", "year") // so it did, whatever Redis has lost
		r.shows(0, "ticks_total", "year", "missed")
	})
}

func TestAScrapeSaysHowManyTimersWaitAndHowLateTheOldestIs(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		r := w.replica(time.Second, func(r *replica) { r.cut = true })
		w.at(0)
		if text := string(r.exposition()); strings.Contains(text, "solotick_timers") {
			t.Errorf("Redis has said nothing yet, and the scrape has\n%s", text)
		}
		r.disconnect(false)
		w.at(10 * time.Second)
		r.shows(0, "timers")
		w.setTimer("a", time.Hour, "")
		w.repeat("b", tenSeconds, "")
		w.operator(func(s *service.Store) { w.must(s.Pause(w.t.Context(), service.TimerJobs, "incident", time.Time{})) })
		w.at(28 * time.Second)
		r.shows(2, "timers") // the time that has come is none
		r.shows(8, "timers_lag_seconds")
		r.disconnect(true)
		w.at(40 * time.Second)
		r.shows(2, "timers")
		r.shows(8, "timers_lag_seconds")
		r.disconnect(false)
		w.operator(func(s *service.Store) { _, err := s.Resume(w.t.Context(), service.TimerJobs); w.must(err) })
		w.at(49 * time.Second)
		r.shows(2, "timers")
		r.shows(0, "timers_lag_seconds")
	})
}

func TestOfAJobOnEveryReplicaEachShowsItsOwnRuns(t *testing.T) {
	simulate(t, everywhere, func(w *world) {
		var fails atomic.Bool
		w.replica(0, func(r *replica) {
			r.work = func(context.Context, execute.Run) execute.Result {
				if fails.Load() {
					return execute.Result{Status: execute.Failed, Err: errors.New("no"), Code: 1}
				}
				return execute.Result{Status: execute.Succeeded}
			}
		})
		w.replica(0)
		a, b := w.replicas[0], w.replicas[1]
		w.at(10 * time.Second)
		for _, r := range w.replicas {
			r.shows(seconds(w.origin()), "last_success_timestamp_seconds", "minute")
			r.shows(seconds(w.origin().Add(2*time.Minute)), "success_due_timestamp_seconds", "minute")
		}
		fails.Store(true)
		w.at(130 * time.Second)
		a.shows(2, "consecutive_failures", "minute")
		a.shows(seconds(w.origin()), "last_success_timestamp_seconds", "minute")
		a.shows(seconds(w.origin().Add(2*time.Minute)), "success_due_timestamp_seconds", "minute")
		b.shows(0, "consecutive_failures", "minute")
		b.shows(seconds(w.origin().Add(2*time.Minute)), "last_success_timestamp_seconds", "minute")
		if lines := strings.Join(a.lines("minute"), "\n"); strings.Contains(lines, "ticks_total") {
			t.Errorf("its fates are nowhere known, and the scrape has\n%s", lines)
		}
		w.operator(func(s *service.Store) { w.must(s.Pause(w.t.Context(), "minute", "incident", time.Time{})) })
		w.at(140 * time.Second)
		a.shows(1, "job_paused", "minute")
		a.shows(0, "success_due_timestamp_seconds", "minute")
		fails.Store(false)
		w.operator(func(s *service.Store) { _, err := s.Resume(w.t.Context(), "minute"); w.must(err) })
		w.at(150 * time.Second)
		a.shows(0, "job_paused", "minute")
		a.shows(seconds(w.origin().Add(4*time.Minute)), "success_due_timestamp_seconds", "minute") // the pause counts for nothing
		w.at(190 * time.Second)
		a.shows(0, "consecutive_failures", "minute")
	})
}

// maxSeries is how many series a job may have on a replica with all that usually happens to it.
const maxSeries = 24

func TestAJobHasFewSeries(t *testing.T) {
	simulate(t, strings.Replace(minutely, "40s", "20m", 1), func(w *world) {
		var last atomic.Int64 // how long a run takes
		var fails atomic.Bool
		work := func(r *replica) {
			r.work = func(ctx context.Context, _ execute.Run) execute.Result {
				beat.Sleep(ctx, time.Duration(last.Load()))
				if fails.Load() {
					return execute.Result{Status: execute.Failed, Err: errors.New("no"), Code: 1}
				}
				return execute.Result{Status: execute.Succeeded}
			}
		}
		r := w.replica(0, work)
		w.at(-time.Second)
		atFirst := r.lines("minute")
		for _, zero := range []string{`fires_total{`, `failures_total{`, `missed_total{`, `ticks_total{fate="failed",`, `ticks_total{fate="missed",`} {
			if !slices.ContainsFunc(atFirst, func(l string) bool { return strings.HasPrefix(l, "solotick_"+zero) && strings.HasSuffix(l, " 0") }) {
				t.Errorf("from the start there is no solotick_%s at zero", zero)
			}
		}
		if len(atFirst) > maxSeries {
			t.Errorf("a job that is new has %d series:\n%s", len(atFirst), strings.Join(atFirst, "\n"))
		}
		w.at(30 * time.Second)
		fails.Store(true)
		w.at(90 * time.Second)
		fails.Store(false)
		last.Store(int64(90 * time.Second))
		w.at(270 * time.Second)
		last.Store(0)
		w.at(400 * time.Second)
		other := w.replica(0, work)
		w.at(1000 * time.Second)
		w.ledger("minute", "fate:missed", 1) // an outage would bring reasons that are not usual
		r.metrics.tally("minute").missed.Add(1)
		w.at(1010 * time.Second)
		for name, labels := range map[string][]string{"fires_total": nil, "failures_total": nil, "missed_total": nil, "runs_total": {"succeeded"}} {
			if r.value(name, append(labels, "minute")...) == 0 {
				t.Errorf("%s%v is zero", name, labels)
			}
		}
		for _, fate := range []string{"succeeded", "failed", "missed", "overlapped"} {
			if r.value("ticks_total", "minute", fate) == 0 {
				t.Errorf("no tick has the fate %s", fate)
			}
		}
		for _, why := range []string{"fired_elsewhere", "overlap"} {
			if r.value("skips_total", "minute", why) == 0 {
				t.Errorf("nothing was skipped as %s; %v fires by the other one", why, other.value("fires_total", "minute"))
			}
		}
		if all := r.lines("minute"); len(all) > maxSeries {
			t.Errorf("with all that is usual, a job has %d series:\n%s", len(all), strings.Join(all, "\n"))
		} else {
			t.Logf("%d series at first, %d with all that is usual", len(atFirst), len(all))
		}
	})
}

func TestTheSecondTickAfterASuccessIsDue(t *testing.T) {
	day := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC) // a Monday
	at := func(d float64) time.Time { return day.Add(time.Duration(d * float64(time.Hour))) }
	now := at(24 * 365)
	for name, c := range map[string]struct {
		job  string
		st   service.Ledger
		want time.Time
	}{
		"hourly":                   {"schedule: '@hourly'", service.Ledger{LastSuccess: at(0.1)}, at(2)},
		"failing since":            {"schedule: '@hourly'", service.Ledger{LastSuccess: at(0.1), FailingSince: at(1.1)}, at(2)},
		"never, and failing":       {"schedule: '@hourly'", service.Ledger{FailingSince: at(3.1), Since: at(2.1)}, at(4)},
		"never, since it is known": {"schedule: '@hourly'", service.Ledger{Since: at(0)}, at(2)},
		"nothing is known":         {"schedule: '@hourly'", service.Ledger{}, time.Time{}},
		"in office hours, Fridays": {"schedule: '0 9-17 * * 1-5'", service.Ledger{LastSuccess: at(4*24 + 17.1)}, at(7*24 + 10)},
		"another schedule since":   {"schedule: '@hourly'", service.Ledger{LastSuccess: at(0.1), Since: at(48.5)}, at(50)},
		"paused":                   {"schedule: '@hourly'", service.Ledger{LastSuccess: at(0.1), Paused: &service.Pause{}}, time.Time{}},
		"paused before":            {"schedule: '@hourly'", service.Ledger{LastSuccess: at(0.1), PausedTo: at(48.5)}, at(50)},
		"suspended":                {"schedule: '@hourly', suspend: true", service.Ledger{LastSuccess: at(0.1)}, time.Time{}},
		"not begun":                {"schedule: '@hourly', start: 2026-11-25T00:00:00Z", service.Ledger{LastSuccess: at(0.1)}, at(49)},
		"over":                     {"schedule: '@hourly', end: 2026-11-23T02:00:00Z", service.Ledger{LastSuccess: at(0.1)}, time.Time{}},
		"over after the next":      {"schedule: '@hourly', end: 2026-11-23T02:30:00Z", service.Ledger{LastSuccess: at(0.1)}, at(2)},
		"no further tick":          {"schedule: '@at 2026-11-23T01:00:00Z'", service.Ledger{LastSuccess: at(0.1)}, time.Time{}},
		"a clock that was ahead":   {"schedule: '@daily'", service.Ledger{LastSuccess: now.Add(100 * 24 * time.Hour)}, now.Add(48 * time.Hour)},
	} {
		table := parse(t, "jobs:\n  - {name: job, exec: {command: [x]}, timeZone: UTC, "+c.job+"}\n")
		sp := &spec{Job: &table.Jobs[0], series: newSeries(&table.Jobs[0])}
		if got := sp.successDue(&c.st, now); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	jittered := &parse(t, "jobs:\n  - {name: job, exec: {command: [x]}, schedule: '@hourly', jitter: 30m}\n").Jobs[0]
	sp := &spec{Job: jittered, series: newSeries(jittered)}
	if got, want := sp.successDue(&service.Ledger{LastSuccess: at(0.9)}, now), sp.series.due(at(2)); !got.Equal(want) {
		t.Errorf("with jitter: %s, want %s", got, want)
	}
}
