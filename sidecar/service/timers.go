package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/lock"
)

const (
	// TimerJobs is the name by which the ledger that all timers of a service share is registered.
	TimerJobs = rds.TimerJobs
	// MaxTimers bounds how many timers of a service may wait.
	MaxTimers = 1_000_000
	// MaxTimerSources bounds what their sources have together, in bytes: Redis keeps them in memory, and no replica can
	// fire a tick while that memory is full.
	MaxTimerSources = 256 << 20
)

var (
	// ErrTimerFired is wrapped by the error of a SetTimer that comes too late: a timer of that id is being fired, or
	// was fired within the last day.
	ErrTimerFired = errors.New("the timer has fired")
	// ErrNoTimer is wrapped by the error of a Timer that Redis does not know, or no longer knows.
	ErrNoTimer = errors.New("there is no such timer")
	// ErrBadTimer is wrapped by the error of a Timer whose entry this version cannot read.
	ErrBadTimer = errors.New("its entry cannot be read")
)

// TimerJob is the name of a timer's job in the due set, in claims and in the history.
func TimerJob(id string) string { return rds.TimerJob(id) }

// IsTimer reports whether the job is a timer's.
func IsTimer(job string) bool { return rds.IsTimer(job) }

// TimerID is the id of the timer that the job belongs to.
func TimerID(job string) string { return rds.TimerID(job) }

// SeriesJob is the job by which users know a job: of one time of a timer with a schedule, that of the timer.
func SeriesJob(job string) string { return rds.SeriesJob(job) }

// TimerState is a timer that waits.
type TimerState struct {
	ID       string
	At       time.Time // when it comes due
	Schedule string    // several are joined by "; "; "" = it has none
	TimeZone string    // of the schedule
}

// Change is what a request to set a timer has changed.
type Change string

const (
	TimerSet       Change = "set" // no timer of that id waited
	TimerReplaced  Change = "replaced"
	TimerUnchanged Change = "unchanged" // the same one waits
)

// SetTimer makes a timer come due at a time, in whole milliseconds, or at once if that has passed. It becomes a due
// member of the job TimerJob(id) and the kind "timer", which any replica can claim. The id is one word. If the waiting
// timer has the same time and source, nothing changes; if not, the new one takes its place. The source is opaque here
// and has MaxSource bytes at most.
//
// If a reply is lost, SetTimer asks again until ctx ends. The error wraps ErrTimerFired, ErrTooMany (of MaxTimers or
// MaxTimerSources) or ErrNoAnswer. After ErrNoAnswer the timer may be set or not, and no copy of this request will set
// it later.
func (s *Store) SetTimer(ctx context.Context, id string, at time.Time, source []byte) (made Change, err error) {
	_, made, err = s.setTimer(ctx, id, at, source, "timer")
	return made, err
}

// SetSeries is SetTimer for a timer with a schedule, which its source has: the timer waits for its next time, again and
// again, until Spring finds no other one. If the waiting timer has the same source, nothing changes. waits is the time
// for which it waits now.
func (s *Store) SetSeries(ctx context.Context, id string, next time.Time, source []byte) (
	waits time.Time, made Change, err error) {
	return s.setTimer(ctx, id, next, source, lock.Series)
}

func (s *Store) setTimer(ctx context.Context, id string, at time.Time, source []byte, kind string) (
	waits time.Time, made Change, err error) {
	ms := rds.Millis(at)
	switch err = rds.OneWord("id", id); {
	case err != nil:
	case ms <= 0:
		err = fmt.Errorf("time %s lies before 1970", at)
	case len(source) > MaxSource:
		err = errTooLarge
	}
	parts, err := s.changeTimer(ctx, "set", id, err, ms, source, MaxTimers, s.redis.Keys.Events, MaxTimerSources, kind)
	if err == nil && len(parts) < 4 {
		err = rds.Unexpected(parts)
	}
	if err != nil {
		return waits, "", err
	}
	changes := map[any]Change{int64(0): TimerReplaced, int64(1): TimerSet, int64(2): TimerUnchanged}
	next, err := rds.Integer(parts[3])
	return rds.FromMillis(next), changes[parts[2]], err
}

