package rds

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestNarrowestAnswerGivesRedisTime(t *testing.T) {
	epoch := time.Unix(1_800_000_000, 0)
	var c redisClock
	if _, ok := c.middle(0); ok {
		t.Fatal("a time was known before any answer")
	}
	// Redis' clock reads epoch+boot. The first answer took 400 ms, all of them on the way there; the second 2 ms.
	c.observe(0, 400*time.Millisecond, epoch.Add(400*time.Millisecond), time.Microsecond)
	if now, ok := c.middle(0); !ok || now.Sub(epoch).Abs() > 201*time.Millisecond {
		t.Fatalf("after a slow answer off by %s, %v", now.Sub(epoch), ok)
	}
	c.observe(time.Second, 1002*time.Millisecond, epoch.Add(1001*time.Millisecond), time.Microsecond)
	if now, _ := c.middle(time.Second); now.Sub(epoch.Add(time.Second)).Abs() > 2*time.Millisecond {
		t.Fatalf("after a fast answer off by %s", now.Sub(epoch.Add(time.Second)))
	}
	for i := range 3 { // slower ones afterwards do not blur it
		sent := time.Duration(2+i) * time.Second
		c.observe(sent, sent+300*time.Millisecond, epoch.Add(sent+300*time.Millisecond), time.Microsecond)
	}
	if now, _ := c.middle(5 * time.Second); now.Sub(epoch.Add(5*time.Second)).Abs() > 2*time.Millisecond {
		t.Fatalf("blurred to %s", now.Sub(epoch.Add(5*time.Second)))
	}
}

func TestAnswerInTheFirstInstantOfTheClockCounts(t *testing.T) {
	var c redisClock
	c.observe(0, 0, time.Unix(1_800_000_000, 0), time.Millisecond)
	if _, ok := c.middle(0); !ok {
		t.Error("it was not taken")
	}
}

func TestContradictionMeansThatRedisClockWasStepped(t *testing.T) {
	epoch := time.Unix(1_800_000_000, 0)
	for _, step := range []time.Duration{time.Hour, -time.Hour, 50 * time.Millisecond} {
		var c redisClock
		for i := range 20 {
			at := time.Duration(i) * time.Second
			c.observe(at, at+2*time.Millisecond, epoch.Add(at+time.Millisecond), time.Microsecond)
		}
		at := 20 * time.Second // the answer that tells is less exact than those before it
		c.observe(at, at+10*time.Millisecond, epoch.Add(step+at+5*time.Millisecond), time.Microsecond)
		if now, _ := c.middle(at); now.Sub(epoch.Add(step+at)).Abs() > 6*time.Millisecond {
			t.Errorf("step %s: off by %s", step, now.Sub(epoch.Add(step+at)))
		}
	}
}

func TestOldAnswerIsTrustedLessAsClocksDriftApart(t *testing.T) {
	epoch := time.Unix(1_800_000_000, 0)
	var c redisClock
	c.observe(0, 2*time.Millisecond, epoch.Add(time.Millisecond), time.Microsecond)
	// An hour later Redis' clock has gained 100 ms (28 ppm); answers take 20 ms by now. That is drift and no step, and
	// the newer answer is believed.
	for i := range 3 {
		at := time.Hour + time.Duration(i)*time.Second
		c.observe(at, at+20*time.Millisecond, epoch.Add(at+110*time.Millisecond), time.Microsecond)
	}
	at := time.Hour + 3*time.Second
	if now, _ := c.middle(at); now.Sub(epoch.Add(at+100*time.Millisecond)).Abs() > 11*time.Millisecond {
		t.Errorf("off by %s", now.Sub(epoch.Add(at+100*time.Millisecond)))
	}
}

// The bounds of an old answer are an hour's drift wide when a new one narrows them.
func TestAnOldAnswerNarrowsANewOneByNoMoreThanItIsWorth(t *testing.T) {
	epoch := time.Unix(1_800_000_000, 0)
	var c redisClock
	c.observe(0, 2*time.Millisecond, epoch.Add(time.Millisecond), time.Microsecond)
	const gained = 10 * time.Millisecond // in an hour: 3 ppm. Half a millisecond more passed on the way there than on the way back
	c.observe(time.Hour, time.Hour+20*time.Millisecond, epoch.Add(time.Hour+gained+10500*time.Microsecond), time.Microsecond)
	lo, hi, ok := c.between(time.Hour)
	if truth := epoch.Add(time.Hour + gained); !ok || lo.After(truth) || hi.Before(truth) {
		t.Errorf("it lies from %s to %s of Redis' time, %t", lo.Sub(truth), hi.Sub(truth), ok)
	}
}

func TestTheBoundsOfAnOldAnswerPartAsClocksDo(t *testing.T) {
	var c redisClock
	c.observe(0, 2*time.Millisecond, time.Unix(1_800_000_000, 0).Add(time.Millisecond), 0)
	for _, after := range []time.Duration{0, time.Second, time.Hour} {
		lo, hi, _ := c.between(2*time.Millisecond + after)
		if got, want := hi.Sub(lo), 2*time.Millisecond+2*after/drift; got != want {
			t.Errorf("%s after it they are %s apart, want %s", after, got, want)
		}
	}
}

