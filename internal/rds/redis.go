package rds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/beat"
)

// Options of a Redis: see lock.Options.
type Options struct {
	Timeout      time.Duration
	WaitReplicas int
	Boottime     func() time.Duration
	History      int
}

// DefaultHistory is the default of Options.History.
const DefaultHistory = 200

// Redis is the Redis of one service. It is safe for concurrent use.
type Redis struct {
	Keys       Keys
	history    int // about how many entries are kept of each job
	batches    batcher
	subscriber redis.UniversalClient
	clock      redisClock
	boot       func() time.Duration
	Unanswered func() // called after each request without an answer; nil = nobody asks for that

	ending context.Context // ends with BeginShutdown
	end    context.CancelFunc
}

// Open makes a Redis over a client that never resends by itself; NewClient makes one. The service is the namespace of
// all keys and must not contain braces, blanks or control characters.
func Open(client redis.UniversalClient, service string, o Options) (*Redis, error) {
	if service == "" || strings.ContainsFunc(service, func(r rune) bool { return r <= ' ' || r == '{' || r == '}' }) {
		return nil, fmt.Errorf("opening the lock store: service name %q is empty or has a blank or a brace", service)
	}
	c, single := client.(*redis.Client)
	if single && c.Options().MaxRetries > 0 {
		return nil, errors.New("opening the lock store: the Redis client resends by itself: " +
			"set MaxRetries to -1 (see NewClient)")
	}
	if o.Boottime == nil {
		o.Boottime = Boottime
	}
	keys := NewKeys(service)
	if single && c.Options().DB > 0 { // all databases of a server share its channels
		keys.Events += ":" + strconv.Itoa(c.Options().DB)
	}
	r := &Redis{Keys: keys, history: cmp.Or(o.History, DefaultHistory), boot: o.Boottime,
		subscriber: subscriber(client)}
	r.batches = batcher{client: client, key: r.Keys.Running, timeout: cmp.Or(o.Timeout, DefaultTimeout),
		replicas: o.WaitReplicas}
	r.ending, r.end = context.WithCancel(context.Background())
	return r, nil
}

// History is about how many entries Redis keeps of the job's history, or of that of all timers, and four times as many
// as it keeps of runs that failed.
func (r *Redis) History(job string) int {
	if ledgerJob(job) == TimerJobs {
		return 10_000
	}
	return r.history
}

// Timeout bounds one round trip.
func (r *Redis) Timeout() time.Duration { return r.batches.timeout }

// WaitReplicas is how many replicas must have confirmed an answer before it is believed.
func (r *Redis) WaitReplicas() int { return r.batches.replicas }

// Boottime is the clock of trust windows.
func (r *Redis) Boottime() time.Duration { return r.boot() }

// BeginShutdown says that the process is about to end: Outlast no longer waits.
func (r *Redis) BeginShutdown() { r.end() }

// Ending ends with BeginShutdown.
func (r *Redis) Ending() context.Context { return r.ending }

// Now is the Now of a lock.Store.
func (r *Redis) Now() (time.Time, bool) { return r.At(r.boot()) }

// At is Redis' time at a Boottime, estimated as by Now.
func (r *Redis) At(boot time.Duration) (time.Time, bool) { return r.clock.middle(boot) }

// TimeAt is At. If Redis has not answered yet, TimeAt asks it for its time first.
func (r *Redis) TimeAt(ctx context.Context, boot time.Duration) (time.Time, error) {
	at, ok := r.At(boot)
	if ok {
		return at, nil
	}
	err := r.Sync(ctx)
	at, _ = r.At(boot)
	return at, err
}

// Time is Now. If Redis has not answered yet, Time asks it for its time first.
func (r *Redis) Time(ctx context.Context) (time.Time, error) {
	_, err := r.TimeAt(ctx, r.boot())
	now, _ := r.Now()
	return now, err
}

// Reached is the time that Redis' clock has certainly reached, by the same estimate. A caller that must not begin
// before an instant waits until Reached shows it. It lags behind Now by half a round trip at most.
func (r *Redis) Reached() (time.Time, bool) {
	lo, _, ok := r.clock.between(r.boot())
	return lo, ok
}

