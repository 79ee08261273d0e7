package service

import (
	"errors"
	"fmt"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

// Kind is why a request is refused.
type Kind int

// The kinds of refusals.
const (
	Unavailable  Kind = iota // Redis did not answer, or answered with an error
	Unanswered               // Redis may have done what was asked for, or not
	Unregistered             // no replica has registered the job
	Full                     // the service has as many as it may have
	Taken                    // the id is: by a timer that fires or has fired within the last day, or by another request
	Invalid                  // the request contradicts itself, the clock or the format
	NoReason                 // a pause has no reason
	Future                   // a backfill ends after now
	NotAdmitted              // the table does not let a timer send such a request
	NoRun                    // the job has no such run, or none at all
	NoFailure                // no tick of the job failed
	NoJob                    // there is no job of that name
	NoTimer                  // no timer of that id waits
	EveryReplica             // a job with this guarantee cannot be run by request
	OtherWay                 // the app asks for the job's ticks by itself, or none can
	Partial                  // the table at hand does not tell all that the request needs
)

// Refusal is the error of every request that an Operator refuses or cannot fulfil.
type Refusal struct {
	Kind     Kind
	Subject  string          // the name of the job or id of the timer, where the caller's hint may need it
	Message  string          // what is wrong
	Hint     string          // what to do about it; "" where that depends on who asks
	Problems config.Problems // all that is wrong with the definition of a timer
	Err      error           // the error of the request to Redis; nil if none was sent
}

func (r *Refusal) Error() string { return r.Message }
func (r *Refusal) Unwrap() error { return r.Err }

// refuse makes a Refusal with that message. It can be given a Subject by of, and a Hint by hint.
func refuse(k Kind, format string, args ...any) *Refusal {
	return &Refusal{Kind: k, Message: fmt.Sprintf(format, args...)}
}

func (r *Refusal) of(subject string) *Refusal {
	r.Subject = subject
	return r
}

func (r *Refusal) hint(hint string) *Refusal {
	r.Hint = hint
	return r
}

// toCome is the refusal of a time that Redis' clock has not reached.
func toCome(m Moment, now time.Time) *Refusal {
	return refuse(Future, "%s is yet to come: Redis' clock is at %s", m, now.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// RefusalOf makes a Refusal of the error of a request to Redis, or of the problems of a definition.
func RefusalOf(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if problems, ok := errors.AsType[config.Problems](err); ok {
		return wrong(Invalid, problems)
	}
	r := &Refusal{Kind: Unavailable, Message: err.Error(), Err: err}
	switch {
	case errors.Is(err, ErrUnknownJob):
		r.Kind = Unregistered
	case errors.Is(err, ErrPast):
		r.Kind = Invalid
	case errors.Is(err, ErrTimerFired), errors.Is(err, ErrOtherRequest):
		r.Kind, r.Hint = Taken, "for a day the id is not taken again: use another one"
	case errors.Is(err, ErrTooMany):
		r.Kind = Full
	case errors.Is(err, lock.ErrNoAnswer):
		r.Kind = Unanswered
	}
	return r
}

// wrong is the refusal of a definition with problems.
func wrong(k Kind, problems config.Problems) *Refusal {
	r := refuse(k, "the body has %d problems", len(problems))
	r.Problems = problems
	if len(problems) == 1 {
		r.Message, r.Hint = problems[0].Message, problems[0].Hint
	}
	return r
}
