package sidecar

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/sidecar/execute"
)

// swap puts a table in force on a replica that is at work.
func (w *world) swap(r *replica, table string) {
	w.t.Helper()
	if err := r.Reload(parse(w.t, table), nil); err != nil {
		w.t.Error(err)
	}
}

// startedSince is how many ticks of a job from that one on were started.
func (w *world) startedSince(job string, from time.Duration) int {
	n := 0
	for tick := range w.started(job) {
		if !tick.Before(w.origin().Add(from)) {
			n++
		}
	}
	return n
}

// each checks that every tick of a job in [from, to] was started once, near its time.
func (w *world) each(job string, period, from, to, late time.Duration) {
	w.t.Helper()
	by := w.started(job)
	for at := from; at <= to; at += period {
		tick := w.origin().Add(at)
		switch s := by[tick]; {
		case len(s) != 1:
			w.t.Errorf("%s: tick +%s was started %d times: %v\n%s", job, at, len(s), s, w.log())
			return
		case s[0].at.Before(tick) || s[0].at.After(tick.Add(late)):
			w.t.Errorf("%s: tick +%s was started at %s", job, at, s[0].at.Sub(tick))
			return
		}
	}
}

// TestAnUnchangedJobKeepsItsRunOverAReload: timer, run and counters go on as if nothing had happened.
func TestAnUnchangedJobKeepsItsRunOverAReload(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(30 * time.Second)
		w.at(10 * time.Second) // in mid-run
		before := r.job("minute")
		w.swap(r, minutely+"\n  - {name: other, schedule: '30 * * * * *', http: {url: http://127.0.0.1/}}")
		if r.job("minute") != before {
			t.Error("the job was made anew")
		}
		w.at(3*time.Minute + 50*time.Second)
		w.each("minute", time.Minute, 0, 3*time.Minute, 10*time.Millisecond)
		w.each("other", time.Minute, 30*time.Second, 3*time.Minute+30*time.Second, 10*time.Millisecond)
		w.expect(4, "runs_total", "minute", "succeeded")
		w.expect(4, "fires_total", "minute")
	})
}

// TestAChangedJobLosesAndDoublesNoTick: the same ticks with another target, swapped all around a tick.
func TestAChangedJobLosesAndDoublesNoTick(t *testing.T) {
	long(t)
	for _, missed := range []string{"latest", "skip"} {
		t.Run(missed, func(t *testing.T) {
			simulate(t, everySecond(0, missed), func(w *world) {
				w.replica(10 * time.Millisecond)
				w.replica(10 * time.Millisecond)
				n := 0
				for at := time.Second; at < 21*time.Second; at += 7 * time.Millisecond {
					time.Sleep(time.Until(w.origin().Add(at)))
					n++
					w.swap(w.replicas[n%2], everySecond(n, missed))
				}
				w.at(30 * time.Second)
				w.each("second", time.Second, 0, 29*time.Second, 3*time.Second)
				w.expect(0, "missed_total", "second")
			})
		})
	}
}

func everySecond(n int, missed string) string {
	return fmt.Sprintf("\njobs:\n  - {name: second, schedule: '* * * * * *', missed: %s, http: {url: 'http://127.0.0.1/%d'}}", missed, n)
}

func TestAJobOnEveryReplicaIsNotFiredTwiceByAReload(t *testing.T) {
	long(t)
	table := func(n int) string {
		return fmt.Sprintf("\njobs:\n  - {name: second, guarantee: every-replica, schedule: '* * * * * *', http: {url: 'http://127.0.0.1/%d'}}", n)
	}
	simulate(t, table(0), func(w *world) {
		r := w.replica(0)
		for at := time.Second; at < 11*time.Second; at += 3 * time.Millisecond {
			time.Sleep(time.Until(w.origin().Add(at)))
			w.swap(r, table(int(at)))
		}
		w.at(15 * time.Second)
		w.each("second", time.Second, 0, 14*time.Second, 3*time.Second)
	})
}

