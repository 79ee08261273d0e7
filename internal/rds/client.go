package rds

import (
	"cmp"
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

// DefaultTimeout is how long one round trip to Redis may take if the caller sets no timeout.
const DefaultTimeout = 500 * time.Millisecond

// NewClient makes a client that meets the needs of the protocol: see lock.NewClient.
func NewClient(o redis.UniversalOptions, timeout time.Duration) redis.UniversalClient {
	password, _ := o.StreamingCredentialsProvider.(*Password)
	timeout = cmp.Or(timeout, DefaultTimeout)
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	o.ContextTimeoutEnabled = true
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout
	// The dial's timeout is shorter than that of the request that waits for it. If not, the error would only say that
	// time is up, and not which server did not answer.
	o.DialTimeout = timeout - timeout/8
	o.Dialer = resp.Guarded(dialer(o))
	// Batches share two connections, so the pool is for the other requests.
	o.PipelinePoolSize = -1
	o.ReadBufferSize, o.WriteBufferSize = 16<<10, 16<<10
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if o.StreamingCredentialsProvider != nil && o.MasterName != "" && !o.IsClusterMode {
		// go-redis would panic. Connections to the master of Sentinels get the password when they are opened. Redis
		// itself ends no connection because a password has changed.
		o.CredentialsProviderContext, o.StreamingCredentialsProvider = perConnect(o.StreamingCredentialsProvider), nil
	}
	client := redis.NewUniversalClient(&o)
	if password != nil {
		password.drive(client)
	}
	if c, ok := client.(*redis.ClusterClient); ok {
		c.OnNewNode(func(node *redis.Client) { node.AddHook(relearning(c)) })
	}
	return client
}

// dialer opens the connections of a client: with its own Dialer if it has one, else in go-redis' own way. Its error
// says that the connection was never open, so no request can be under way.
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
		if err != nil && !isDial(err) {
			err = &net.OpError{Op: "dial", Net: network,
				Err: fmt.Errorf("%w with %s: %w", resp.ErrHandshake, addr, err)}
		}
		return c, err
	}
}

// relearning makes a Cluster's client learn anew which node is master of which slots, when a node does not answer, or
// says that it is not the master. By itself the client does so once a minute, and a dead master would cost every tick
// until then. The requests by which the client learns do not count.
func relearning(cluster *redis.ClusterClient) watching {
	return watching{before: func() {}, after: func(ctx context.Context, name string, err error) {
		_, answer := errors.AsType[redis.Error](err)
		if err != nil && name != "cluster" && (!answer || refusedWith(err, "MOVED", "CLUSTERDOWN")) {
			cluster.ReloadState(ctx) // in the background, and no more often than the client allows
		}
	}}
}

// watching is told before and after each request of a client, those that open a connection included. A pipeline is one
// request, without a name.
type watching struct {
	before func()
	after  func(ctx context.Context, name string, err error)
}

// DialHook changes nothing.
func (watching) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook tells of a single request.
func (w watching) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		w.before()
		err := next(ctx, cmd)
		w.after(ctx, cmd.Name(), err)
		return err
	}
}

// ProcessPipelineHook tells of a pipeline.
func (w watching) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		w.before()
		err := next(ctx, cmds)
		w.after(ctx, "", err)
		return err
	}
}
