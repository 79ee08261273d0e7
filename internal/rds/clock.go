package rds

import (
	"sync"
	"time"
)

// redisClock estimates Redis TIME from round trips. An answer with Redis' time t, requested at `sent` and read at
// `received`, says that TIME minus Boottime lies within [t-received, t-sent]. The clock intersects all such intervals,
// and widens each by the drift of clocks since then. An interval that contradicts the others starts the estimate anew:
// Redis' clock was stepped, or another Redis answers.
type redisClock struct {
	mu     sync.Mutex
	taken  bool          // there was an answer
	at     time.Duration // Boottime of the newest answer
	lo, hi time.Duration // the bounds of TIME since the epoch minus Boottime, at that moment

	stepped  bool          // Redis' clock was set lately, by more than SmallStep
	since    time.Duration // Boottime of the first answer after that
	lastLo   time.Duration // lo as it was before
	lastSeen time.Duration // Boottime of the last answer before
}

const (
	// SmallStep is the largest step of Redis' clock, or difference of another server's clock, that is followed at once.
	SmallStep = time.Second
	// patience is how long a greater step must last before it is followed. Without it, a failover there and back would
	// claim the ticks to come, or stop all ticks until the old time is reached again.
	patience = 10 * time.Second
)

// drift is how far two undisciplined quartz clocks part: 100 ppm.
const drift = 10_000

// observe adds one answer to the estimate. res is the resolution of t: the true time lies in [t, t+res).
func (c *redisClock) observe(sent, received time.Duration, t time.Time, res time.Duration) {
	epoch := time.Duration(t.UnixNano())
	lo, hi := epoch-received, epoch+res-sent

	c.mu.Lock()
	defer c.mu.Unlock()
	grown := max(received-c.at, 0) / drift
	if oldLo, oldHi := c.lo-grown, c.hi+grown; c.taken && oldLo <= hi && lo <= oldHi {
		lo, hi = max(lo, oldLo), min(hi, oldHi)
	} else if c.taken {
		c.noteStep(received, lo)
	}
	c.taken, c.at, c.lo, c.hi = true, received, lo, hi
}

// noteStep notes an answer that contradicts the ones before: a step, another one, or the way back.
func (c *redisClock) noteStep(received, lo time.Duration) {
	switch {
	case !c.stepping():
		c.lastLo, c.lastSeen, c.since = c.lo, c.at, received
	case (lo - c.lo).Abs() > SmallStep: // another step, and not a clock that is being slewed
		c.since = received
	}
	c.stepped = (lo - c.lastLo).Abs() > SmallStep
}

// stepping reports whether a step is not followed yet: no answer has shown that it lasts.
func (c *redisClock) stepping() bool { return c.stepped && c.at-c.since < patience }

// steady is the time that Redis' clock has certainly reached at a Boottime. It leaves out a step that has not lasted
// long enough. It is false if Redis never answered.
func (c *redisClock) steady(boot time.Duration) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lo, seen := c.lo, c.at
	if c.stepping() {
		lo, seen = c.lastLo, c.lastSeen
	}
	return time.Unix(0, int64(lo-max(boot-seen, 0)/drift+boot)).UTC(), c.taken
}

// between returns the bounds of Redis' time at a Boottime; false when Redis never answered.
func (c *redisClock) between(boot time.Duration) (lo, hi time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	grown := max(boot-c.at, 0) / drift
	return time.Unix(0, int64(c.lo-grown+boot)).UTC(), time.Unix(0, int64(c.hi+grown+boot)).UTC(), c.taken
}

// middle is the estimate: half-way between the bounds.
func (c *redisClock) middle(boot time.Duration) (time.Time, bool) {
	lo, hi, ok := c.between(boot)
	return lo.Add(hi.Sub(lo) / 2), ok
}
