package lock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// burst sends what is asked at the same moment as one pipeline: a thousand jobs at one tick are a handful of round
// trips. A lone call goes out at once; calls that come while the batches are under way wait for the next one. Batches
// fly on goroutines of their own, which end with the queue: a caller whose context ends, a keeper whose trust is over
// say, must not be held by a batch that waits for Redis, and a sidecar at rest keeps no goroutine.
type burst struct {
	rdb     redis.UniversalClient
	timeout time.Duration

	mu      sync.Mutex
	waiting []*call
	flying  int
}

const (
	// maxFlying batches at once: one that is being answered and one that is being written.
	maxFlying = 2
	// maxBatch bounds a pipeline, so that a lease's renewal never waits behind thousands of claims.
	maxBatch = 200
)

type call struct {
	cmd  once
	done chan struct{}
}

// once is a command that no client sends twice: a ClusterClient resends by itself, whatever its MaxRetries, and would
// then report the second copy's refusal although the first may have run.
type once struct{ *redis.Cmd }

// NoRetry is what the client asks before it resends.
func (once) NoRetry() bool { return true }

// do sends one command and waits for its answer, for about two timeouts at most and not beyond the life of ctx. An error
// says with neverSent and notRun whether the command can have had, or can still have, an effect.
func (b *burst) do(ctx context.Context, args ...any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, &unsent{err}
	}
	c := &call{cmd: once{redis.NewCmd(ctx, args...)}, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	fly := b.flying < maxFlying
	if fly {
		b.flying++
	}
	b.mu.Unlock()
	if fly {
		go b.fly()
	}
	select {
	case <-c.done:
		return c.cmd.Result()
	case <-ctx.Done():
		return nil, &underWay{context.Cause(ctx)}
	}
}

// fly sends batch after batch until nothing waits.
func (b *burst) fly() {
	for batch := b.next(); len(batch) > 0; batch = b.next() {
		b.send(batch)
	}
}

// next takes the next batch, or, when there is none, gives back the place of the goroutine that asks.
func (b *burst) next() []*call {
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

func (b *burst) send(batch []*call) {
	// The batch carries calls of many contexts, so none of them governs it.
	ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
	defer cancel()
	if len(batch) == 1 {
		_ = b.rdb.Process(ctx, batch[0].cmd)
	} else {
		pipe := b.rdb.Pipeline()
		for _, c := range batch {
			_ = pipe.Process(ctx, c.cmd)
		}
		_, _ = pipe.Exec(ctx) // every command holds its own error
	}
	for _, c := range batch {
		close(c.done)
	}
}
