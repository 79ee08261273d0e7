package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/credentials"
	"github.com/solotick/solotick/internal/embedded"
	"github.com/solotick/solotick/lock"
)

// embeddedAddrs are the addresses at which the embedded store can be. Tests set others, so that they never meet a store
// in use.
var embeddedAddrs = embedded.Addrs

// redisURL returns the URL of the flag or else of the table; "" means the table's Sentinels or Cluster. There is no
// default: each replica would connect to a Redis of its own and fire every tick.
func (a *app) redisURL(t *config.Table) (string, error) {
	switch {
	case a.redis != "":
		return a.redis, nil
	case t.Redis.URL != "" || t.Redis.Sentinel != nil || t.Redis.Cluster != nil:
		return t.Redis.URL, nil
	}
	return "", cannot("add to the table `redis: {url: redis://HOST:6379/0}`, "+
		"or `redis: {url: embedded}` to try it out on one machine",
		"no Redis is configured, and without one every replica would fire every tick")
}

// connect makes a client for the address, or if it is "" for the table's Sentinels or Cluster. It sends nothing yet.
// While there is no new password, log says why. ctx ends a command that gets one; patience is how long that one is
// waited for here.
func connect(ctx context.Context, c config.Redis, address string, patience time.Duration,
	log *slog.Logger) (redis.UniversalClient, error) {
	if address == config.Embedded {
		return connectEmbedded(c, embedded.Find(embeddedAddrs...))
	}
	o, err := servers(c, address)
	if err != nil {
		return nil, err
	}
	o.Username = cmp.Or(c.Username, o.Username)
	if p := password(ctx, c, o.Username, patience, log); p != nil {
		o.StreamingCredentialsProvider = p
	}
	if c.TLS != nil {
		if o.TLSConfig, err = tlsConfig(c.TLS, o.TLSConfig); err != nil {
			return nil, cannot("", "setting up TLS for Redis: %w", err)
		}
	}
	return lock.NewClient(o, c.Timeout), nil
}

// connectEmbedded makes a client for the embedded store at an address.
func connectEmbedded(c config.Redis, at string) (redis.UniversalClient, error) {
	if c.WaitReplicas > 0 {
		return nil, cannot("remove waitReplicas to try the table out on one machine",
			"the table has redis.waitReplicas, and the embedded store has no replicas")
	}
	return lock.NewClient(redis.UniversalOptions{Addrs: []string{at}}, c.Timeout), nil
}

// servers returns the client options for the address, or if it is "" for the table's Sentinels or Cluster.
func servers(c config.Redis, address string) (redis.UniversalOptions, error) {
	o := redis.UniversalOptions{}
	switch {
	case address != "":
		u, err := parseURL(address)
		if err != nil {
			return o, err
		}
		if c.TLS != nil && u.TLSConfig == nil { // otherwise --redis would send the table's password unencrypted
			return o, cannot("write rediss:// to encrypt the connection",
				"the table has redis.tls, and the Redis URL does not ask for TLS")
		}
		o.Addrs, o.DB, o.Username, o.Password, o.TLSConfig = []string{u.Addr}, u.DB, u.Username, u.Password, u.TLSConfig
		return o, nil
	case c.Cluster != nil:
		o.Addrs, o.IsClusterMode = c.Cluster.Addrs, true
	default:
		o.Addrs, o.MasterName, o.SentinelUsername = c.Sentinel.Addrs, c.Sentinel.Master, c.Sentinel.Username
		if c.Sentinel.PasswordFile != "" {
			var err error
			if o.SentinelPassword, err = credentials.Password(c.Sentinel.PasswordFile, nil).Now(); err != nil {
				return o, cannot("", "reading the password of the Sentinels: %w", err)
			}
		}
	}
	if c.TLS != nil {
		o.TLSConfig = &tls.Config{} // without a name: each address has its own
	}
	return o, nil
}

// parseURL reads a Redis URL. The error repeats nothing of it, because it may hold a password. A URL of --redis must
// pass the table's check too: go-redis would read one without a host, as an empty variable makes it, as localhost.
func parseURL(address string) (*redis.Options, error) {
	u, err := url.Parse(address)
	if err == nil && u.Scheme != "unix" && u.RawQuery != "" {
		return nil, cannot("use the keys under redis in the table instead: timeout, username, tls",
			"the Redis URL has options after ?, which have no effect")
	}
	if why, _ := config.CheckRedisURL(address); why != "" {
		return nil, cannot("it looks like redis://HOST:6379/0, rediss://… for TLS, unix:///run/redis.sock?db=0, "+
			"or embedded; in a password write special characters as %2F",
			"the Redis URL of --redis or %s cannot be read: %s", redisVariable, why)
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, cannot("", "the Redis URL cannot be read")
	}
	return o, nil
}

// tlsConfig adds the table's files and server name to the TLS settings of the address. The client's certificate is read
// at every handshake, so that a renewed one works. All files are read now, so that a wrong file name shows.
func tlsConfig(c *config.TLS, from *tls.Config) (*tls.Config, error) {
	t, err := credentials.NewTLS(*c, nil).Config(context.Background())
	if err == nil && t.ServerName == "" {
		t.ServerName = from.ServerName
	}
	return t, err
}

// redisLog receives the lines that the Redis client would write to standard error, and logs them at level debug.
// Whatever matters also comes back as an error, and is logged as one.
type redisLog struct{ log *slog.Logger }

// Printf implements the client's logger.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client", "says", fmt.Sprintf(format, v...))
	}
}

// where names the place of Redis, as the address or else the table has it, without a user or password.
func where(c config.Redis, address string) string {
	switch {
	case address == config.Embedded:
		return embedded.Find(embeddedAddrs...)
	case address != "":
		u, err := url.Parse(address)
		if err != nil {
			return ""
		}
		if u.Scheme == "unix" {
			return u.Path
		}
		return u.Host
	case c.Cluster != nil:
		return "Cluster " + strings.Join(c.Cluster.Addrs, ", ")
	case c.Sentinel != nil:
		return "master " + c.Sentinel.Master + " of Sentinels " + strings.Join(c.Sentinel.Addrs, ", ")
	}
	return ""
}

// warnOfPassword warns of a password in --redis. Only the same user can see one in an environment variable.
func (a *app) warnOfPassword(c *cobra.Command) {
	u, err := url.Parse(a.redis)
	if flag := c.Flag("redis"); err != nil || flag == nil || !flag.Changed {
		return
	}
	if password, _ := u.User.Password(); password == "" {
		return
	}
	const shown = "every user of this machine can read the password in --redis in the list of processes: " +
		"set " + redisVariable + ", or redis.passwordFile in the table"
	if log, err := a.logger(); err == nil && c.Name() == "run" {
		log.Warn(shown)
		return
	}
	fmt.Fprintln(a.err, "warning: "+shown)
}
