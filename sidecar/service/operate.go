package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/lock"
)

var (
	// ErrUnknownJob is wrapped by the error of a request for a job that no replica has registered, or whose ledger was
	// lost with Redis' data and is not registered anew yet.
	ErrUnknownJob = errors.New("the job is not known to Redis")
	// ErrOtherRequest is wrapped by the error of a request under the id of one for another job, of another kind or for
	// another tick. It has no effect.
	ErrOtherRequest = errors.New("the id is that of another request")
	// ErrPast is wrapped by the error of a pause whose end Redis' clock has reached.
	ErrPast = errors.New("its end has passed")
)

const (
	// MaxOffset is how far Redis' clock and a replica's may lie apart. Beyond it one of the two is wrong, perhaps
	// Redis'. A replica that follows a clock one hour ahead would claim the hour's ticks at once.
	MaxOffset = time.Minute
	// MaxReason bounds the reason of a pause, in characters.
	MaxReason = 200
	// MaxBackfill bounds the ticks of one Backfill: while its script runs, all other clients of Redis wait.
	MaxBackfill = 1000
)

// Pause holds a job back until the given time or, if that is zero, until Resume. No replica claims a tick of the job's
// table from before that time. Ticks that are handed on, taken over or caught up wait. Requests by hand are run all the
// same. The ticks of a pause count as settled, not as missed. The reason becomes one line of printable characters and
// may have MaxReason of them.
//
// A job can have two pauses: its own, and one that is meant for all jobs, which an Author sets whose command was for
// all of them. A new pause replaces the earlier one of its kind, and does not change the other. The job goes on when
// neither holds it.
//
// If a reply is lost, Pause asks again until ctx ends. The error wraps ErrUnknownJob, ErrPast or ErrNoAnswer. After
// ErrNoAnswer the job may be paused or not, and no copy of this request will pause it later.
func (s *Store) Pause(ctx context.Context, job, reason string, until time.Time) error {
	reason = text.OneLine(reason)
	if n := utf8.RuneCountInString(reason); n > MaxReason {
		return fmt.Errorf("pausing job %q: the reason has %d characters, and at most %d are kept", job, n, MaxReason)
	}
	note := reason + text.Between("\n", s.author.By, "")
	_, err := s.pause(ctx, "pause", job, rds.Millis(until), note,
		s.act(actText{What: "pause", Job: job, Reason: reason, Until: rds.Millis(until)}))
	return err
}

// Resume ends a job's own pause, or that of all jobs, as Pause sets them; false when there was none. Ticks up to now
// count as settled, or up to the pause's own end if that has passed. Now is Redis' time, or the replicas' time if the
// replicas do not trust Redis' clock. The errors are those of Pause.
func (s *Store) Resume(ctx context.Context, job string) (bool, error) {
	n, err := s.pause(ctx, "resume", job, s.act(actText{What: "resume", Job: job}))
	return n == 1, err
}

func (s *Store) pause(ctx context.Context, verb, job string, more ...any) (int64, error) {
	which := verb
	if s.author.All != "" {
		which += "All"
	}
	k, at := s.redis.Keys, rds.Millis(s.replicasTime(ctx))
	copied := func(request string, _ int, until int64) ([]string, []any) {
		args := append([]any{k.Events, job, which, until, at}, more...)
		return []string{k.Ledger(job), k.Memo(request), k.Acts}, args
	}
	answer, err := s.change(ctx, pauseScript, verb, fmt.Sprintf("job %q", job), oneJob(job), copied)
	if err != nil {
		return 0, err
	}
	return rds.Integer(answer[2])
}

// oneJob refuses names that no request of an operator is about.
func oneJob(name string) error {
	if rds.IsTimer(name) {
		return errors.New("it is a timer")
	}
	return rds.OneWord("job", name)
}