// TestATickTakenAheadCostsNoneOfAnotherSchedule: if the clock was set back since a timer went off, its wake waits for a
// tick that is still to come. Another schedule has ticks before that one.
func TestATickTakenAheadCostsNoneOfAnotherSchedule(t *testing.T) {
	table := func(schedule string) string {
		return fmt.Sprintf("\njobs:\n  - {name: often, guarantee: every-replica, schedule: '%s', http: {url: 'http://127.0.0.1/'}}", schedule)
	}
	simulate(t, table("*/10 * * * * *"), func(w *world) {
		r := w.replica(0)
		w.at(time.Second)
		r.wake(w.origin().Add(10*time.Second), "often")
		w.swap(r, table("* * * * * *"))
		w.at(15 * time.Second)
		w.each("often", time.Second, 2*time.Second, 14*time.Second, 10*time.Millisecond)
	})
}

func TestARunOfAChangedJobGoesOnAsItBegan(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(30 * time.Second)
		w.at(time.Second)
		w.swap(r, strings.Replace(minutely, "40s", "5s", 1))
		w.at(59 * time.Second)
		w.expect(1, "runs_total", "minute", "succeeded")
		w.at(2*time.Minute + time.Second)
		w.expect(1, "runs_total", "minute", "timed_out")
	})
}

func TestAJobThatLeavesEndsItsRunAndThenItsSeries(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(30 * time.Second)
		w.at(time.Second)
		w.swap(r, "\njobs: []")
		w.expect(1, "running", "minute")
		w.at(29 * time.Second)
		w.expect(1, "fires_total", "minute")
		w.at(45 * time.Second)
		if families, _ := r.registry.Gather(); strings.Contains(fmt.Sprint(families), `"minute"`) {
			t.Error("its series are still there")
		}
		w.at(5 * time.Minute)
		w.each("minute", time.Minute, 0, 0, 10*time.Millisecond)
		w.swap(r, minutely)
		w.at(6*time.Minute + 40*time.Second)
		w.expect(1, "fires_total", "minute")
		w.expect(0, "missed_total", "minute")
	})
}

// TestAChangedScheduleHasMissedNothingBefore: from hourly to every minute, in the middle of an hour.
func TestAChangedScheduleHasMissedNothingBefore(t *testing.T) {
	simulate(t, "\njobs:\n  - {name: minute, schedule: '0 * * * *', http: {url: http://127.0.0.1/}}", func(w *world) {
		r := w.replica(time.Second)
		w.at(10*time.Minute + 30*time.Second)
		w.swap(r, minutely)
		w.at(13*time.Minute + time.Second)
		w.each("minute", time.Minute, 11*time.Minute, 13*time.Minute, 10*time.Millisecond)
		w.expect(0, "missed_total", "minute")
	})
}

// TestWhatNobodyHasCountedIsNotCountedByAnotherSchedule: a job is paused for three of its ticks, and gets more of them.
func TestWhatNobodyHasCountedIsNotCountedByAnotherSchedule(t *testing.T) {
	table := func(every string) string {
		return "\njobs:\n  - {name: often, schedule: '@every " + every + "', http: {url: http://127.0.0.1/}}"
	}
	for what, c := range map[string]struct {
		resumed, changed time.Duration
		paused           string // ticks that are counted as that
	}{
		"resumed before the change": {27 * time.Second, 28*time.Second + 500*time.Millisecond, ""},
		"resumed after the change":  {28*time.Second + 500*time.Millisecond, 26*time.Second + 500*time.Millisecond, "2"},
	} {
		t.Run(what, func(t *testing.T) {
			simulate(t, table("5s"), func(w *world) {
				r := w.replica(time.Second)
				w.at(11 * time.Second)
				w.must(r.store.Pause(w.t.Context(), "often", "", time.Time{}))
				for at := 26 * time.Second; at < 30*time.Second; at += 500 * time.Millisecond {
					w.at(at)
					if at == c.resumed {
						_, err := r.store.Resume(w.t.Context(), "often")
						w.must(err)
					}
					if at == c.changed {
						w.swap(r, table("1s"))
					}
				}
				w.at(40 * time.Second)
				w.expect(0, "missed_total", "often")
				ledger := "solotick:{test}:job:often"
				if paused, missed := w.redis.HGet(ledger, "fate:paused"), w.redis.HGet(ledger, "fate:missed"); paused != c.paused || missed != "" {
					t.Errorf("%q ticks are paused, want %q, and %q are missed\n%s", paused, c.paused, missed, w.log())
				}
			})
		})
	}
}

