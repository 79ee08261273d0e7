package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// TimerJobs is the name by which the ledger that all timers of a service share is registered.
	TimerJobs = "@timers"
	// MaxTimers bounds how many timers of a service may wait.
	MaxTimers = 1_000_000
	// MaxTimerSources bounds what their sources have together, in bytes: they lie in Redis' memory, and when that is full
	// nothing is fired.
	MaxTimerSources = 256 << 20
	// MaxListed bounds how many of them Timers reads at once, each with its source.
	MaxListed = 1000

	timerPrefix = "timer:"       // of the job of a single timer
	timerMemory = 24 * time.Hour // for which the script remembers that one has fired
)

var (
	// ErrTimerFired is wrapped by the error of a SetTimer that comes too late: a timer of that id is being fired, or was
	// within the last day.
	ErrTimerFired = errors.New("the timer has fired")
	// ErrNoTimer is wrapped by the error of a Timer that Redis does not know.
	ErrNoTimer = errors.New("there is no such timer")
	// ErrBadTimer is wrapped by the error of a Timer whose entry this version cannot read.
	ErrBadTimer = errors.New("its entry cannot be read")
)

// TimerJob is what the job of a timer is called in the due set, in claims and in the history.
func TimerJob(id string) string { return timerPrefix + id }

// TimerID is the id of the timer that a job is; false when it is none.
func TimerID(job string) (string, bool) { return strings.CutPrefix(job, timerPrefix) }

// TimerState is a timer that waits.
type TimerState struct {
	ID     string
	At     time.Time // when it comes due
	Source []byte
}

// SetTimer makes a timer come due at a time, in whole milliseconds, or at once if that has passed: as a member of the due
// set, of the job TimerJob(id) and the kind "timer", for whoever claims it. The id is one word. created tells that none of
// that id was waiting: set again with the same time and source nothing changes, with others it takes the place of the one
// that waits. The source is opaque here and has MaxSource bytes at most.
//
// A lost reply is asked for again until ctx ends. The error wraps ErrTimerFired, ErrTooMany (of MaxTimers,
// or MaxTimerSources), or ErrNoAnswer, after
// which the timer may be set or not, and will not be by a copy of this request.
func (s *Store) SetTimer(ctx context.Context, id string, at time.Time, source []byte) (created bool, err error) {
	err = oneWord("id", id)
	switch ms := millis(at); {
	case err != nil:
	case ms <= 0:
		err = fmt.Errorf("time %s lies before 1970", at)
	case len(source) > MaxSource:
		err = errTooLarge
	default:
		var code string
		var n int64
		code, n, err = s.changeTimer(ctx, "set", id, ms, source, MaxTimers, s.keys.events, MaxTimerSources)
		if code == string(Fired) {
			err = ErrTimerFired
		}
		created = n == 1
	}
	if err != nil {
		return false, fmt.Errorf("setting timer %q: %w", id, err)
	}
	return created, nil
}

// DeleteTimer takes a timer back; false when none of that id waits: it has fired, or there never was one. A reply that was
// lost is asked for again until ctx ends, and is the same for ten minutes. The error wraps ErrNoAnswer: the timer may be
// deleted or not, and will not be by a copy of this request.
func (s *Store) DeleteTimer(ctx context.Context, id string) (bool, error) {
	err := oneWord("id", id)
	code := ""
	if err == nil {
		code, _, err = s.changeTimer(ctx, "delete", id)
	}
	if err != nil {
		return false, fmt.Errorf("deleting timer %q: %w", id, err)
	}
	return code == "DELETED", nil
}

// ForgetTimer deletes what is kept of a timer that has been dealt with; for a day its id is not taken again. What waits,
// or runs, is left as it is. Finish, Requeue, GiveUp and Drop do this by themselves when the timer is not to be run again,
// and CleanTimers when nobody did. Harmless when it is repeated, which it is until it is answered or ctx ends; the error
// wraps ErrNoAnswer.
func (s *Store) ForgetTimer(ctx context.Context, id string) error {
	for try := 0; ; try++ {
		_, err := s.call(ctx, timerScript, 1, s.timerKeys(id), "forget", id)
		if err == nil {
			return nil
		}
		if !pause(ctx, backoff(try)) {
			return fmt.Errorf("forgetting timer %q: %w: %w", id, ErrNoAnswer, err)
		}
	}
}

// Timer reads a timer that waits, or is being dealt with. Whoever fires it reads it between Look and the claim: when the
// claim is won, it was not set anew in between. ErrNoTimer: it was deleted, or dealt with.
// ErrBadTimer: another version may be able to read it.
func (s *Store) Timer(ctx context.Context, id string) (source []byte, at time.Time, err error) {
	reply, err := s.burst.do(ctx, "hget", s.keys.timers, id)
	if errors.Is(err, redis.Nil) {
		err = ErrNoTimer
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("reading timer %q: %w", id, err)
	}
	text, _ := reply.(string)
	t, _, err := parseTimer(id, text)
	return t.Source, t.At, err
}

