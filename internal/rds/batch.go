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
	// maxHerd bounds how many calls one script answers: claims hold Redis for 1 to 2 ms then.
	maxHerd = 32
)

// call is one question, or one command that is no script.
type call struct {
	script *Script // nil = another command
	keys   []string
	args   []any // or the words of the other command
	done   chan struct{}
	answer any
	err    error
}

// request is a command for one call, or for several of the same script. No client sends it twice: some clients resend
// by themselves, whatever their MaxRetries, and would then report the second copy's refusal although the first may have
// run.
type request struct {
	*redis.Cmd
	calls []*call
}

// NoRetry tells the client not to resend.
func (*request) NoRetry() bool { return true }

// do makes one call: see Redis.Do.
func (b *batcher) do(ctx context.Context, sc *Script, keys []string, args []any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, &notSentError{err}
	}
	c := &call{script: sc, keys: keys, args: args, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	if b.flying < maxFlying {
		b.flying++
		go b.flush()
	}
	b.mu.Unlock()
	select {
	case <-c.done:
		return c.answer, c.err
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
			c.err = &notSentError{err}
		}
	} else {
		requests := join(batch)
		b.exchange(ctx, rdb, requests, false)
		// Redis, which was restarted or flushed, has not run what it does not know.
		unknown := slices.DeleteFunc(requests, func(r *request) bool {
			return r.calls[0].script == nil || !refusedWith(r.Err(), "NOSCRIPT")
		})
		if len(unknown) > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
			defer cancel()
			b.exchange(ctx, rdb, unknown, true)
		}
	}
	for _, c := range batch {
		close(c.done)
	}
}

// join puts calls of one script together: that is a tenth less work, for Redis and for its client.
func join(batch []*call) (requests []*request) {
	open := map[*Script]*request{}
	for _, c := range batch {
		r := open[c.script]
		if r == nil || c.script == nil || len(r.calls) == maxHerd {
			r = &request{}
			open[c.script], requests = r, append(requests, r)
		}
		r.calls = append(r.calls, c)
	}
	return requests
}

// exchange sends requests in one round trip, and gives each call its answer. With sources, each brings its script's
// source, by which Redis knows the script from then on.
func (b *batcher) exchange(ctx context.Context, rdb redis.UniversalClient, requests []*request, sources bool) {
	pipe, promises := rdb.Pipeline(), false
	for _, r := range requests {
		sc, words := r.words()
		if sources {
			words[0], words[1] = "eval", sc.Source
		}
		r.Cmd = redis.NewCmd(ctx, words...)
		_ = pipe.Process(ctx, r)
		promises = promises || b.replicas > 0 && sc != nil && sc.confirm != Unconfirmed
	}
	// A promise is believed only if enough replicas have it. WAIT counts what its own connection wrote before it, and
	// so closes the same pipeline.
	patience := b.timeout / 2 // the other half is for the way there and back
	wait := &request{Cmd: redis.NewCmd(ctx, "wait", b.replicas, patience.Milliseconds())}
	if promises {
		_ = pipe.Process(ctx, wait)
	}
	_, failed := pipe.Exec(ctx)
	have, err := wait.Int()
	for _, r := range requests {
		if r.Err() == nil && r.Val() == nil {
			r.SetErr(failed) // go-redis says so of none if Redis refuses the connection
		}
		r.deliver(promises && (err != nil || have < b.replicas))
	}
}

// words are the command of a request, and the script that it runs; nil = none.
func (r *request) words() (*Script, []any) {
	first := r.calls[0]
	sc, keys, args := first.script, first.keys, first.args
	switch {
	case sc == nil:
		return nil, args
	case len(r.calls) > 1:
		sc, keys, args = sc.Herd, nil, nil
		for _, c := range r.calls {
			keys = append(keys, c.keys...)
			args = append(append(args, len(c.keys), len(c.args)), c.args...)
		}
	}
	words := append(make([]any, 0, 3+len(keys)+len(args)), "evalsha", sc.SHA, len(keys))
	for _, k := range keys {
		words = append(words, k)
	}
	return sc, append(words, args...)
}

// deliver gives each call its answer, if that is no promise or not in doubt.
func (r *request) deliver(doubt bool) {
	answer, err := r.Result()
	answers, _ := answer.([]any)
	if len(r.calls) == 1 {
		answers = []any{answer}
	} else if err == nil && len(answers) != len(r.calls) {
		err = Unexpected(answer)
	}
	for i, c := range r.calls {
		if c.err = err; err == nil {
			c.answer = answers[i]
			c.err, _ = c.answer.(error)
		}
		if doubt && c.script.promised(c.answer) {
			c.err = errUnconfirmed
		}
	}
}

// server is the server that holds the service's keys. In a Cluster it is the master of their slot: its clock and its
// replicas count.
func (b *batcher) server(ctx context.Context) (redis.UniversalClient, error) {
	c, ok := b.client.(*redis.ClusterClient)
	if !ok {
		return b.client, nil
	}
	master, err := c.MasterForKey(ctx, b.key)
	if err != nil {
		return nil, err
	}
	return master, nil
}

// errUnconfirmed replaces an answer that a failover could still forget. It is no answer: the caller asks the same
// question again, which prolongs a claim and counts its replicas anew.
var errUnconfirmed = errors.New("too few replicas of Redis have confirmed it")
