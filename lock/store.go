package lock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Margin is how long before its end a lease stops being trusted: room for clocks that run at different rates and for
// the work to end. A ttl must be longer.
const Margin = time.Second

// retention is how long Redis keeps the ledger of a job that no replica registers any more.
const retention = 90 * 24 * time.Hour

// Options of a Store; the zero value is the default.
type Options struct {
	// Timeout bounds one round trip (default DefaultTimeout). The client must not wait longer than that by itself.
	Timeout time.Duration
	// WaitReplicas is how many replicas must have confirmed a claim before it is believed (default 0). With fewer
	// connected nothing is claimed at all.
	WaitReplicas int
	// Boottime is the clock of trust windows (default Boottime). Simulations bring their own.
	Boottime func() time.Duration
}

// Store speaks the protocol for one service. It keeps no lock itself and is safe for concurrent use.
type Store struct {
	keys     keys
	burst    burst
	clock    redisClock
	boottime func() time.Duration
	kept     keepers

	ending context.Context // ends with Hurry
	end    context.CancelFunc
}

// New makes a Store over a client that never resends by itself; NewClient makes one. The service is the namespace of
// all keys and must not contain braces, blanks or control characters.
func New(rdb redis.UniversalClient, service string, o Options) (*Store, error) {
	if service == "" || strings.ContainsFunc(service, func(r rune) bool { return r <= ' ' || r == '{' || r == '}' }) {
		return nil, fmt.Errorf("opening the lock store: service name %q is empty or has a blank or a brace", service)
	}
	if resends(rdb) {
		return nil, fmt.Errorf("opening the lock store: %w", errResends)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Boottime == nil {
		o.Boottime = Boottime
	}
	s := &Store{keys: newKeys(service), boottime: o.Boottime}
	s.burst.rdb, s.burst.key, s.burst.timeout, s.burst.replicas = rdb, s.keys.running, o.Timeout, o.WaitReplicas
	s.ending, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Hurry says that the process is about to end: no Acquire waits any longer for late copies of its claim, and what one of
// them should still claim is left to a takeover.
func (s *Store) Hurry() { s.end() }

// Now is Redis' time as estimated from the answers so far; false when there was none yet. It goes on by this machine's
// own clock while Redis is away.
func (s *Store) Now() (time.Time, bool) { return s.clock.middle(s.boottime()) }

// Reached is the time that Redis' clock has certainly reached, by the same estimate: what is not to begin before an
// instant waits for this. It lags behind Now by half a round trip at most.
func (s *Store) Reached() (time.Time, bool) {
	lo, _, ok := s.clock.between(s.boottime())
	return lo, ok
}

// Steady is Reached for scheduling: it follows a step of Redis' clock once the step has lasted for ten seconds, and a step of
// less than a second at once.
func (s *Store) Steady() (time.Time, bool) { return s.clock.steady(s.boottime()) }

// Sync asks Redis for its time once. Every other call refines the estimate too, to the millisecond that scripts see.
func (s *Store) Sync(ctx context.Context) error {
	sent := s.boottime()
	reply, err := s.burst.do(ctx, "time")
	if err != nil {
		return fmt.Errorf("asking Redis for its time: %w", err)
	}
	return s.observeTime(sent, reply)
}

func (s *Store) observeTime(sent time.Duration, reply any) error {
	parts, ok := reply.([]any)
	if !ok || len(parts) != 2 {
		return fmt.Errorf("asking Redis for its time: %w", unexpected(reply))
	}
	sec, err1 := integer(parts[0])
	usec, err2 := integer(parts[1])
	if err1 != nil || err2 != nil {
		return fmt.Errorf("asking Redis for its time: %w", unexpected(reply))
	}
	s.clock.observe(sent, s.boottime(), time.Unix(sec, usec*1000), time.Microsecond)
	return nil
}

// run sends one script. sent is the Boottime from which the effect may be counted: before the request. NOSCRIPT, the
// answer of a Redis that was restarted or flushed, means "not run", and the source follows.
func (s *Store) run(ctx context.Context, sc *script, keys []string, args ...any) (reply any, err error) {
	cmd := make([]any, 0, 3+len(keys)+len(args))
	cmd = append(cmd, "evalsha", sc.sha, len(keys))
	for _, k := range keys {
		cmd = append(cmd, k)
	}
	cmd = append(cmd, args...)
	reply, err = s.burst.do(ctx, cmd...)
	if refusedWith(err, "NOSCRIPT") {
		cmd[0], cmd[1] = "eval", sc.source
		reply, err = s.burst.do(ctx, cmd...)
	}
	return reply, err
}

// call runs a script whose answer is an array with Redis' time in milliseconds at index nowAt, and observes it.
func (s *Store) call(ctx context.Context, sc *script, nowAt int, keys []string, args ...any) ([]any, error) {
	sent := s.boottime()
	reply, err := s.run(ctx, sc, keys, args...)
	if err != nil {
		return nil, err
	}
	parts, ok := reply.([]any)
	if !ok || len(parts) <= nowAt {
		return nil, unexpected(reply)
	}
	now, err := integer(parts[nowAt])
	if err != nil {
		return nil, err
	}
	s.clock.observe(sent, s.boottime(), fromMillis(now), time.Millisecond)
	return parts, nil
}

// pause waits for d or the end of ctx; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// backoff between two tries of the same request: short at first, since most losses are a single packet or a reconnect.
func backoff(try int) time.Duration {
	return min(50*time.Millisecond<<min(try, 6), 2*time.Second)
}