// Steady is Reached for scheduling: it follows a step of Redis' clock once the step has lasted for ten seconds, and a
// step of less than a second at once.
func (r *Redis) Steady() (time.Time, bool) { return r.clock.steady(r.boot()) }

// Sync is the Sync of a lock.Store.
func (r *Redis) Sync(ctx context.Context) error {
	sent := r.boot()
	reply, err := r.Do(ctx, "time")
	if err != nil {
		return fmt.Errorf("asking Redis for its time: %w", err)
	}
	parts, ok := reply.([]any)
	if !ok || len(parts) != 2 {
		return fmt.Errorf("asking Redis for its time: %w", Unexpected(reply))
	}
	sec, err := Integer(parts[0])
	usec, wrong := Integer(parts[1])
	if err = cmp.Or(err, wrong); err != nil {
		return fmt.Errorf("asking Redis for its time: %w", err)
	}
	r.Observe(sent, time.Unix(sec, usec*1000))
	return nil
}

// Observe takes Redis' time from an answer to a request that was sent at a Boottime.
func (r *Redis) Observe(sent time.Duration, now time.Time) {
	r.clock.observe(sent, r.boot(), now, time.Microsecond)
}

// Server is the server that holds the service's keys. In a Cluster it is the master of their slot: its clock and its
// replicas count.
func (r *Redis) Server(ctx context.Context) (redis.UniversalClient, error) {
	return r.batches.server(ctx)
}

// Subscribe listens to the service's channel.
func (r *Redis) Subscribe(ctx context.Context) *redis.PubSub {
	return r.subscriber.Subscribe(ctx, r.Keys.Events)
}

// Do sends one command and waits for its answer, for about two timeouts at most and not beyond the life of ctx.
// NeverSent and WithoutEffect tell of an error whether the command can have had, or can still have, an effect.
func (r *Redis) Do(ctx context.Context, args ...any) (any, error) {
	return r.ask(ctx, nil, args...)
}

func (r *Redis) ask(ctx context.Context, sc *Script, args ...any) (any, error) {
	reply, err := r.batches.do(ctx, sc, args...)
	if err != nil && !Answered(err) && r.Unanswered != nil {
		r.Unanswered()
	}
	return reply, err
}

// Run runs a script. If Redis does not know it, it gets the script's source.
func (r *Redis) Run(ctx context.Context, sc *Script, keys []string, args ...any) (reply any, err error) {
	cmd := make([]any, 0, 3+len(keys)+len(args))
	cmd = append(cmd, "evalsha", sc.SHA, len(keys))
	for _, k := range keys {
		cmd = append(cmd, k)
	}
	return r.ask(ctx, sc, append(cmd, args...)...)
}

// Call runs a script whose answer is an array with Redis' time in milliseconds at index nowAt, and observes it.
func (r *Redis) Call(ctx context.Context, sc *Script, nowAt int, keys []string, args ...any) ([]any, error) {
	sent := r.boot()
	reply, err := r.Run(ctx, sc, keys, args...)
	if err != nil {
		return nil, err
	}
	parts, ok := reply.([]any)
	if !ok || len(parts) <= nowAt {
		return nil, Unexpected(reply)
	}
	now, err := Integer(parts[nowAt])
	if err != nil {
		return nil, err
	}
	r.clock.observe(sent, r.boot(), FromMillis(now), time.Millisecond)
	return parts, nil
}

// Backoff is the wait between two tries of the same request. It is short at first, since most losses are a single
// packet or a reconnect.
func Backoff(try int) time.Duration { return min(50*time.Millisecond<<min(try, 6), 2*time.Second) }

// ClockCheckEvery is the longest single sleep of a wait for a Boottime: timers stand still in suspend.
const ClockCheckEvery = time.Second

// Outlast waits until a Boottime; false when BeginShutdown cut it short.
func (r *Redis) Outlast(boot time.Duration) bool {
	for d := boot - r.boot(); d > 0; d = boot - r.boot() {
		if !beat.Sleep(r.ending, min(d, ClockCheckEvery)) {
			return false
		}
	}
	return true
}

// GaveUp says that ctx has ended, and repeats the error of the last try.
func GaveUp(ctx context.Context, last error) error {
	if last == nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w (last try: %w)", context.Cause(ctx), last)
}
