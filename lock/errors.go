package lock

import (
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	// ErrLost is the cause of a run's context when its lease can no longer be trusted, and what Verify answers when
	// another run, or none, stands where this one did.
	ErrLost = errors.New("lock lost")
	// ErrReplaced is the cause of a run's context when a newer tick is to take its place.
	ErrReplaced = errors.New("replaced by a newer tick")
	// ErrNoAnswer is wrapped by the error of a call that ended without a clear answer. Nothing follows from it: neither
	// that the lock is held nor that it is free.
	ErrNoAnswer = errors.New("no clear answer from Redis")
)

// unsent is an error that came before a byte was sent.
type unsent struct{ err error }

func (e *unsent) Error() string { return e.err.Error() }
func (e *unsent) Unwrap() error { return e.err }

// underWay is the end of a caller's context while its request may be anywhere. The cause is the caller's own business:
// it may wrap an error of another request, of which nothing follows for this one.
type underWay struct{ err error }

func (e *underWay) Error() string { return e.err.Error() }
func (e *underWay) Unwrap() error { return e.err }

// neverSent tells of an error whether the request certainly never left this process.
func neverSent(err error) bool {
	var u *unsent
	var w *underWay
	var op *net.OpError
	if errors.As(err, &w) {
		return false
	}
	return errors.As(err, &u) || errors.As(err, &op) && op.Op == "dial" ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed)
}

// notRun tells of an error whether Redis said that it did not run the script. The errors listed come before a script's
// first write; any other (WRONGTYPE or NOPERM half-way, say) leaves the effect open.
func notRun(err error) bool {
	return refusedWith(err, "NOSCRIPT", "LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK",
		"OOM", "MISCONF", "NOREPLICAS", "BUSY", "NOAUTH", "WRONGPASS", "ERR max number of clients")
}

// refusedWith tells of an error whether it is Redis' own answer to this request and begins with one of the words.
func refusedWith(err error, words ...string) bool {
	if err == nil {
		return false
	}
	var re redis.Error
	var w *underWay
	if errors.As(err, &w) || !errors.As(err, &re) {
		return false
	}
	text := re.Error()
	if strings.HasPrefix(text, "ERR Error running script") { // so Redis 6 wraps a refusal of the script's first write
		_, text, _ = strings.Cut(text, ": -")
	}
	for _, p := range words {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}

// withoutEffect tells of an error whether the request has had no effect and can have none later.
func withoutEffect(err error) bool { return neverSent(err) || notRun(err) }
