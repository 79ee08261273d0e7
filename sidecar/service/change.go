package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/lock"
)

var (
	// ErrTooMany is wrapped by the error of a timer, a job or a request by hand that would be one more than the service may have.
	ErrTooMany = errors.New("there are too many")

	errTooLarge = fmt.Errorf("its source has more than %d bytes", MaxSource)
)

// MaxSource bounds what is kept of a timer or a dynamic job, in bytes: scripts hold Redis up for all others.
const MaxSource = 64 << 10

// change sends a request that sets or deletes something until it is answered or ctx ends. copied makes the keys and
// arguments of one copy of it, from the request's id, the number of the copy and until when (ms) it may have an effect.
//
// A copy that comes late must undo nothing that was done after its sender gave up, and these requests are too many for
// Redis to remember each. So every copy has a window, by Redis' clock; and where it is not known what became of one, the
// next is sent, and the call returns, only when its window is over: two timeouts after the end of ctx at most. A second
// copy is then the only one that there is, and Redis knows the request by its id if the first has had its effect.
func (s *Store) change(ctx context.Context, sc *rds.Script, copied func(request string, try int, until int64) (keys []string,
	args []any)) (code string,
	n int64, err error) {
	window := 2 * s.redis.Timeout() // as long as a request can take to be sent and answered
	request := uuid.NewString()
	var last error
	for try := 0; ctx.Err() == nil; try++ {
		sent := s.redis.Boottime()
		redisSent, ok := s.redis.At(sent)
		if !ok {
			if last = s.Sync(ctx); last != nil {
				rds.Sleep(ctx, rds.Backoff(try))
			}
			continue
		}
		keys, args := copied(request, try, rds.Millis(redisSent.Add(window)))
		parts, err := s.redis.Call(context.WithoutCancel(ctx), sc, 1, keys, args...)
		switch {
		case err == nil && parts[0] != string(lock.Stale):
			return changed(parts)
		case err == nil: // Redis' clock is not where it was thought to be; by this answer it is known again
			rds.Sleep(ctx, rds.Backoff(try))
		case rds.Answered(err):
			last = err
			rds.Sleep(ctx, rds.Backoff(try))
		default:
			last = err
			// Half a timeout more is for what is wrong in the estimate of Redis' clock.
			if !s.redis.Outlast(sent + window + s.redis.Timeout()/2) {
				return "", 0, fmt.Errorf("%w: %w", lock.ErrNoAnswer, err)
			}
		}
	}
	return "", 0, fmt.Errorf("%w: %w", lock.ErrNoAnswer, rds.GaveUp(ctx, last))
}

// changed reads the answer {code, now, number}.
func changed(parts []any) (code string, n int64, err error) {
	code, _ = parts[0].(string)
	switch code {
	case "FULL":
		return "", 0, ErrTooMany
	case "LARGE":
		return "", 0, fmt.Errorf("%w: their definitions would have more than %d bytes together", ErrTooMany, parts[len(parts)-1])
	}
	n, err = rds.Integer(parts[len(parts)-1])
	return code, n, err
}