func TestMillisecondsOfScriptsAreKnownToBeTruncated(t *testing.T) {
	epoch := time.Unix(1_800_000_000, 0)
	var c redisClock
	for i := range 8 {
		at := time.Duration(i) * 1234567 * time.Microsecond
		c.observe(at, at+100*time.Microsecond, epoch.Add(at+50*time.Microsecond).Truncate(time.Millisecond), time.Millisecond)
	}
	if now, _ := c.middle(0); now.Sub(epoch).Abs() > 600*time.Microsecond {
		t.Errorf("off by %s", now.Sub(epoch))
	}
}

// A job that waits for the lower bound never starts before its tick, however lopsided the round trips are.
func TestRedisTimeLiesBetweenTheBounds(t *testing.T) {
	epoch := time.Unix(1_800_000_000, 0)
	rnd := rand.New(rand.NewPCG(1, 2))
	var c redisClock
	at := time.Duration(0)
	for i := range 10_000 {
		at += time.Duration(rnd.Int64N(int64(2 * time.Second)))
		there, back := time.Duration(rnd.ExpFloat64()*2e6), time.Duration(rnd.ExpFloat64()*2e6)
		res := []time.Duration{time.Microsecond, time.Millisecond}[i%2]
		c.observe(at, at+there+back, epoch.Add(at+there).Truncate(res), res)
		at += there + back
		lo, hi, _ := c.between(at)
		if now := epoch.Add(at); now.Before(lo) || now.After(hi) {
			t.Fatalf("answer %d: the time is not between the bounds, which are %s and %s from it", i, lo.Sub(now), hi.Sub(now))
		}
		if i > 100 && hi.Sub(lo) > 8*time.Millisecond {
			t.Fatalf("answer %d: the bounds are %s apart", i, hi.Sub(lo))
		}
	}
}

// steps plays a clock of Redis that is asked every second, and is set to other offsets at some of them; want is by what
// it is followed from each second on.
func steps(t *testing.T, name string, set, want map[int]time.Duration) {
	t.Helper()
	epoch := time.Unix(1_800_000_000, 0)
	var c redisClock
	var off, followed time.Duration
	for second := range 60 {
		at := time.Duration(second) * time.Second
		if step, ok := set[second]; ok {
			off = step
		}
		if step, ok := want[second]; ok {
			followed = step
		}
		c.observe(at, at+2*time.Millisecond, epoch.Add(off+at+time.Millisecond), time.Microsecond)
		for _, later := range []time.Duration{2 * time.Millisecond, 990 * time.Millisecond} {
			got, ok := c.steady(at + later)
			if off := got.Sub(epoch.Add(at + later)); !ok || off > followed || off < followed-3*time.Millisecond {
				t.Fatalf("%s: %s after the beginning it is followed by %s, want %s", name, at+later, off, followed)
			}
		}
	}
}

func TestStepOfRedisClockIsFollowedWhenItHasLastedForTenSeconds(t *testing.T) {
	var c redisClock
	if _, ok := c.steady(0); ok {
		t.Error("a time is steady before any answer")
	}
	type at = map[int]time.Duration
	for _, step := range []time.Duration{time.Hour, -time.Hour, 1100 * time.Millisecond, -1100 * time.Millisecond} {
		steps(t, "for good", at{20: step}, at{30: step})
		steps(t, "there and back", at{20: step, 29: 0}, nil)
		steps(t, "there and back, twice", at{20: step, 25: 0, 31: step, 40: 0}, nil)
		steps(t, "once more meanwhile", at{20: step, 25: 3 * step}, at{35: 3 * step})
		steps(t, "back at last", at{20: step, 40: 0}, at{30: step, 50: 0})
		slewed := step + 500*time.Millisecond*step/step.Abs()
		steps(t, "slewed meanwhile", at{20: step, 24: slewed}, at{30: slewed})
	}
	for _, step := range []time.Duration{900 * time.Millisecond, -900 * time.Millisecond} {
		steps(t, "small", at{20: step, 25: 0}, at{20: step, 25: 0})
	}
}

// Between two answers nobody knows whether the step lasts.
func TestAStepIsFollowedWhenAnAnswerShowsThatItLasts(t *testing.T) {
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, back := range []bool{false, true} {
		var c redisClock
		answer := func(second int, off time.Duration) {
			at := time.Duration(second) * time.Second
			c.observe(at, at+time.Millisecond, epoch.Add(at+off), time.Microsecond)
		}
		offset := func(second int) time.Duration {
			now, _ := c.steady(time.Duration(second) * time.Second)
			return now.Sub(epoch.Add(time.Duration(second) * time.Second)).Round(time.Second)
		}
		answer(20, 0)
		answer(21, time.Minute)
		if got := offset(45); got != 0 {
			t.Errorf("after one answer the clock is %s ahead", got)
		}
		want := time.Minute
		if back {
			want = 0
		}
		answer(46, want)
		if got := offset(47); got != want {
			t.Errorf("after the second answer it is %s ahead, want %s", got, want)
		}
	}
}
