package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
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
func (s *Store) change(ctx context.Context, sc *script, copied func(request string, try int, until int64) (keys []string,
	args []any)) (code string,
	n int64, err error) {
	window := 2 * s.burst.timeout // as long as a request can take to be sent and answered
	request := uuid.NewString()
	var last error
	for try := 0; ctx.Err() == nil; try++ {
		sent := s.boottime()
		redisSent, ok := s.clock.middle(sent)
		if !ok {
			if last = s.Sync(ctx); last != nil {
				pause(ctx, backoff(try))
			}
			continue
		}
		keys, args := copied(request, try, millis(redisSent.Add(window)))
		parts, err := s.call(context.WithoutCancel(ctx), sc, 1, keys, args...)
		switch {
		case err == nil && parts[0] != string(Stale):
			return changed(parts)
		case err == nil: // Redis' clock is not where it was thought to be; by this answer it is known again
			pause(ctx, backoff(try))
		case answered(err):
			last = err
			pause(ctx, backoff(try))
		default:
			last = err
			// Half a timeout more is for what is wrong in the estimate of Redis' clock.
			if !s.outlast(sent + window + s.burst.timeout/2) {
				return "", 0, fmt.Errorf("%w: %w", ErrNoAnswer, err)
			}
		}
	}
	return "", 0, fmt.Errorf("%w: %w", ErrNoAnswer, gaveUp(ctx, last))
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
	n, err = integer(parts[len(parts)-1])
	return code, n, err
}

// outlast waits until a Boottime; false when Hurry cut it short.
func (s *Store) outlast(boot time.Duration) bool {
	for d := boot - s.boottime(); d > 0; d = boot - s.boottime() {
		if !pause(s.ending, min(d, glance)) {
			return false
		}
	}
	return true
}

// answered tells of an error whether the request is no longer under way: it never was, or this is what Redis said to it.
func answered(err error) bool {
	var said redis.Error
	var w *underWay
	return !errors.As(err, &w) && (errors.As(err, &said) || errors.Is(err, errUnconfirmed)) || neverSent(err)
}
