package sidecar

import (
	"slices"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/lock"
)

// series is a job's ticks with the instants at which they come due: a tick plus its jitter. Both have the same order.
type series struct {
	schedule *schedule.Schedule
	job      string
	jitter   time.Duration
}

func newSeries(j *config.Job) series {
	return series{schedule: j.Schedule, job: j.Name, jitter: j.Jitter}
}

// due is the instant at which a tick comes due.
func (s *series) due(tick time.Time) time.Time { return s.schedule.Due(s.job, tick, s.jitter) }

// before is the tick before another one; zero when there is none.
func (s *series) before(tick time.Time) time.Time { return s.schedule.Last(tick.Add(-time.Nanosecond)) }

// after is the first tick that comes due after t; zero when there is none.
func (s *series) after(t time.Time) time.Time {
	if s.jitter == 0 {
		return s.schedule.Next(t)
	}
	return s.schedule.Next(s.newest(t))
}

// newest is the last tick that has come due at t; zero when there is none. The one before a tick comes due before it.
func (s *series) newest(t time.Time) time.Time {
	tick := s.schedule.Last(t)
	if s.due(tick).After(t) {
		return s.before(tick)
	}
	return tick
}

// maxOlder bounds how many missed ticks are fired late.
const maxOlder = 100

// maxCount bounds the counting of missed ticks: a day of a job every second.
const maxCount = 86_400

// within tells how many ticks lie in (from, to), at most so many, the first of them, and the last that is counted.
func (s *series) within(from, to time.Time, most int) (n int, first, last time.Time) {
	for tick := s.schedule.Next(from); !tick.IsZero() && tick.Before(to) && n < most; tick = s.schedule.Next(tick) {
		if n == 0 {
			first = tick
		}
		n, last = n+1, tick
	}
	return n, first, last
}

// between are the newest ticks in (from, to), in order, at most `most`.
func (s *series) between(from, to time.Time, most int) []time.Time {
	var ticks []time.Time
	for tick := s.before(to); tick.After(from) && len(ticks) < most; tick = s.before(tick) {
		ticks = append(ticks, tick)
	}
	slices.Reverse(ticks)
	return ticks
}

// past are ticks with the instants at which they came due.
func (s *series) past(ticks []time.Time) []lock.Past {
	var all []lock.Past
	for _, t := range ticks {
		all = append(all, lock.Past{Tick: t, Due: s.due(t)})
	}
	return all
}

func newestOf(ts ...time.Time) time.Time { return slices.MaxFunc(ts, time.Time.Compare) }
func oldestOf(ts ...time.Time) time.Time { return slices.MinFunc(ts, time.Time.Compare) }

// stamp writes a tick as the job is told it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