// replicasTime is the time by which most replicas see ticks come due, if it is not Redis' time. It is zero if it is
// Redis' time or is not known. No replica follows a step of Redis' clock that has not lasted long enough.
func (s *Store) replicasTime(ctx context.Context) time.Time {
	_ = s.Sync(ctx) // if Redis does not answer here, it does not answer the next request either
	replicas, err := s.Replicas(ctx)
	now, ok := s.Now()
	if err != nil || !ok {
		return time.Time{}
	}
	steady, _ := s.Steady()
	step := now.Sub(steady)
	if step.Abs() <= rds.SmallStep {
		step = 0
	}
	before := now.Add(-step)
	var late []time.Duration // by how much ticks came later on a replica's clock than on Redis', before the step
	for _, r := range replicas {
		if now.Sub(r.Seen).Abs() < HeartbeatTimeout {
			r.Offset -= step
		} else if before.Sub(r.Seen).Abs() >= HeartbeatTimeout {
			continue
		}
		if !r.Local && r.Offset <= MaxOffset {
			r.Offset = 0
		}
		late = append(late, max(r.Offset, 0)) // where Redis is behind, they come when its clock has reached them
	}
	slices.Sort(late)
	if len(late) == 0 || late[len(late)/2] == 0 && step == 0 {
		return time.Time{}
	}
	return before.Add(-late[len(late)/2])
}

// Trigger has one replica run a job now, by hand. A paused job runs too, and its table loses no tick. The tick is
// Redis' time, in milliseconds that no schedule and no other trigger has. id is a UUID, and becomes the Nonce of the
// due member. If Trigger is called again with the same id within a day, it adds nothing and returns the same.
//
// If a reply is lost, Trigger asks again until ctx ends. The error wraps ErrUnknownJob, ErrOtherRequest, ErrTooMany or
// ErrNoAnswer. ErrTooMany: a hundred triggers of the job wait, or a thousand of all jobs. After ErrNoAnswer the job may
// be triggered or not.
func (s *Store) Trigger(ctx context.Context, job, id string) (lock.Due, error) {
	d := lock.Due{Job: job, Kind: "manual", Attempt: 1, Nonce: id}
	tick, err := s.ask(ctx, "triggering", d, nil, actText{What: "trigger"})
	if err != nil {
		return lock.Due{}, err
	}
	d.Tick = rds.FromMillis(tick)
	return d, nil
}

// Backfill has the replicas run a job for each of the ticks, whether they were fired before or not, and returns how
// many were added. Ticks are whole milliseconds, and MaxBackfill at most. With anew, the ticks have new idempotency
// keys, each of which ends with the beginning of id. id and the errors are as with Trigger, except that ErrTooMany
// means that more than 5000 ticks would wait.
func (s *Store) Backfill(ctx context.Context, job string, ticks []time.Time, id string, anew bool) (int, error) {
	if n := len(ticks); n > MaxBackfill {
		return 0, fmt.Errorf("backfilling job %q: %d ticks are more than %d", job, n, MaxBackfill)
	}
	if len(ticks) == 0 { // without a tick the script would make a trigger
		return 0, nil
	}
	d := lock.Due{Job: job, Kind: "backfill", Attempt: 1, Nonce: id}
	if anew {
		d.Key = id[:min(len(id), 8)]
	}
	n, err := s.ask(ctx, "backfilling", d, ticks, actText{What: "backfill", Tick: rds.Millis(ticks[0])})
	return int(n), err
}

// ask makes ticks of a job due, as members like d. Without ticks it makes one of now.
func (s *Store) ask(ctx context.Context, doing string, d lock.Due, ticks []time.Time, act actText) (int64, error) {
	k := s.redis.Keys
	keys, args := []string{k.Ledger(d.Job), k.DueJobs, k.Memo(d.Nonce), k.Acts}, []any{d.Suffix(), k.Events}
	for _, t := range ticks {
		args = append(args, rds.Millis(t))
	}
	act.Job = d.Job
	args = append(args, s.act(act))
	made, err := s.operate(ctx, askScript, doing, d.Job, d.Nonce, keys, args...)
	if err != nil {
		return 0, err
	}
	return rds.Integer(made)
}