// DeleteTimer takes a timer back, and a time of its schedule that no replica has claimed yet; false if no timer of that
// id waits: it has fired, or there never was one. If a reply is lost, DeleteTimer asks again until ctx ends; for ten
// minutes Redis gives the same answer. The error wraps ErrNoAnswer: the timer may be deleted or not, and no copy of
// this request will delete it later.
func (s *Store) DeleteTimer(ctx context.Context, id string) (bool, error) {
	parts, err := s.changeTimer(ctx, "delete", id, rds.OneWord("id", id))
	if err != nil {
		return false, err
	}
	deleted := parts[0] == "DELETED"
	if newest, _ := parts[2].(int64); newest > 0 { // at most one time of a timer is not over
		parts, err = s.changeTimer(ctx, "delete", rds.TimerID(rds.OccurrenceJob(TimerJob(id), newest)), nil)
		deleted = deleted || err == nil && parts[0] == "DELETED"
	}
	return deleted, err
}

// Timer reads a timer that waits or that a replica is dealing with. ErrNoTimer: the timer was deleted, or a replica has
// dealt with it. ErrBadTimer: another version may be able to read it.
func (s *Store) Timer(ctx context.Context, id string) (source []byte, at time.Time, err error) {
	reply, err := s.redis.Do(ctx, "get", s.redis.Keys.Timer(TimerJob(id)))
	if errors.Is(err, redis.Nil) {
		err = ErrNoTimer
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("reading timer %q: %w", id, err)
	}
	text, _ := reply.(string)
	e, err := parseTimer(text)
	if err != nil {
		err = fmt.Errorf("reading timer %q: %w", id, err)
	}
	return []byte(e.source), e.at, err
}

