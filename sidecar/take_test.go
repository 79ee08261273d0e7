package sidecar

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/lock"
)

var midnight = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// every is a job with a tick each period.
func every(t *testing.T, expr string, jitter time.Duration) *job {
	t.Helper()
	s, err := schedule.Parse(expr, schedule.Options{Job: "j"})
	if err != nil {
		t.Fatal(err)
	}
	c := config.Job{Name: "j", Schedule: s, Jitter: jitter}
	return &job{name: c.Name, spec: &spec{Job: &c, series: newSeries(&c)}, ticks: ticks{taken: midnight}}
}

func TestATimersWakeTakesTheNominalTick(t *testing.T) {
	for name, c := range map[string]struct {
		upTo []time.Duration // of the wakes, after midnight
		want []time.Duration // ticks taken; -1 = a surplus wake
	}{
		"on time":                          {[]time.Duration{60e9, 120e9}, []time.Duration{60e9, 120e9}},
		"a little late":                    {[]time.Duration{60.3e9, 121e9}, []time.Duration{60e9, 120e9}},
		"late by periods: the newest":      {[]time.Duration{190e9}, []time.Duration{180e9}},
		"early: none":                      {[]time.Duration{59.9e9}, []time.Duration{-1}},
		"two at once: one is surplus":      {[]time.Duration{60e9, 60.1e9}, []time.Duration{60e9, -1}},
		"a clock set back takes none anew": {[]time.Duration{180e9, 10e9}, []time.Duration{180e9, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			j := every(t, "* * * * *", 0)
			for i, upTo := range c.upTo {
				w, ok := j.take(midnight.Add(upTo))
				got := time.Duration(-1)
				if ok {
					got = w.tick.Sub(midnight)
				}
				if got != c.want[i] {
					t.Errorf("wake %d up to +%s took %s, want %s", i+1, upTo, got, c.want[i])
				}
			}
		})
	}
}

func TestJitterKeepsTheOrderOfTicks(t *testing.T) {
	for expr, jitter := range map[string]time.Duration{
		"* * * * *":         59 * time.Second,
		"0,50 1,2,13 * * *": 20 * time.Minute, // some ticks are nearer than that
		"*/5 * * * *":       24 * time.Hour,
	} {
		s := every(t, expr, jitter).spec.series
		last := s.schedule.Last(midnight.Add(-time.Nanosecond))
		for at := s.due(last); at.Before(midnight.Add(24 * time.Hour)); {
			tick := s.after(at)
			due := s.due(tick)
			if !due.After(at) || !tick.Equal(s.schedule.Next(last)) || due.Sub(tick) >= jitter {
				t.Fatalf("%s: after %s comes tick %s, due %s", expr, at, tick, due)
			}
			if got := s.newest(due); !got.Equal(tick) {
				t.Fatalf("%s: at the instant tick %s comes due the newest tick is %s", expr, tick, got)
			}
			if got := s.newest(due.Add(-time.Millisecond)); !got.Equal(last) {
				t.Fatalf("%s: before tick %s comes due the newest tick is %s", expr, tick, got)
			}
			last, at = tick, due
		}
	}
}

// A claim may be early by half the time since the tick before, so that none can be claimed before that one.
func TestAClaimKnowsTheTickBeforeIt(t *testing.T) {
	for _, c := range []struct {
		expr        string
		tick, known string
		period      time.Duration
		before      string
	}{
		{"0,50 * * * * *", "00:00:50", "00:00:00", 50 * time.Second, ""},
		{"0,50 * * * * *", "00:01:00", "00:00:50", 10 * time.Second, ""},
		{"0,50 * * * * *", "00:01:00", "00:00:00", 10 * time.Second, "00:00:50"},
		{"@at 2026-03-01T00:01:00Z", "00:01:00", "", 0, ""},
	} {
		at := func(clock string) time.Time {
			if clock == "" {
				return time.Time{}
			}
			tick, err := time.Parse(time.DateTime, "2026-03-01 "+clock)
			if err != nil {
				t.Fatal(err)
			}
			return tick
		}
		j := every(t, c.expr, 0)
		j.ticks.maxLedgerTick = at(c.known)
		tick := at(c.tick)
		local := newClock(time.Now, time.Sleep)
		local.redis = func() (time.Time, bool) { return time.Time{}, false }
		q := (&claimer{clock: local, slots: &slots{}}).claim(&wake{job: j, spec: j.spec, tick: tick, due: tick})
		if q.Period != c.period || !q.Before.Equal(at(c.before)) {
			t.Errorf("%s, tick %s, known %s: %s since the tick before, which is %s", c.expr, c.tick, c.known, q.Period, q.Before)
		}
	}
}

// gocron takes a zero Time for one that has passed, and would ask for its successor for ever.
func TestASeriesThatEndsNeverReturnsZeroToGocron(t *testing.T) {
	j := every(t, "@at 2026-03-01T00:01:00Z", 0)
	at := midnight
	timer := crontabOf(at, &j.spec.series)
	for i := range 5 {
		next := timer.Next(at)
		if !next.After(at) {
			t.Fatalf("answer %d after %s is %s", i+1, at, next)
		}
		at = next
	}
	if at.Before(never) {
		t.Errorf("the series goes on at %s", at)
	}
}

