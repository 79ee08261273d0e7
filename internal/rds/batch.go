package rds

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// batcher sends the calls of one moment as one pipeline: a thousand jobs at one tick are a handful of round trips. A
// lone call goes out at once; calls that come while the batches are under way wait for the next one. Batches fly on
// goroutines of their own, which end with the queue. So a batch that waits for Redis does not hold a caller whose
// context ends, for example a keeper whose trust is over. And a sidecar at rest keeps no goroutine.
type batcher struct {
	client   redis.UniversalClient
	key      string // any of the service's, which share a slot
	timeout  time.Duration
	replicas int // that must have a promise before the batcher believes it

	mu      sync.Mutex
	waiting []*call
	flying  int
}

const (
	// maxFlying is how many batches fly at once: Redis answers one while the batcher writes another.
	maxFlying = 2
	// maxBatch bounds a pipeline, so that a lease's renewal never waits behind thousands of claims.
	maxBatch = 200
)

type call struct {
	cmd    noRetryCmd
	script *Script // nil = another command
	done   chan struct{}
}

// noRetryCmd is a command that no client sends twice. Some clients resend by themselves, whatever their MaxRetries, and
// would then report the second copy's refusal although the first may have run.
type noRetryCmd struct{ *redis.Cmd }

// NoRetry tells the client not to resend.
func (noRetryCmd) NoRetry() bool { return true }

// do is Do, also for the call of a script. If Redis does not know it, do waits for three timeouts at most.
func (b *batcher) do(ctx context.Context, sc *Script, args ...any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, &notSentError{err}
	}
	c := &call{cmd: noRetryCmd{redis.NewCmd(ctx, args...)}, script: sc, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	start := b.flying < maxFlying
	if start {
		b.flying++
	}
	b.mu.Unlock()
	if start {
		go b.flush()
	}
	select {
	case <-c.done:
		return c.cmd.Result()
	case <-ctx.Done():
		return nil, &inFlightError{context.Cause(ctx)}
	}
}

// flush sends batch after batch until no call waits.
func (b *batcher) flush() {
	for batch := b.next(); len(batch) > 0; batch = b.next() {
		b.send(batch)
	}
}

// next takes the next batch. If there is none, it marks the calling goroutine as ended.
func (b *batcher) next() []*call {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), maxBatch)
	batch := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	if n == 0 {
		b.waiting = nil // the array of a large burst is not kept for ever
		b.flying--
	}
	return batch
}

func (b *batcher) send(batch []*call) {
	// The batch carries calls of many contexts, so none of these contexts governs it.
	ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
	defer cancel()
	if rdb, err := b.server(ctx); err != nil {
		for _, c := range batch {
			c.cmd.SetErr(&notSentError{err})
		}
	} else {
		b.exchange(ctx, rdb, batch)
		if again := withSources(batch); len(again) > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
			defer cancel()
			b.exchange(ctx, rdb, again)
		}
	}
	for _, c := range batch {
		close(c.done)
	}
}

// withSources returns what to send again of a batch: the calls of scripts that Redis did not know, and so did not run,
// because it was restarted or flushed. The first one of each script brings the script's source.
func withSources(batch []*call) (again []*call) {
	sent := map[*Script]bool{}
	for _, c := range batch {
		if c.script == nil || !refusedWith(c.cmd.Err(), "NOSCRIPT") {
			continue
		}
		words := slices.Clone(c.cmd.Args())
		if !sent[c.script] {
			sent[c.script], words[0], words[1] = true, "eval", c.script.Source
		}
		c.cmd = noRetryCmd{redis.NewCmd(context.Background(), words...)}
		again = append(again, c)
	}
	return again
}

// exchange sends a batch. Each call holds its own answer or error then.
func (b *batcher) exchange(ctx context.Context, rdb redis.UniversalClient, batch []*call) {
	switch {
	case b.replicas > 0 && slices.ContainsFunc(batch, (*call).promises):
		b.sendPromises(ctx, rdb, batch)
	case len(batch) == 1:
		_ = rdb.Process(ctx, batch[0].cmd)
	default:
		sendTogether(ctx, rdb, batch)
	}
}

// sendTogether sends a batch, and further commands after it, as one pipeline.
func sendTogether(ctx context.Context, rdb redis.UniversalClient, batch []*call, after ...redis.Cmder) {
	pipe := rdb.Pipeline()
	for _, c := range batch {
		_ = pipe.Process(ctx, c.cmd)
	}
	_ = pipe.BatchProcess(ctx, after...)
	_, err := pipe.Exec(ctx)
	for _, c := range batch {
		if c.cmd.Err() == nil && c.cmd.Val() == nil {
			c.cmd.SetErr(err) // go-redis says so of none of them if Redis refuses the connection
		}
	}
}

// server is the client for the server that has the keys: see Redis.Server.
func (b *batcher) server(ctx context.Context) (redis.UniversalClient, error) {
	c, ok := b.client.(*redis.ClusterClient)
	if !ok {
		return b.client, nil
	}
	return c.MasterForKey(ctx, b.key)
}

// sendPromises sends a batch with promises in it, and believes a promise only if enough replicas have it. WAIT counts
// what its own connection wrote before it, and so closes the same pipeline.
func (b *batcher) sendPromises(ctx context.Context, rdb redis.UniversalClient, batch []*call) {
	patience := b.timeout / 2 // the other half is for the way there and back
	wait := noRetryCmd{redis.NewCmd(ctx, "wait", b.replicas, patience.Milliseconds())}
	sendTogether(ctx, rdb, batch, wait)
	if have, err := wait.Int(); err == nil && have >= b.replicas {
		return
	}
	for _, c := range batch {
		if c.promised() {
			c.cmd.SetErr(errUnconfirmed)
		}
	}
}

// promises reports whether the call runs a script whose answer can be a promise.
func (c *call) promises() bool { return c.script != nil && c.script.confirm != Unconfirmed }

// promised reports whether the answer was a promise.
func (c *call) promised() bool { return c.promises() && c.script.promised(c.cmd.Val()) }

// errUnconfirmed replaces an answer that a failover could still forget. It is no answer: the caller asks the same
// question again, which prolongs a claim and counts its replicas anew.
var errUnconfirmed = errors.New("too few replicas of Redis have confirmed it")