// TestATickThatWaitsIsFiredAlthoughACalendarChangesFarAway: its ticks of today are the same in both tables.
func TestATickThatWaitsIsFiredAlthoughACalendarChangesFarAway(t *testing.T) {
	table := func(days, every string) string {
		return "\nmaxRunning: 1\ncalendars: {holidays: {dates: [" + days + "]}}\njobs:" +
			"\n  - {name: minute, schedule: '0 * * * * *', http: {url: http://127.0.0.1/}, timeout: 50s}" +
			"\n  - {name: waits, schedule: '" + every + " * * * * *', exclude: [holidays], http: {url: http://127.0.0.1/}}"
	}
	simulate(t, table("2031-12-25", "10"), func(w *world) {
		r := w.replica(0, func(r *replica) {
			r.work = func(ctx context.Context, run execute.Run) execute.Result {
				if run.Job == "minute" {
					beat.Sleep(ctx, 40*time.Second)
				}
				return execute.Result{Status: execute.Succeeded}
			}
		})
		ledger := func(field string) string { return w.redis.HGet("solotick:{test}:job:waits", field) }
		w.at(5 * time.Second)
		since, schedule := ledger("since"), ledger("schedule")
		for i, days := range []string{"2031-12-25, 2031-12-26", "2030-12-25", "2032-01-01"} {
			w.at(time.Duration(i)*time.Minute + 20*time.Second)
			w.swap(r, table(days, "10"))
			w.at(time.Duration(i)*time.Minute + 50*time.Second)
			if ledger("since") != since || ledger("schedule") == schedule {
				t.Errorf("Redis has the schedule %s since %s, and had %s since %s", ledger("schedule"), ledger("since"), schedule, since)
			}
			schedule = ledger("schedule")
		}
		w.each("waits", time.Minute, 10*time.Second, 2*time.Minute+10*time.Second, 31*time.Second)
		w.expect(0, "missed_total", "waits")
		w.swap(r, table("2032-01-01", "50"))
		w.at(3 * time.Minute)
		if ledger("since") == since {
			t.Error("other ticks are those of before")
		}
	})
}

// TestAReplicaThatReconnectsLeavesTheScheduleOfARolloutAlone: the replica has the table before, and has been told
// nothing of the next.
func TestAReplicaThatReconnectsLeavesTheScheduleOfARolloutAlone(t *testing.T) {
	simulate(t, minutely+"\n  - {name: held, suspend: true, schedule: '0 * * * *', http: {url: http://127.0.0.1/}}", func(w *world) {
		behind, ahead := w.replica(time.Second), w.replica(time.Second)
		w.at(10 * time.Second)
		w.swap(ahead, "\njobs:\n  - {name: minute, schedule: '*/20 * * * * *', http: {url: http://127.0.0.1/}}"+
			"\n  - {name: held, schedule: '*/20 * * * * *', http: {url: http://127.0.0.1/}}")
		w.at(30 * time.Second)
		of := func(job string) string {
			return fmt.Sprint(w.redis.HGet("solotick:{test}:job:"+job, "schedule"), w.redis.HGet("solotick:{test}:job:"+job, "since"))
		}
		minute, held := of("minute"), of("held")
		behind.disconnect(true)
		w.at(35 * time.Second)
		behind.disconnect(false)
		w.at(50 * time.Second)
		if of("minute") != minute || of("held") != held {
			t.Errorf("%s and %s began anew, as %s and %s\n%s", minute, held, of("minute"), of("held"), w.log())
		}
	})
}

