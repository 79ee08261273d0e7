package sidecar

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/sidecar/service"
)

// preciseWindow is how long before a tick the precise sleep begins: Go's timers go off up to a millisecond late. Go's
// runtime stays awake as long as a precise sleep lasts, so only the start of a job is worth one.
const preciseWindow = 2 * time.Millisecond

// clock is the cluster clock: ticks come by it, at the same time on all replicas. It shows the time that Redis' clock
// has certainly reached, by the bounds of the round trips, so that no job starts before its tick. While Redis is
// away, the replica's own clock carries it on. It is the replica's own clock before Redis has answered, if the two
// differ by more than service.MaxOffset, and with `clock: local`.
type clock struct {
	wall         func() time.Time         // this machine's
	redis        func() (time.Time, bool) // the time that Redis' clock has reached, also where it is not believed
	steady       func() (time.Time, bool) // the same, without steps that have not lasted yet; nil for `clock: local`
	preciseSleep func(time.Duration)      // sleeps for at most preciseWindow, precisely

	mu      sync.Mutex
	timers  byTime[*timer]
	kick    chan struct{} // an earlier timer than the one slept for
	checked time.Time     // when run looked last, or was about to begin, on the machine's monotonic clock
}

func newClock(wall func() time.Time, nap func(time.Duration)) *clock {
	return &clock{wall: wall, preciseSleep: nap, kick: make(chan struct{}, 1), checked: time.Now()}
}

// Now is the cluster clock's time, in UTC.
func (c *clock) Now() time.Time {
	own := c.wall().Round(0).UTC() // without its monotonic part, which knows nothing of steps
	if c.steady == nil {
		return own
	}
	at, ok := c.steady()
	if !ok || at.Sub(own).Abs() > service.MaxOffset {
		return own
	}
	return at
}

// offsetTooLarge reports whether Redis' time differs too much from this replica's to be believed.
func (c *clock) offsetTooLarge() bool {
	d, ok := c.offset()
	return ok && c.steady != nil && d.Abs() > service.MaxOffset
}

// offset is Redis' time minus ours; 0 and false when Redis never answered.
func (c *clock) offset() (time.Duration, bool) {
	at, ok := c.redis()
	if !ok {
		return 0, false
	}
	return at.Sub(c.wall().Round(0)), true
}

// onRedis translates an instant of the cluster clock to Redis' clock. The two differ only if Redis' clock is ahead
// and not believed. If it is behind, a tick is worth firing until Redis' clock has reached the end.
func (c *clock) onRedis(t time.Time) time.Time {
	at, ok := c.redis()
	if ahead := at.Sub(c.Now()); ok && ahead > time.Second {
		return t.Add(ahead)
	}
	return t
}

// AfterFunc calls f in its own goroutine once the cluster clock has advanced by d, by whatever road it gets there.
func (c *clock) AfterFunc(d time.Duration, f func()) *timer {
	t := &timer{placed: nowhere, clock: c, fn: f}
	t.Reset(d)
	return t
}

// sleep waits until the cluster clock has reached t, and up to a millisecond longer; false when ctx ended first. It
// needs run to be running.
func (c *clock) sleep(ctx context.Context, t time.Time) bool { return c.sleepUntil(ctx, t, false) }

// sleepUntil is sleep; precise = without the millisecond.
func (c *clock) sleepUntil(ctx context.Context, t time.Time, precise bool) bool {
	left := t.Sub(c.Now())
	if left <= 0 || ctx.Err() != nil {
		return ctx.Err() == nil
	}
	reached := make(chan struct{})
	timer := &timer{placed: nowhere, clock: c, fn: func() { close(reached) }, precise: precise}
	timer.Reset(left)
	select {
	case <-reached:
		return true
	case <-ctx.Done():
		timer.Stop()
		return false
	}
}

// run calls the functions of due timers until ctx ends. A step or the end of a suspend is noticed within seconds.
func (c *clock) run(ctx context.Context) {
	for ctx.Err() == nil {
		c.mu.Lock()
		now, wait, precise := c.Now(), beat.Near(c.wall(), beat.Rest), false
		c.checked = time.Now()
		for len(c.timers) > 0 {
			first := c.timers[0]
			if left := first.at.Sub(now); left > 0 {
				wait, precise = min(wait, left), first.precise
				break
			}
			heap.Pop(&c.timers)
			go first.fn()
		}
		c.mu.Unlock()

		if precise && wait <= preciseWindow {
			c.preciseSleep(wait)
			continue
		}
		if precise {
			wait -= preciseWindow
		}
		select {
		case <-time.After(wait):
		case <-c.kick:
		case <-ctx.Done():
		}
	}
}

// alive reports whether run looked lately.
func (c *clock) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.checked) < 3*beat.Rest
}

// timer is made by AfterFunc.
type timer struct {
	placed  // in the heap of the clock, if it is armed
	clock   *clock
	fn      func()
	precise bool
}

// Stop reports whether the timer was still armed.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.disarm()
}

func (t *timer) disarm() bool {
	if t.index < 0 {
		return false
	}
	heap.Remove(&t.clock.timers, t.index)
	return true
}

// Reset arms the timer anew, and reports whether it was still armed.
func (t *timer) Reset(d time.Duration) bool {
	c := t.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	was := t.disarm()
	t.at = c.Now().Add(d)
	heap.Push(&c.timers, t)
	if t.index == 0 {
		beat.Kick(c.kick)
	}
	return was
}

// byTime is a heap by the times of its elements, the earliest first.
type byTime[T interface{ self() *placed }] []T

// placed is the part of an element that the heap knows.
type placed struct {
	at    time.Time
	index int // in the heap; -1 = it is not in there
}

var nowhere = placed{index: -1}

func (p *placed) self() *placed { return p }

// byTime implements heap.Interface.
func (h byTime[T]) Len() int           { return len(h) }
func (h byTime[T]) Less(i, j int) bool { return h[i].self().at.Before(h[j].self().at) }
func (h byTime[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].self().index, h[j].self().index = i, j
}
func (h *byTime[T]) Push(x any) {
	x.(T).self().index = len(*h)
	*h = append(*h, x.(T))
}
func (h *byTime[T]) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = slices.Delete(*h, last, last+1) // which clears the place
	x.self().index = -1
	return x
}
