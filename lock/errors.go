package lock

import (
	"errors"

	"github.com/solotick/solotick/internal/rds"
)

var (
	// ErrLost is the cause of a run's context when its lease can no longer be trusted. Verify returns it when the lock
	// belongs to another run, or to none.
	ErrLost = errors.New("lock lost")
	// ErrReplaced is the cause of a run's context when a newer tick is to take its place.
	ErrReplaced = errors.New("replaced by a newer tick")
	// ErrCancelled is the cause of a run's context when an operator has cancelled the run.
	ErrCancelled = errors.New("cancelled by an operator")
	// ErrNoAnswer is wrapped by the error of a call that ended without a clear answer. Nothing follows from it: neither
	// that the lock is held nor that it is free.
	ErrNoAnswer = rds.ErrNoAnswer
)