// Cancel has runs of a job end for good, and returns those of them that lived. Their replicas are told at once, or at
// the next renewal of the lease if the nudge is lost; a command gets TERM, a request is closed. However such a run
// ends, and whoever records its end, its tick is not run again. runs are UUIDs, as States tells them, so that a copy of
// the request that comes late does not end a run that began after it. id and the errors are as with Trigger, without
// ErrTooMany.
func (s *Store) Cancel(ctx context.Context, job string, runs []string, id string) ([]string, error) {
	k := s.redis.Keys
	args := []any{k.Events, job}
	for _, run := range runs {
		args = append(args, run)
	}
	args = append(args, s.act(actText{What: "cancel", Job: job}))
	keys := []string{k.Ledger(job), k.Memo(id), k.Acts}
	made, err := s.operate(ctx, cancelScript, "cancelling", job, id, keys, args...)
	if err != nil {
		return nil, err
	}
	lived, ok := made.(string)
	if !ok {
		return nil, fmt.Errorf("cancelling job %q: %w", job, rds.Unexpected(made))
	}
	return strings.Fields(lived), nil
}

// CancelWaiting drops what waits of a job because somebody asked for it, and returns the ticks. Runs that live go on.
// If Redis gives no answer until the given time on its clock, nothing is dropped after that. id and the errors are as
// with Cancel.
func (s *Store) CancelWaiting(ctx context.Context, job, id string, until time.Time) ([]time.Time, error) {
	k := s.redis.Keys
	keys := []string{k.Ledger(job), k.Memo(id), k.Acts, k.DueJobs, k.History(job)}
	made, err := s.operate(ctx, cancelScript, "cancelling", job, id, keys,
		k.Events, job, rds.Millis(until), s.redis.History(job), s.act(actText{What: "cancel", Job: job}))
	var ticks []time.Time
	waited, _ := made.(string)
	for _, ms := range strings.Fields(waited) {
		ticks = append(ticks, rds.FromMillis(rds.Number(ms)))
	}
	return ticks, err
}

// operate repeats one request of an operator until Redis answers it or ctx ends. The request's id makes repeating
// harmless: a late copy of a request that Redis has carried out has no effect. A late copy of another request undoes
// nothing that came after it: it asks for a run, or ends the runs that it names.
func (s *Store) operate(ctx context.Context, sc *rds.Script, doing, job, id string,
	keys []string, args ...any) (made any, err error) {
	err = oneJob(job)
	if _, invalid := uuid.Parse(id); err == nil && (invalid != nil || len(id) != len(uuid.Nil.String())) {
		err = fmt.Errorf("id %q is no UUID", id)
	}
	if err != nil {
		return nil, fmt.Errorf("%s job %q: %w", doing, job, err)
	}
	for try := 0; ; try++ {
		parts, err := s.redis.Call(ctx, sc, 1, keys, args...)
		if err == nil {
			made, err := operated(parts)
			if err != nil {
				err = fmt.Errorf("%s job %q: %w", doing, job, err)
			}
			return made, err
		}
		if !beat.Sleep(ctx, rds.Backoff(try)) {
			return nil, fmt.Errorf("%s job %q: %w: %w", doing, job, lock.ErrNoAnswer, err)
		}
	}
}

// operated reads the answer {code, now, what was made}.
func operated(parts []any) (any, error) {
	switch parts[0] {
	case "UNKNOWN":
		return nil, ErrUnknownJob
	case "OTHER":
		return nil, ErrOtherRequest
	case "PAST":
		return nil, ErrPast
	case "FULL":
		return nil, fmt.Errorf("%w: %d requests wait, which is the limit", ErrTooMany, parts[len(parts)-1])
	}
	return parts[len(parts)-1], nil
}
