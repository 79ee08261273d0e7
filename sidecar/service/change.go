package service

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/lock"
)

var (
	// ErrTooMany is wrapped by the error of a request that would exceed a limit of the service: on timers, or on
	// requests by hand.
	ErrTooMany = errors.New("there are too many")

	errTooLarge = fmt.Errorf("its source has more than %d bytes", MaxSource)
)

// MaxSource bounds what Redis keeps of a timer, in bytes: while a script handles it, all other clients wait.
const MaxSource = 64 << 10

// doing is what an error says of each verb.
var doing = map[string]string{"set": "setting", "delete": "deleting", "pause": "pausing", "resume": "resuming"}

// change repeats a request to set, delete, pause or resume something, which its verb tells, until Redis answers it or
// ctx ends. If the request is bad, change sends none. copied returns the keys and arguments of one copy. It gets the
// request's id, the number of the copy, and the time (ms) until which the copy may have an effect.
//
// A late copy must not undo what was done after its sender gave up, and Redis cannot remember all requests. So each
// copy has a window, by Redis' clock. If the effect of a copy is unknown, the store waits for the end of its window
// before it sends the next copy, and before it returns: at most until two timeouts after the end of ctx. So a second
// copy is then the only one left. If the first copy had its effect, Redis knows the request by its id.
func (s *Store) change(ctx context.Context, sc *rds.Script, verb, what string, bad error,
	copied func(request string, try int, until int64) (keys []string, args []any)) (answer []any, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s %s: %w", doing[verb], what, err)
		}
	}()
	if bad != nil {
		return nil, bad
	}
	window := 2 * s.redis.Timeout() // as long as a request can take to be sent and answered
	id := uuid.New()
	request := new(big.Int).SetBytes(id[:]).Text(big.MaxBase) // Redis keeps it twice with each timer
	var last error
	for try := 0; ctx.Err() == nil; try++ {
		sent := s.redis.Boottime()
		redisSent, err := s.redis.TimeAt(ctx, sent)
		if err != nil {
			last = err
			beat.Sleep(ctx, rds.Backoff(try))
			continue
		}
		keys, args := copied(request, try, rds.Millis(redisSent.Add(window)))
		parts, err := s.redis.Call(context.WithoutCancel(ctx), sc, 1, keys, args...)
		switch {
		case err == nil && parts[0] != string(lock.Stale):
			return changed(parts)
		case err == nil: // the estimate of Redis' clock was wrong; this answer corrects it
			beat.Sleep(ctx, rds.Backoff(try))
		case rds.Answered(err):
			last = err
			beat.Sleep(ctx, rds.Backoff(try))
		default:
			last = err
			// Half a timeout more allows for errors in the estimate of Redis' clock.
			if !s.redis.Outlast(sent + window + s.redis.Timeout()/2) {
				return nil, fmt.Errorf("%w: %w", lock.ErrNoAnswer, err)
			}
		}
	}
	return nil, fmt.Errorf("%w: %w", lock.ErrNoAnswer, rds.GaveUp(ctx, last))
}

// changed reads the answer {code, now, number ..}.
func changed(parts []any) ([]any, error) {
	refused := map[any]error{string(lock.Fired): ErrTimerFired, "UNKNOWN": ErrUnknownJob, "PAST": ErrPast,
		"FULL": ErrTooMany}
	switch err := refused[parts[0]]; {
	case err != nil:
		return nil, err
	case len(parts) < 3:
		return nil, rds.Unexpected(parts)
	case parts[0] == "LARGE":
		return nil, fmt.Errorf("%w: their definitions would have more than %d bytes together", ErrTooMany, parts[2])
	}
	return parts, nil
}