func TestMissedTicksAreCountedWithinABound(t *testing.T) {
	j := every(t, "@every 1s", 0)
	for _, c := range []struct {
		to   time.Duration
		want int
	}{{time.Second, 0}, {2 * time.Second, 1}, {time.Minute, 59}, {365 * 24 * time.Hour, maxCount}} {
		if got, _, _ := j.spec.series.within(midnight, midnight.Add(c.to), maxCount); got != c.want {
			t.Errorf("between midnight and +%s there are %d ticks, want %d", c.to, got, c.want)
		}
	}
}

// ticking is a clock that runs in the bubble, with a wall clock that the test sets.
func ticking(t *testing.T, f func(c *clock, set func(time.Duration))) {
	synctest.Test(t, func(t *testing.T) {
		var offset time.Duration
		c := newClock(func() time.Time { return time.Now().Add(offset) }, time.Sleep)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); c.run(ctx) }()
		synctest.Wait()
		f(c, func(d time.Duration) {
			c.mu.Lock()
			defer c.mu.Unlock()
			offset = d
		})
		cancel()
		<-done
	})
}

func TestAClockStepIsNoticedWithinSeconds(t *testing.T) {
	ticking(t, func(c *clock, set func(time.Duration)) {
		began := time.Now()
		fired := make(chan time.Time, 1)
		c.AfterFunc(time.Hour, func() { fired <- time.Now() })
		time.Sleep(10 * time.Second)
		set(59*time.Minute + 55*time.Second) // five seconds later than the tick's instant
		if took := (<-fired).Sub(began); took > 15500*time.Millisecond {
			t.Errorf("the timer fired after %s, want within five seconds of the step", took)
		}
	})
}

func TestAClockSetBackDelaysATimer(t *testing.T) {
	ticking(t, func(c *clock, set func(time.Duration)) {
		began := time.Now()
		fired := make(chan time.Time, 1)
		c.AfterFunc(time.Minute, func() { fired <- time.Now() })
		time.Sleep(10 * time.Second)
		set(-30 * time.Second)
		if took := (<-fired).Sub(began); took != 90*time.Second {
			t.Errorf("the timer fired after %s, want 90s", took)
		}
	})
}

func TestTimersFireInOrderAndStopWhenTold(t *testing.T) {
	ticking(t, func(c *clock, _ func(time.Duration)) {
		began := time.Now()
		fired := make(chan time.Duration, 10)
		note := func() { fired <- time.Since(began) }
		c.AfterFunc(3*time.Second, note)
		stopped := c.AfterFunc(2*time.Second, note)
		c.AfterFunc(time.Second, note)
		moved := c.AfterFunc(time.Hour, note)
		if !stopped.Stop() || stopped.Stop() {
			t.Error("Stop does not tell whether the timer was armed")
		}
		if !moved.Reset(4 * time.Second) {
			t.Error("Reset does not tell whether the timer was armed")
		}
		for _, want := range []time.Duration{time.Second, 3 * time.Second, 4 * time.Second} {
			if got := <-fired; got != want {
				t.Errorf("a timer fired after %s, want %s", got, want)
			}
		}
		if !c.alive() {
			t.Error("a clock that runs is not alive")
		}
	})
}

func TestAClockThatStoppedIsNotAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(time.Now, time.Sleep)
		if !c.alive() {
			t.Error("it is dead before it could begin")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c.run(ctx)
		time.Sleep(time.Minute)
		if c.alive() {
			t.Error("it says that it is alive")
		}
	})
}

// config may not import lock, and holds the margin by which it checks the table itself.
func TestTheTablesMarginIsTheLocks(t *testing.T) {
	if config.LockMargin != lock.Margin {
		t.Errorf("config.LockMargin is %s, lock.Margin is %s", config.LockMargin, lock.Margin)
	}
}

func TestALoserIsToldWhyByWhatRedisRemembers(t *testing.T) {
	tick := midnight.Add(time.Hour)
	for want, a := range map[reason]lock.Answer{
		firedElsewhere: {Code: lock.Fired, Prev: tick},
		superseded:     {Code: lock.Fired, Prev: tick.Add(time.Minute)},
		overlap:        {Code: lock.Fired, Prev: tick, Overlap: tick},
		paused:         {Code: lock.Fired, Prev: tick, PausedTo: tick},
		queued:         {Code: lock.Held},
	} {
		if got := refusal(&wake{tick: tick}, a); got != want {
			t.Errorf("%+v is %q, want %q", a, got, want)
		}
	}
	for code, want := range map[lock.Code]reason{lock.Overlap: overlap, lock.Locked: overlap, lock.Gone: firedElsewhere,
		lock.Paused: paused, lock.Queued: queued, lock.Lost: firedElsewhere} {
		if got := refusal(&wake{tick: tick}, lock.Answer{Code: code}); got != want {
			t.Errorf("%s is %q, want %q", code, got, want)
		}
	}
}
