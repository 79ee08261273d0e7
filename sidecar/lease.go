package sidecar

import (
	"context"
	"errors"
	"time"

	"github.com/solotick/solotick/lock"
)

// held is the right to run a job for a tick.
type held struct {
	lease
	run   string // UUID
	token int64
	since time.Time // see lock.Lease.Since
}

// lease is the part of a lock.Lease that fire needs.
type lease interface {
	Trusted() bool
	TrustedFor(time.Duration) bool
	Keep(context.Context) (context.Context, func())
	Finish(ctx context.Context, delay time.Duration, e lock.Ending) (lock.Settled, error)
	Requeue(ctx context.Context, e lock.Ending) (lock.Settled, error)
	Interrupt(ctx context.Context, e lock.Ending) (lock.Settled, error)
	GiveUp(ctx context.Context, e lock.Ending) (lock.Settled, error)
	Handover(ctx context.Context, wait time.Duration, e lock.Ending) (lock.Settled, error)
	NextRound(ctx context.Context, wait time.Duration, e lock.Ending) (lock.Settled, error)
	Release(context.Context) error
}

// unlocked is the lease of a job that runs on every replica: there is none, only a history.
type unlocked struct {
	note func(context.Context, lock.Ending) error
}

func (unlocked) Trusted() bool                                      { return true }
func (unlocked) TrustedFor(time.Duration) bool                      { return true }
func (unlocked) Keep(ctx context.Context) (context.Context, func()) { return ctx, func() {} }
func (u unlocked) Finish(ctx context.Context, _ time.Duration, e lock.Ending) (lock.Settled, error) {
	return lock.Settled{Verdict: lock.OK}, u.note(ctx, e)
}
func (u unlocked) Requeue(ctx context.Context, e lock.Ending) (lock.Settled, error) {
	return u.Finish(ctx, 0, e)
}
func (u unlocked) Interrupt(ctx context.Context, e lock.Ending) (lock.Settled, error) {
	return u.Finish(ctx, 0, e)
}
func (u unlocked) GiveUp(ctx context.Context, e lock.Ending) (lock.Settled, error) {
	return u.Finish(ctx, 0, e)
}
func (unlocked) Handover(context.Context, time.Duration, lock.Ending) (lock.Settled, error) {
	return lock.Settled{}, errors.New("a job that runs on every replica is not handed over")
}
func (u unlocked) NextRound(ctx context.Context, wait time.Duration, e lock.Ending) (lock.Settled, error) {
	return u.Handover(ctx, wait, e)
}
func (unlocked) Release(context.Context) error { return nil }
