package sidecar

import (
	"log/slog"
	"time"
)

// steps deals with steps of the cluster clock, and with ticks that came due while no timer could wake for them. Its
// clock and functions do not change once the replica is made. The looker alone uses the rest.
type steps struct {
	clock   *clock
	log     *slog.Logger
	jobs    func() roster
	wake    func(upTo time.Time, jobs ...string)
	setBack func(to time.Time) // has all jobs woken anew
	launch  func(*wake)

	last           time.Time // the cluster clock at its last check
	checked        time.Time // when that was, on the machine's monotonic clock
	offsetTooLarge bool      // Redis' clock and ours lie too far apart
}

// begin has a clock that is set back from now on noticed.
func (s *steps) begin(now time.Time) { s.last, s.checked = now, time.Now() }

// check deals with steps of the cluster clock that gocron's timers cannot follow. After a step back, this replica
// takes the ticks that come again. Otherwise check wakes for each due tick for which no timer has woken. The claims
// ensure that no tick fires twice.
func (s *steps) check() {
	now, sinceLast := s.clock.Now(), time.Since(s.checked)
	back := now.Before(s.last.Add(-time.Second))
	s.last, s.checked = now, time.Now()
	if back {
		s.setBack(now.Add(-sinceLast))
	} else {
		for name, j := range s.jobs() {
			if j.overdue(now.Add(-time.Second)) { // a timer may be about to wake for later ticks
				s.wake(now, name)
			}
		}
	}
	if tooLarge := s.clock.offsetTooLarge(); tooLarge != s.offsetTooLarge {
		s.offsetTooLarge = tooLarge
		offset, _ := s.clock.offset()
		if tooLarge {
			s.log.Error("the clocks of Redis and of this replica lie too far apart: ticks come by this replica's",
				"offset", offset)
		} else {
			s.log.Info("the clocks of Redis and of this replica agree again", "offset", offset)
		}
	}
}

// catchUp wakes for ticks that came due and whose fate is not known.
func (s *steps) catchUp() {
	now := s.clock.Now()
	for _, j := range s.jobs() {
		if missed, ok := j.missedTick(now); ok {
			s.launch(new(missed)) // of all that are asked, again and again, the few that owe one go to the heap
		}
	}
}
