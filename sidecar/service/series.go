package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/lock"
)

// Series is a timer as Redis has it.
type Series struct {
	Of     lock.Due // its due member
	Source []byte
	Newest time.Time // that was made due; 1970 = none
	Err    error     // why it cannot be read: ErrNoTimer or ErrBadTimer; nil = it can

	timerEntry
}

// state is the timer in a list. Its source may hold secrets, of which a schedule is none.
func (t *Series) state() TimerState {
	state := TimerState{ID: rds.TimerID(t.Of.Job), At: t.at}
	if !t.series {
		return state
	}
	var keys struct {
		Schedule json.RawMessage
		TimeZone string
	}
	_ = json.Unmarshal(t.Source, &keys) // another version may have written it
	exprs := make([]string, 1)
	if json.Unmarshal(keys.Schedule, &exprs[0]) != nil {
		_ = json.Unmarshal(keys.Schedule, &exprs)
	}
	state.Schedule, state.TimeZone = strings.Join(exprs, "; "), cmp.Or(keys.TimeZone, "UTC")
	return state
}

// Series reads the timers with these due members, a hundred of them at most. A replica reads them between Look and its
// claims: if it wins one, the timer was not set anew in between.
func (s *Store) Series(ctx context.Context, members []lock.Due) ([]Series, error) {
	args := append(make([]any, 0, 1+len(members)), "mget")
	for _, d := range members {
		args = append(args, s.redis.Keys.Timer(d.Job))
	}
	reply, err := s.redis.Do(ctx, args...)
	values, _ := reply.([]any)
	if err == nil && len(values) != len(members) {
		err = rds.Unexpected(reply)
	}
	if err != nil {
		return nil, fmt.Errorf("reading timers: %w", err)
	}
	all := make([]Series, len(values))
	for i, v := range values {
		e, err := timerEntry{}, ErrNoTimer // it is deleted
		if text, ok := v.(string); ok {
			e, err = parseTimer(text)
		}
		all[i] = Series{members[i], []byte(e.source), rds.FromMillis(e.newest), err, e}
	}
	return all, nil
}

// Awaited is the oldest time for which a timer waits, or which is due or runs; zero if there is none.
func (s *Store) Awaited(ctx context.Context, job string) (time.Time, error) {
	read, err := s.Series(ctx, []lock.Due{{Job: job}})
	if err != nil || read[0].Err != nil {
		return time.Time{}, err
	}
	newest, err := s.Series(ctx, []lock.Due{{Job: rds.OccurrenceJob(job, read[0].newest)}})
	if err == nil && newest[0].Err == nil {
		return newest[0].at, nil
	}
	return read[0].at, err
}

// MaxSprung bounds how many timers one Spring moves on: while the script runs, all other clients wait.
const MaxSprung = 100

// Sprung is the code of an answer of Spring for one timer.
type Sprung string

// The codes.
const (
	SprungDue        Sprung = "DUE"
	SprungReplaced   Sprung = "REPLACED"   // due; no replica had claimed the time before, which is missed
	SprungOverlapped Sprung = "OVERLAPPED" // the time before runs or is handed on: this one is passed over
	SprungPast       Sprung = "PAST"       // the time was made due before: Redis' clock was set back
	SprungGone       Sprung = "GONE"       // the timer does not wait for the time of its member any more
)

// Spring says how a timer with a schedule goes on whose time has come.
type Spring struct {
	Series
	Tick   time.Time // the newest time that has come
	Next   time.Time // for which it waits then; zero = none, it is over
	Missed Entry     // the times before Tick, which are passed over; a Count of zero = there are none
	// Overlap is what the history is told if the time before runs or is handed on. It is told of the first time that
	// comes during a run, or after the timer was set anew, not of the others: there may be thousands.
	Overlap Entry
}

// Due is the due member of the time that Spring makes due.
func (p *Spring) Due() lock.Due {
	d := p.Of
	d.Tick, d.Job, d.Kind = p.Tick, rds.OccurrenceJob(p.Of.Job, rds.Millis(p.Tick)), "timer"
	d.Age -= p.Tick.Sub(p.Of.Tick)
	return d
}

// Spring makes times of timers with schedules due, each as a timer of its own, and has the timers wait for the next
// times, in one step. It says what became of each. A timer that is not as Series has read it is left alone. While a
// time of a timer runs or is handed on, no other one of it becomes due. After an error it may have had its effect or
// not.
func (s *Store) Spring(ctx context.Context, all []Spring) ([]Sprung, error) {
	k := s.redis.Keys
	keys := []string{k.DueTimers, k.Ledger(TimerJobs), k.History(TimerJobs)}
	args := []any{s.redis.History(TimerJobs)}
	for i := range all {
		p := &all[i]
		before := k.Timer(rds.OccurrenceJob(p.Of.Job, rds.Millis(p.Newest)))
		keys = append(keys, k.Timer(p.Of.Job), k.Timer(p.Due().Job), before)
		args = append(args, p.Of.Member(), rds.Millis(p.Tick), rds.Millis(p.Next), p.Missed.told(), p.Overlap.text())
	}
	parts, err := s.redis.Call(ctx, springScript, 1, keys, args...)
	if err == nil && len(parts) != 2+len(all) {
		err = rds.Unexpected(parts)
	}
	if err != nil {
		return nil, fmt.Errorf("making times of timers due: %w", err)
	}
	codes := make([]Sprung, len(all))
	for i := range codes {
		code, _ := parts[2+i].(string)
		codes[i] = Sprung(code)
	}
	return codes, nil
}
