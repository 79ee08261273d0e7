package rds

import (
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ErrNoAnswer is lock.ErrNoAnswer.
var ErrNoAnswer = errors.New("no clear answer from Redis")

// notSentError is an error that came before a byte was sent.
type notSentError struct{ error }

func (e *notSentError) Unwrap() error { return e.error }

// inFlightError is the end of a caller's context while its request may be anywhere. The context's cause says nothing
// about this request: it may wrap an error of another request.
type inFlightError struct{ error }

func (e *inFlightError) Unwrap() error { return e.error }

// NeverSent tells of an error whether the request certainly never left this process.
func NeverSent(err error) bool {
	_, inFlight := errors.AsType[*inFlightError](err)
	_, unsent := errors.AsType[*notSentError](err)
	return !inFlight && (unsent || isDial(err) || errors.Is(err, redis.ErrPoolTimeout) ||
		errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed))
}

// isDial reports whether an error says that a connection was never open.
func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// notRun tells of an error whether Redis said that it did not run the script. The errors listed come before a script's
// first write; any other (WRONGTYPE or NOPERM half-way, say) leaves the effect open.
func notRun(err error) bool {
	return refusedWith(err, "NOSCRIPT", "LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK",
		"OOM", "MISCONF", "NOREPLICAS", "BUSY", "NOAUTH", "WRONGPASS", "ERR max number of clients")
}

// refusedWith tells of an error whether it is Redis' own answer to this request and begins with one of the words.
func refusedWith(err error, words ...string) bool {
	said, isAnswer := errors.AsType[redis.Error](err)
	if _, inFlight := errors.AsType[*inFlightError](err); inFlight || !isAnswer {
		return false
	}
	text := said.Error()
	// Redis 6 wraps a refused first write, and puts its place before it if the script handles the error itself.
	if strings.HasPrefix(text, "ERR Error running script") || strings.HasPrefix(text, "@user_script: ") {
		_, text, _ = strings.Cut(text, ": -")
	}
	return slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(text, word) })
}

// WithoutEffect tells of an error whether the request has had no effect and can have none later.
func WithoutEffect(err error) bool { return NeverSent(err) || notRun(err) }

// Answered tells of an error whether the request is no longer under way: it was never sent, or the error is Redis'
// answer to it.
func Answered(err error) bool {
	_, inFlight := errors.AsType[*inFlightError](err)
	_, said := errors.AsType[redis.Error](err)
	return !inFlight && (said || errors.Is(err, errUnconfirmed)) || NeverSent(err)
}
