package rds

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/solotick/solotick/internal/resp"
)

// DefaultTimeout is how long one round trip to Redis may take where nothing else is said.
const DefaultTimeout = 500 * time.Millisecond

// NewClient makes a client as the protocol needs it: see lock.NewClient.
func NewClient(o redis.UniversalOptions, timeout time.Duration) redis.UniversalClient {
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	o.ContextTimeoutEnabled = true
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout
	// Shorter than the request that waits for it: else all that its error says is that time is up, and not what did not answer.
	o.DialTimeout = timeout - timeout/8
	o.Dialer = resp.Guarded(dialer(o))
	// Bursts share two connections, so the pool is for what is beside them.
	o.PipelinePoolSize = -1
	o.ReadBufferSize, o.WriteBufferSize = 16<<10, 16<<10
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewUniversalClient(&o)
	if c, ok := client.(*redis.ClusterClient); ok {
		c.OnNewNode(func(node *redis.Client) { node.AddHook(relearning{c}) })
	}
	return client
}

// dialer opens the connections of a client: by its own Dialer if it has one, else as go-redis itself would. An error says that
// the connection was never open, after which no request can be under way.
func dialer(o redis.UniversalOptions) resp.Dial {
	if o.Dialer != nil {
		return o.Dialer
	}
	plain := &net.Dialer{Timeout: o.DialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3}}
	if o.TLSConfig == nil {
		return plain.DialContext
	}
	secure := &tls.Dialer{NetDialer: plain, Config: o.TLSConfig}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := secure.DialContext(ctx, network, addr)
		var op *net.OpError
		if err != nil && !(errors.As(err, &op) && op.Op == "dial") {
			err = &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("%w with %s: %w", resp.ErrHandshake, addr, err)}
		}
		return c, err
	}
}

// relearning makes a Cluster's client learn anew which node is master of what when one does not answer, or says that it
// is not the one. By itself the client does so once a minute, for which a dead master would cost every tick.
type relearning struct{ cluster *redis.ClusterClient }

// DialHook changes nothing.
func (relearning) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook looks at the end of every single request; those by which the client learns are not repeated for their own.
func (r relearning) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() != "cluster" {
			r.after(ctx, err)
		}
		return err
	}
}

// ProcessPipelineHook looks at the end of every pipeline.
func (r relearning) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		r.after(ctx, err)
		return err
	}
}

func (r relearning) after(ctx context.Context, err error) {
	var answer redis.Error
	if err != nil && (!errors.As(err, &answer) || refusedWith(err, "MOVED", "CLUSTERDOWN")) {
		r.cluster.ReloadState(ctx) // on its own, and not more often than the client bears
	}
}

var errResends = errors.New("the Redis client resends by itself: set MaxRetries to -1 (see NewClient)")

// resends tells whether a client would repeat a request whose answer it missed.
func resends(rdb redis.UniversalClient) bool {
	c, ok := rdb.(*redis.Client)
	return ok && c.Options().MaxRetries > 0
}
