package lock

import (
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// DefaultTimeout is how long one round trip to Redis may take where nothing else is said.
const DefaultTimeout = 500 * time.Millisecond

// NewClient makes a client as the protocol needs it: no resends behind our back (a request that the client repeats by
// itself can arrive after its sender gave up), every wait bounded by timeout (0 = DefaultTimeout), small buffers.
// Everything else in o is kept.
func NewClient(o redis.UniversalOptions, timeout time.Duration) redis.UniversalClient {
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout, timeout
	// Bursts share two connections, so the pool is for what is beside them.
	o.PipelinePoolSize = -1
	o.ReadBufferSize, o.WriteBufferSize = 16<<10, 16<<10
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewUniversalClient(&o)
}

var errResends = errors.New("the Redis client resends by itself: set MaxRetries to -1 (see NewClient)")

// resends tells whether a client would repeat a request whose answer it missed.
func resends(rdb redis.UniversalClient) bool {
	c, ok := rdb.(*redis.Client)
	return ok && c.Options().MaxRetries > 0
}
