package lock

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
)

// Margin is how long before its end a lease stops being trusted: room for clocks that run at different rates and for
// the work to end. A ttl must be longer.
const Margin = time.Second

// NewClient makes a client that meets the needs of the protocol. It never resends: a request that the client repeats by
// itself can arrive after its sender gave up. It speaks to masters alone, because a replica knows only earlier claims.
// timeout bounds each of its waits (0 = half a second). Its buffers are small. On every connection it bounds what a
// server can make this process allocate. Everything else in o is kept: with a MasterName, Addrs are Sentinels; with
// IsClusterMode or several Addrs, they are nodes of a Cluster. If o has a Dialer of its own, that Dialer must handle
// TLS by itself.
func NewClient(o redis.UniversalOptions, timeout time.Duration) redis.UniversalClient {
	return rds.NewClient(o, timeout)
}

// Options of a Store; the zero value is the default.
type Options struct {
	// Timeout bounds one round trip (default half a second). The client must not wait longer than that by itself.
	Timeout time.Duration
	// WaitReplicas is how many replicas must have confirmed a claim before it is believed (default 0). If fewer are
	// connected, no tick is claimed at all.
	WaitReplicas int
	// Boottime is the clock of trust windows (default: the time since boot, time in suspend included). Simulations
	// bring their own.
	Boottime func() time.Duration
	// History is about how many entries of each job's history Redis keeps (default 200).
	History int
}

// Store speaks the protocol for one service. It keeps no lock itself and is safe for concurrent use.
type Store struct {
	redis    *rds.Redis
	kept     keepers
	releases releases
}

// New makes a Store over a client that never resends by itself; NewClient makes one. The service is the namespace of
// all keys and must not contain braces, blanks or control characters.
func New(client redis.UniversalClient, service string, o Options) (*Store, error) {
	r, err := rds.Open(client, service, rds.Options(o))
	if err != nil {
		return nil, err
	}
	return Over(r), nil
}

// Over makes a Store over what this module's other packages use as well.
func Over(r *rds.Redis) *Store {
	return &Store{redis: r, releases: releases{at: map[time.Duration]*releasing{}}}
}

// BeginShutdown says that the process is about to end. No Acquire then waits any longer for late copies of its claim;
// if such a copy still claims a tick, the run is left to a takeover.
func (s *Store) BeginShutdown() { s.redis.BeginShutdown() }

// Now is Redis' time as estimated from the answers so far; false if there was no answer yet. While Redis is away, it
// goes on by this machine's own clock.
func (s *Store) Now() (time.Time, bool) { return s.redis.Now() }

// Sync asks Redis for its time once. Every other call refines the estimate too, to the millisecond that scripts see.
func (s *Store) Sync(ctx context.Context) error { return s.redis.Sync(ctx) }

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
