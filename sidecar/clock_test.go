package sidecar

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// What the others see tells whose clock is wrong when Redis' and ours lie too far apart.
func TestTheMedianTellsWhoseClockIsWrong(t *testing.T) {
	const h, s = time.Hour, time.Second
	for _, c := range []struct {
		name    string
		own     time.Duration   // Redis' time minus ours
		others  []time.Duration // and minus theirs
		want    time.Duration   // the cluster clock minus ours
		follows string
	}{
		{"near enough", 59 * s, []time.Duration{h, h}, 59 * s, ""},
		{"nobody to tell", h, nil, 0, "this replica"},
		{"ours behind", h, []time.Duration{-s, 2 * s, s}, h, "Redis, as the others do"},
		{"ours ahead", -h, []time.Duration{s, -s, 0}, -h, "Redis, as the others do"},
		{"one other", h, []time.Duration{s}, h, "Redis, as the others do"},
		{"Redis ahead", h, []time.Duration{h + s, h - s, h + s}, -s, "the other replicas"},
		{"Redis behind", -h, []time.Duration{-h, -h}, 0, "this replica"},
		{"both", 3 * h, []time.Duration{h, h + s, h - s}, 2 * h, "the other replicas"},
		{"one of them is as wrong as ours", h, []time.Duration{0, h}, h, "Redis, as the others do"},
		{"the same the other way", -h, []time.Duration{-h, 0}, -h, "Redis, as the others do"},
		{"most say that it is Redis", h, []time.Duration{h, 0, h}, 0, "this replica"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Unix(1e9, 0)
			clock := newClock(func() time.Time { return start }, nil)
			clock.redis = func() (time.Time, bool) { return start.Add(c.own), true }
			clock.compare(c.others)
			if got := clock.Now().Sub(start); got != c.want {
				t.Errorf("the cluster clock is ours and %s, want %s", got, c.want)
			}
			if got := clock.follows(); got != c.follows {
				t.Errorf("follows %q, want %q", got, c.follows)
			}
		})
	}
}

// A verdict is about one offset: Redis is not followed any further when its clock is set meanwhile.
func TestAVerdictOnOurClockIsNoneOnRedis(t *testing.T) {
	start, offset := time.Unix(1e9, 0), time.Hour
	clock := newClock(func() time.Time { return start }, nil)
	clock.redis = func() (time.Time, bool) { return start.Add(offset), true }
	clock.compare([]time.Duration{0, 0})
	for _, c := range []struct{ offset, want time.Duration }{
		{time.Hour + 30*time.Second, time.Hour + 30*time.Second},
		{2 * time.Hour, time.Hour}, // Redis was set
		{time.Second, time.Second}, // ours was put right
	} {
		offset = c.offset
		if got := clock.Now().Sub(start); got != c.want {
			t.Errorf("with Redis %s ahead the cluster clock is ours and %s, want %s", c.offset, got, c.want)
		}
		clock.compare(nil) // nobody is there any more: it holds on
	}
	offset = time.Hour
	if got := clock.Now().Sub(start); got != 0 {
		t.Errorf("a verdict holds on after the clocks have agreed: %s", got)
	}
}

func TestAReplicaWhoseClockIsWrongGoesByTheOthers(t *testing.T) {
	for _, skew := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			simulate(t, seconds3, func(w *world) {
				w.replica(5 * time.Millisecond)
				w.replica(5 * time.Millisecond)
				r := w.replica(5*time.Millisecond, func(r *replica) { r.skew = skew })
				w.at(20 * time.Second)
				before := r.value("fires_total", "second")
				w.at(5*time.Minute + 20*time.Second)
				w.once("second", time.Second, 5*time.Minute, 10*time.Millisecond)
				w.once("minute", time.Minute, 5*time.Minute, 10*time.Millisecond)
				if n := r.value("fires_total", "second") - before; n < 70 || n > 130 {
					t.Errorf("it fired %v of 300 ticks", n)
				}
				if got := r.value("clock_offset_seconds"); got > -3599 && got < 3599 {
					t.Errorf("clock_offset_seconds = %v: the alert is to go on", got)
				}
				if !strings.Contains(r.logs.String(), `follows="Redis, as the others do"`) {
					t.Errorf("its log does not say whose time it follows:\n%s", r.logs)
				}

				// The others leave, and it keeps to what they said.
				w.replicas[0].stop()
				w.replicas[1].stop()
				w.at(7 * time.Minute)
				w.once("second", time.Second, 7*time.Minute, 10*time.Millisecond)
				w.expect(0, "missed_total")

				r.set(0)
				w.at(7*time.Minute + 10*time.Second)
				w.once("second", time.Second, 7*time.Minute+10*time.Second, 10*time.Millisecond)
				if !strings.Contains(r.logs.String(), "agree again") {
					t.Errorf("its log does not say that its clock was put right:\n%s", r.logs)
				}
			})
		})
	}
}

// What was said before Redis' clock was set, or long ago, says nothing about it.
func TestOnlyFreshHeartbeatsTellOfClocks(t *testing.T) {
	simulate(t, seconds3, func(w *world) {
		beat := func(age time.Duration) {
			w.redis.HSet("solotick:{test}:replicas", "other", fmt.Sprintf(`{"us": 0, "seen": %d}`, time.Now().Add(-age).UnixMilli()))
		}
		beat(12 * time.Second)
		r := w.replica(5*time.Millisecond, func(r *replica) { r.skew = -time.Hour })
		w.at(20 * time.Second)
		beat(-time.Hour)
		w.at(30 * time.Second)
		if got := time.Until(r.clock.Now()); got != -time.Hour {
			t.Errorf("the cluster clock is %s off, want the machine's own time", got)
		}
		beat(0)
		w.at(35 * time.Second)
		if got := time.Until(r.clock.Now()); got.Abs() > time.Second {
			t.Errorf("the cluster clock is %s off Redis' although another replica agrees with it", got)
		}
	})
}

// gocron waits for the instant that it was armed for, which may come a second time, or an hour later.
func TestAClockThatIsSetBackCostsNoTick(t *testing.T) {
	simulate(t, "clock: local"+seconds3, func(w *world) {
		r := w.replica(5*time.Millisecond, func(r *replica) { r.skew = time.Hour })
		w.at(time.Minute + 500*time.Millisecond)
		r.set(0)
		w.at(3*time.Minute + 500*time.Millisecond)
		by := w.started("second")
		for at := 63 * time.Second; at < 3*time.Minute; at += time.Second {
			if s := by[w.origin().Add(at)]; len(s) != 1 || s[0].at.Sub(s[0].tick) > 10*time.Millisecond {
				t.Fatalf("tick +%s was started as %+v\n%s", at, s, w.log())
			}
		}
	})
}