func TestATableThatCannotBeUsedChangesNothing(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(time.Second)
		w.at(time.Second)
		before := r.Table()
		elsewhere, err := config.Parse("table.yaml", []byte("service: other"+minutely), func(string) (string, bool) { return "", false })
		w.must(err)
		for name, err := range map[string]error{
			"a load that failed":   r.Reload(nil, errors.New("no such file")),
			"another service":      r.Reload(elsewhere, nil),
			"another admin socket": r.Reload(parse(t, "admin: 127.0.0.1:1\n"+minutely), nil),
		} {
			if err == nil {
				t.Errorf("%s was taken", name)
			}
		}
		if r.Table() != before {
			t.Error("the table is another one")
		}
		w.expect(0, "table_last_reload_successful")
		if r.LastReload().Err == nil || !strings.Contains(r.logs.String(), "no such file") {
			t.Errorf("it is not told: %v\n%s", r.LastReload().Err, r.logs)
		}
		w.swap(r, minutely)
		w.expect(1, "table_last_reload_successful")
		w.at(3*time.Minute + time.Second)
		w.each("minute", time.Minute, 0, 3*time.Minute, 10*time.Millisecond)
	})
}

func TestAThousandReloadsLeaveNothingBehind(t *testing.T) {
	long(t)
	simulate(t, everySecond(0, "latest"), func(w *world) {
		r := w.replica(10 * time.Millisecond)
		w.at(time.Second)
		for n := range 1000 {
			w.swap(r, everySecond(n, "latest")+fmt.Sprintf("\n  - {name: extra%d, schedule: '* * * * * *', http: {url: http://127.0.0.1/}}", n))
			time.Sleep(37 * time.Millisecond)
		}
		if n := len(r.cron.scheduler.Jobs()); n != 1 || len(r.cron.agenda.groups) != 1 || len(r.cron.groups) != 1 || len(r.cron.in) != 2 {
			t.Errorf("gocron has %d jobs, for %d groups of %d jobs, want one for the group of both", n, len(r.cron.groups), len(r.cron.in))
		}
		if n := len(r.metrics.of); n > 5 { // two at work, the timers, and what a fire still holds
			t.Errorf("%d jobs are still counted", n)
		}
		w.at(41 * time.Second)
		w.each("second", time.Second, 0, 40*time.Second, 3*time.Second)
		w.expect(0, "missed_total", "second")
	})
}

func TestDrainingEndsWithTheLastRunAndKeepsTheProcessAlive(t *testing.T) {
	simulate(t, graceful, func(w *world) {
		first := w.replica(10 * time.Second)
		w.at(time.Second)
		second := w.replica(time.Second)
		w.at(2 * time.Second)
		began := time.Now()
		if err := first.Drain(w.t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began).Round(time.Second); took != 8*time.Second {
			t.Errorf("it took %s, want the 8s until the end of the run", took)
		}
		w.at(3*time.Minute + time.Second)
		if !first.Alive() || first.Ready() == nil {
			t.Errorf("alive %v, ready %v, want alive and not ready", first.Alive(), first.Ready() == nil)
		}
		w.each("minute", time.Minute, 0, 3*time.Minute, 10*time.Millisecond)
		if n := len(w.started("minute")); n != 4 || first.value("fires_total") != 1 {
			t.Errorf("%d ticks fired, %v of them by the drained one", n, first.value("fires_total"))
		}
		if all, _ := second.store.Replicas(w.t.Context()); len(all) != 1 {
			t.Errorf("%d replicas are told of, want the other one alone", len(all))
		}
		if err := first.Reload(parse(t, minutely), nil); !errors.Is(err, errDraining) {
			t.Errorf("a reload of a drained replica: %v", err)
		}
	})
}