// Timers are those that wait, by the time at which they come due, at most limit of them, which is MaxListed at most. Behind
// more than a thousand that were handed on they are not looked for.
func (s *Store) Timers(ctx context.Context, limit int) ([]TimerState, error) {
	if limit > MaxListed {
		return nil, fmt.Errorf("reading the timers: %d are more than the %d that are read at once", limit, MaxListed)
	}
	var found []TimerState
	members, err := s.dueTimers(ctx, limit)
	for page := range slices.Chunk(members, 100) {
		if err == nil && len(found) < limit {
			found, err = s.appendTimers(ctx, found, page)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the timers: %w", err)
	}
	return found[:min(len(found), max(limit, 0))], nil
}

// dueTimers are the members of timers that are due first, of those that were handed on too.
func (s *Store) dueTimers(ctx context.Context, limit int) ([]Due, error) {
	ctx, cancel := context.WithTimeout(ctx, s.burst.timeout)
	defer cancel()
	rdb, err := s.burst.server(ctx)
	if err != nil {
		return nil, err
	}
	members, err := rdb.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: s.keys.due, Start: itoa(timersBehind), Stop: "+inf", ByScore: true, Count: int64(max(limit, 0)) + maxWaiting,
	}).Result()
	var timers []Due
	for _, m := range members {
		d, err := ParseDue(m)
		if _, ok := TimerID(d.Job); ok && err == nil {
			timers = append(timers, d)
		}
	}
	return timers, err
}

// appendTimers adds those of the due members that are timers as they were set, and not handed on.
func (s *Store) appendTimers(ctx context.Context, found []TimerState, members []Due) ([]TimerState, error) {
	args := []any{"hmget", s.keys.timers}
	for _, d := range members {
		id, _ := TimerID(d.Job)
		args = append(args, id)
	}
	reply, err := s.burst.do(ctx, args...)
	texts, _ := reply.([]any)
	if err == nil && len(texts) != len(members) {
		err = unexpected(reply)
	}
	for i, v := range texts[:min(len(texts), len(members))] {
		text, _ := v.(string)
		id, _ := TimerID(members[i].Job)
		if t, nonce, err := parseTimer(id, text); err == nil && nonce == members[i].Nonce {
			found = append(found, t)
		}
	}
	return found, err
}

// CleanTimers goes through some hundred timers, after those of the last time, and forgets those of more than a day ago
// that nobody deals with any more: their replica died when it had run them, or in the midst of it.
func (s *Store) CleanTimers(ctx context.Context) error {
	now, err := s.estimate(ctx)
	var fields []string
	if err == nil {
		fields, err = s.someTimers(ctx)
	}
	for f := range slices.Chunk(fields[:len(fields)&^1], 2) {
		if t, _, bad := parseTimer(f[0], f[1]); err == nil && bad == nil && now.Sub(t.At) > timerMemory {
			_, err = s.call(ctx, timerScript, 1, s.timerKeys(f[0]), "clean", f[0])
		}
	}
	if err != nil {
		return fmt.Errorf("cleaning the timers up: %w", err)
	}
	return nil
}

// someTimers are the next hundred or so, ids and entries by turns.
func (s *Store) someTimers(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.burst.timeout)
	defer cancel()
	rdb, err := s.burst.server(ctx)
	if err != nil {
		return nil, err
	}
	fields, next, err := rdb.HScan(ctx, s.keys.timers, s.cleaned.Load(), "", 100).Result()
	if err == nil {
		s.cleaned.Store(next)
	}
	return fields, err
}

func (s *Store) changeTimer(ctx context.Context, verb, id string, more ...any) (code string, n int64, err error) {
	return s.change(ctx, timerScript, func(request string, try int, until int64) ([]string, []any) {
		if try > 0 {
			request = fmt.Sprintf("%s.%d", request, try)
		}
		return s.timerKeys(id), append([]any{verb, id, request, until}, more...)
	})
}

func (s *Store) timerKeys(id string) []string {
	job := TimerJob(id)
	return []string{s.keys.timers, s.keys.due, s.keys.ledger(job), s.keys.lock(job, timerSlot(id))}
}

// timerSlot keeps the runs of timers apart in the ledger that they share.
func timerSlot(id string) string { return ":" + id }

// parseTimer reads `<due ms> <nonce of its member> <1 if there was none> <source>`.
func parseTimer(id, text string) (t TimerState, nonce string, err error) {
	f := strings.SplitN(text, " ", 4)
	ms, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || len(f) != 4 {
		return TimerState{}, "", fmt.Errorf("reading timer %q: %w: %.60q", id, ErrBadTimer, text)
	}
	return TimerState{ID: id, At: fromMillis(ms), Source: []byte(f[3])}, f[1], nil
}