// Timers returns the timers that wait, by the time at which they come due: at most limit of them. Between its steps
// Redis answers other clients, and a timer that is set or moves on meanwhile can be missing.
func (s *Store) Timers(ctx context.Context, limit int) (found []TimerState, err error) {
	err = s.eachByTime(ctx, func(members []lock.Due) (more bool, err error) {
		found, err = s.addWaiting(ctx, found, members, limit)
		return len(found) < limit, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the timers: %w", err)
	}
	return found[:min(len(found), max(limit, 0))], nil
}

// addWaiting reads the timers with these due members, until there are enough, and adds those that wait. It leaves out
// those that were handed on, and times of schedules that have come. It replaces what was found of a timer before.
func (s *Store) addWaiting(ctx context.Context, found []TimerState, members []lock.Due, enough int) (
	[]TimerState, error) {
	members = slices.DeleteFunc(members, func(d lock.Due) bool { return rds.IsOccurrence(d.Job) })
	for page := range slices.Chunk(members, 100) {
		if len(found) >= enough {
			break
		}
		all, err := s.Series(ctx, page)
		if err != nil {
			return found, err
		}
		all = slices.DeleteFunc(all, func(t Series) bool { // it is not as it was set, or was handed on
			return t.Err != nil || t.nonce != t.Of.Nonce
		})
		again := map[string]bool{}
		for _, t := range all {
			again[TimerID(t.Of.Job)] = true
		}
		found = slices.DeleteFunc(found, func(t TimerState) bool { return again[t.ID] })
		for _, t := range all {
			found = append(found, t.state())
		}
	}
	return found, nil
}

// eachByTime calls what for the due members of timers by their times, some at a time, while it wants more.
func (s *Store) eachByTime(ctx context.Context, what func([]lock.Due) (more bool, err error)) error {
	for start := int64(0); ; start += scanned {
		found, err := onServer(ctx, s, func(ctx context.Context, rdb redis.UniversalClient) ([]string, error) {
			return rdb.ZRange(ctx, s.redis.Keys.DueTimers, start, start+scanned-1).Result()
		})
		more := false
		if err == nil {
			more, err = what(dueTimers(found))
		}
		if err != nil || !more || len(found) < scanned {
			return err
		}
	}
}

// dueTimers reads due members of timers. It skips what is none.
func dueTimers(members []string) (timers []lock.Due) {
	for _, m := range members {
		if d, err := lock.ParseDue(m); err == nil && rds.IsTimer(d.Job) {
			timers = append(timers, d)
		}
	}
	return timers
}

// EachTimer calls what for each timer that waits, in no order. Between its steps Redis answers other clients. A timer
// that waits all the time comes at least once, and can come again. The first that cannot be read ends it.
func (s *Store) EachTimer(ctx context.Context, what func(id string, source []byte) error) error {
	return s.eachKeys(ctx, s.redis.Keys.Timer(TimerJob("")), func(keys []string) error {
		for page := range slices.Chunk(keys, 100) {
			members := make([]lock.Due, len(page))
			for i, key := range page {
				members[i].Job = strings.TrimPrefix(key, s.redis.Keys.Prefix)
			}
			all, err := s.Series(ctx, members)
			for i := 0; i < len(all) && err == nil; i++ {
				err = s.ifItWaits(ctx, &all[i], what)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ifItWaits calls what for a timer, unless a replica deals with it or has done so.
func (s *Store) ifItWaits(ctx context.Context, t *Series, what func(id string, source []byte) error) error {
	id := rds.TimerID(t.Of.Job)
	switch now, _ := s.Now(); {
	case rds.IsOccurrence(t.Of.Job), errors.Is(t.Err, ErrNoTimer):
		return nil
	case t.Err != nil:
		return fmt.Errorf("reading timer %q: %w", id, t.Err)
	case !t.series && !t.at.After(now):
		d := lock.Due{Tick: t.at, Job: t.Of.Job, Kind: "timer", Attempt: 1, Nonce: t.nonce}
		_, err := s.redis.Do(ctx, "zscore", s.redis.Keys.DueTimers, d.Member())
		if errors.Is(err, redis.Nil) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return what(id, t.Source)
}

// changeTimer sets or deletes a timer, and returns the answer of the script. bad is why it may not; nil = it may.
func (s *Store) changeTimer(ctx context.Context, verb, id string, bad error, more ...any) (parts []any, err error) {
	k := s.redis.Keys
	keys := []string{k.Timer(TimerJob(id)), k.DueTimers, k.Ledger(TimerJobs)}
	copied := func(request string, try int, until int64) ([]string, []any) {
		if try > 0 {
			request = fmt.Sprintf("%s.%d", request, try)
		}
		return keys, append([]any{verb, id, request, until}, more...)
	}
	return s.change(ctx, timerScript, verb, fmt.Sprintf("timer %q", id), bad, copied)
}

// timerEntry is what Redis keeps of a timer: see timer.lua.
type timerEntry struct {
	at            time.Time
	series        bool // it has a schedule
	nonce, source string
	newest        int64 // time of its schedule that was made due, in milliseconds; 0 = none
}

// parseTimer reads `<due ms> <nonce of its member> <1 if there was none> <source>`, which follows `series <newest> ` if
// the timer has a schedule, or the mark that a timer left.
func parseTimer(text string) (e timerEntry, err error) {
	entry, series := strings.CutPrefix(text, lock.Series+" ")
	if e.series = series; series {
		var newest string
		newest, entry, _ = strings.Cut(entry, " ")
		e.newest = rds.Number(strings.TrimSuffix(newest, "+"))
	}
	f := strings.SplitN(entry, " ", 4)
	if f[0] == "fired" || f[0] == "deleted" {
		return e, ErrNoTimer
	}
	ms, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || len(f) != 4 || len(f[3]) > MaxSource {
		return e, fmt.Errorf("%w: %.60q", ErrBadTimer, text)
	}
	e.at, e.nonce, e.source = rds.FromMillis(ms), f[1], f[3]
	return e, nil
}