func TestACallerWhoDoesNotWaitForADrainStopsNothing(t *testing.T) {
	simulate(t, graceful, func(w *world) {
		r := w.replica(10 * time.Second)
		w.at(time.Second)
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		if err := r.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		w.at(15 * time.Second)
		w.expect(1, "runs_total", "succeeded")
		if err := r.Drain(w.t.Context()); err != nil { // the second one finds it drained
			t.Error(err)
		}
	})
}

// TestARollingRestartLosesAndDoublesNoTick: three replicas, each drained, ended and replaced, a job every second.
func TestARollingRestartLosesAndDoublesNoTick(t *testing.T) {
	simulate(t, everySecond(0, "latest"), func(w *world) {
		for range 3 {
			w.replica(200 * time.Millisecond)
		}
		w.at(time.Second)
		for round := range 3 {
			for i := range 3 {
				old := w.replicas[3*round+i]
				if err := old.Drain(w.t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(700 * time.Millisecond)
				old.stop()
				<-old.done
				w.replica(200 * time.Millisecond)
				time.Sleep(2300 * time.Millisecond)
			}
		}
		w.at(40 * time.Second)
		w.each("second", time.Second, 0, 39*time.Second, time.Second)
		w.expect(0, "missed_total", "second")
	})
}

// fakeApp answers the replicas' probes.
type fakeApp struct{ ready atomic.Bool }

func (a *fakeApp) Probe(context.Context) error {
	if a.ready.Load() {
		return nil
	}
	return errors.New("starting")
}

const gated = "ready: {tcp: '127.0.0.1:1', interval: 1s}\n"

func TestAnUnreadyReplicaLeavesTicksToAnother(t *testing.T) {
	simulate(t, gated+minutely, func(w *world) {
		app := &fakeApp{}
		first := w.replica(time.Second, func(r *replica) { r.app = app })
		w.replica(time.Second)
		w.at(3*time.Minute + time.Second)
		w.each("minute", time.Minute, 0, 3*time.Minute, 10*time.Millisecond)
		if n := first.value("fires_total"); n != 0 {
			t.Errorf("the unready one fired %v", n)
		}
		if first.value("app_ready") != 0 || first.value("skips_total", "not_ready") == 0 {
			t.Errorf("app_ready %v, skips %v", first.value("app_ready"), first.value("skips_total", "not_ready"))
		}
		app.ready.Store(true)
		w.at(3*time.Minute + 5*time.Second)
		if first.value("app_ready") != 1 {
			t.Error("it does not notice that the app is ready")
		}
	})
}

func TestWhenAllAreUnreadyTheTickWaits(t *testing.T) {
	simulate(t, gated+minutely, func(w *world) {
		app := &fakeApp{}
		for range 3 {
			w.replica(time.Second, func(r *replica) { r.app = app })
		}
		w.at(30 * time.Second)
		app.ready.Store(true)
		w.at(45 * time.Second)
		w.each("minute", time.Minute, 0, 0, 32*time.Second)
		w.at(2*time.Minute + time.Second)
		w.each("minute", time.Minute, 0, 2*time.Minute, 32*time.Second)
		w.expect(0, "missed_total")
	})
}

func TestWhatIsDueWaitsForTheApp(t *testing.T) {
	simulate(t, gated+"\njobs:\n  - {name: yearly, schedule: '@yearly', http: {url: http://127.0.0.1/}}", func(w *world) {
		app := &fakeApp{}
		r := w.replica(time.Second, func(r *replica) { r.app = app })
		w.at(time.Second)
		_, err := r.store.Trigger(w.t.Context(), "yearly", uuid.NewString())
		w.must(err)
		w.at(10 * time.Second)
		w.expect(0, "fires_total", "yearly")
		app.ready.Store(true)
		w.at(12 * time.Second)
		if n := r.value("fires_total", "yearly"); n != 1 {
			t.Errorf("fired %v, want 1\n%s", n, w.log())
		}
	})
}

func TestAFullReplicaLeavesTicksToAnother(t *testing.T) {
	table := "maxRunning: 1\njobs:\n  - {name: long, schedule: '0 11 0 * * *', http: {url: http://127.0.0.1/}}" +
		"\n  - {name: second, schedule: '* * * * * *', http: {url: http://127.0.0.1/}}" +
		"\n  - {name: own, reserved: true, schedule: '* * * * * *', http: {url: http://127.0.0.1/}}"
	simulate(t, table, func(w *world) {
		work := func(ctx context.Context, run execute.Run) execute.Result {
			if run.Job == "long" {
				beat.Sleep(ctx, 30*time.Second)
			}
			return execute.Result{Status: execute.Succeeded}
		}
		first := w.replica(0, func(r *replica) { r.work = work })
		w.at(5*time.Second + 500*time.Millisecond)
		if n := w.startedSince("second", 0); n > 1 { // but for the one that came in before it
			t.Errorf("%d ticks fired beside the long run", n)
		}
		if n := w.startedSince("own", 0); n < 5 {
			t.Errorf("%d ticks of the reserved job fired, want 6", n)
		}
		if first.value("skips_total", "second", "no_slot") < 4 {
			t.Errorf("no_slot %v", first.value("skips_total", "second", "no_slot"))
		}
		second := w.replica(0, func(r *replica) { r.work = work })
		w.at(20 * time.Second)
		w.each("second", time.Second, 6*time.Second, 19*time.Second, 10*time.Millisecond)
		if n := second.value("fires_total", "second"); n < 14 {
			t.Errorf("the other one fired %v", n)
		}
		w.at(40*time.Second + 500*time.Millisecond)
		if taken, waiting := first.slots.counts(); taken != 0 || waiting != 0 {
			t.Errorf("taken %d, waiting %d", taken, waiting)
		}
	})
}

func TestAReservedJobOfEveryReplicaRunsWhileOthersWaitForRedis(t *testing.T) {
	table := "maxRunning: 1\njobs:\n  - {name: minute, schedule: '* * * * *', http: {url: http://127.0.0.1/}}" +
		"\n  - {name: own, guarantee: every-replica, reserved: true, schedule: '* * * * * *', http: {url: http://127.0.0.1/}}"
	simulate(t, table, func(w *world) {
		r := w.replica(0)
		w.at(58 * time.Second)
		r.disconnect(true)
		w.at(70 * time.Second)
		if n := w.startedSince("own", 61*time.Second); n < 9 {
			t.Errorf("%d ticks fired while the other job waited for Redis, want one a second", n)
		}
		r.disconnect(false)
		w.at(80 * time.Second)
		w.each("minute", time.Minute, time.Minute, time.Minute, 15*time.Second)
	})
}

// TestAJobThatChangesWhileItsTimerIsLateLosesNoTick: the clock gets better just before a tick, which the timer for the
// tick has not noticed when its job is changed.
func TestAJobThatChangesWhileItsTimerIsLateLosesNoTick(t *testing.T) {
	for _, missed := range []string{"latest", "skip"} {
		t.Run(missed, func(t *testing.T) {
			simulate(t, "clock: local"+everySecond(0, missed), func(w *world) {
				r := w.replica(0)
				time.Sleep(time.Until(w.origin().Add(10*time.Second - 32*time.Millisecond)))
				r.set(12 * time.Millisecond) // 20 ms before the tick now; the timer was to go off 25 ms before it
				w.swap(r, "clock: local"+everySecond(1, missed))
				w.at(15 * time.Second)
				if s := w.started("second")[w.origin().Add(10*time.Second)]; len(s) != 1 {
					t.Errorf("the tick was started %d times", len(s))
				}
				w.expect(0, "missed_total", "second")
			})
		})
	}
}

func hours(expr string) string {
	return "\njobs:\n  - {name: day, schedule: '" + expr + "', http: {url: http://127.0.0.1/}}"
}

// TestAPauseLongerThanTheTicksThatAreComparedIsNotCountedByTheNextSchedule: the newest hundred ticks are the same, and
// the uncounted pause is longer than they are.
func TestAPauseLongerThanTheTicksThatAreComparedIsNotCountedByTheNextSchedule(t *testing.T) {
	long(t)
	simulate(t, hours("* 1-20 * * *"), func(w *world) {
		r := w.replica(time.Second)
		w.at(19 * time.Minute) // 00:30
		w.must(r.store.Pause(w.t.Context(), "day", "", time.Time{}))
		w.at(2*time.Hour + 49*time.Minute + 10*time.Second) // 03:00:10
		_, err := r.store.Resume(w.t.Context(), "day")
		w.must(err)
		w.at(2*time.Hour + 49*time.Minute + 30*time.Second)
		w.swap(r, hours("* 0-20 * * *"))
		w.at(2*time.Hour + 51*time.Minute)
		if n, _ := strconv.Atoi(w.redis.HGet("solotick:{test}:job:day", "fate:paused")); n > 121 {
			t.Errorf("%d ticks are paused, and there were 121 from 01:00 to 03:00", n)
		}
	})
}

// TestMoreMissedTicksThanAreComparedAreNotCountedByTheNextSchedule is the same for ticks that no replica could fire.
func TestMoreMissedTicksThanAreComparedAreNotCountedByTheNextSchedule(t *testing.T) {
	long(t)
	simulate(t, gated+hours("* 1-20 * * *"), func(w *world) {
		app := &fakeApp{}
		r := w.replica(time.Second, func(r *replica) { r.app = app })
		w.at(2*time.Hour + 49*time.Minute + 30*time.Second)
		w.swap(r, gated+hours("* 0-20 * * *"))
		w.at(2*time.Hour + 49*time.Minute + 50*time.Second)
		app.ready.Store(true)
		w.at(2*time.Hour + 51*time.Minute)
		if n := w.sum("missed_total", "day"); n > 121 {
			t.Errorf("%v ticks are missed, and there were 121 from 01:00 to 03:00", n)
		}
	})
}

// TestATickThatATableLeavesOutJustBeforeItIsNotFired: a day without ticks comes 10 ms before the tick, which is taken,
// and waits for a slot.
func TestATickThatATableLeavesOutJustBeforeItIsNotFired(t *testing.T) {
	table := func(day string) string {
		return "\nmaxRunning: 1\ncalendars: {holidays: {dates: [" + day + "]}}\njobs:" +
			"\n  - {name: long, schedule: '0 29 0 * * *', http: {url: http://127.0.0.1/}}" +
			"\n  - {name: daily, schedule: '0 30 0 * * *', exclude: [holidays], http: {url: http://127.0.0.1/}}"
	}
	for _, before := range []time.Duration{40 * time.Millisecond, 10 * time.Millisecond} {
		t.Run(before.String(), func(t *testing.T) {
			simulate(t, table("2031-12-25"), func(w *world) {
				r := w.replica(0, func(r *replica) {
					r.work = func(ctx context.Context, run execute.Run) execute.Result {
						if run.Job == "long" {
							beat.Sleep(ctx, 90*time.Second)
						}
						return execute.Result{Status: execute.Succeeded}
					}
				})
				w.at(19*time.Minute - before)
				w.swap(r, table("2000-01-01"))
				w.at(22 * time.Minute)
				if n := w.startedSince("daily", 0); n != 0 {
					t.Errorf("a tick that the table no longer had when it came was started %d times", n)
				}
			})
		})
	}
}
