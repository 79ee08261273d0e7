package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/embedded"
	"github.com/solotick/solotick/lock"
)

// embeddedAddr is where the embedded store is; tests have their own, so that they never meet one in use.
var embeddedAddr = embedded.Addr

// redisURL is the flag's or else the table's. There is no default: a replica alone would fire every tick.
func (a *app) redisURL(t *config.Table) (string, error) {
	if a.redis != "" {
		return a.redis, nil
	}
	if t.Redis.URL != "" {
		return t.Redis.URL, nil
	}
	return "", &failure{code: exitCannot, err: errors.New("no Redis is configured, and without one every replica would fire every tick"),
		hint: "add to the table `redis: {url: redis://HOST:6379/0}`, or `redis: {url: embedded}` to try it out on one machine"}
}

// connect makes a client; nothing is sent yet.
func connect(c config.Redis, address string) (redis.UniversalClient, error) {
	o := redis.UniversalOptions{}
	if address == config.Embedded {
		o.Addrs = []string{embeddedAddr}
		return lock.NewClient(o, c.Timeout), nil
	}
	u, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	o.Addrs, o.DB, o.Username, o.Password, o.TLSConfig = []string{u.Addr}, u.DB, u.Username, u.Password, u.TLSConfig
	if c.Username != "" {
		o.Username = c.Username
	}
	if c.PasswordFile != "" {
		user := o.Username
		o.CredentialsProviderContext = func(context.Context) (string, string, error) {
			password, err := os.ReadFile(c.PasswordFile)
			return user, strings.TrimRight(string(password), "\r\n"), err
		}
	}
	if c.TLS != nil {
		if u.TLSConfig == nil { // a password must not go out in the clear because a flag took the URL's place
			return nil, &failure{code: exitCannot, err: errors.New("the table has redis.tls, and the Redis URL does not ask for TLS"),
				hint: "write rediss:// to encrypt the connection"}
		}
		if o.TLSConfig, err = tlsConfig(c.TLS, o.TLSConfig); err != nil {
			return nil, &failure{code: exitCannot, err: fmt.Errorf("setting up TLS for Redis: %w", err)}
		}
	}
	return lock.NewClient(o, c.Timeout), nil
}

// parseURL reads a Redis URL, without a word of it in the error: it may hold a password. The table's own was checked
// when it was loaded.
func parseURL(address string) (*redis.Options, error) {
	u, err := url.Parse(address)
	if err == nil && u.Scheme != "unix" && u.RawQuery != "" {
		return nil, &failure{code: exitCannot, err: errors.New("the Redis URL has options behind ?, which have no effect"),
			hint: "the keys under redis in the table take their place: timeout, username, tls"}
	}
	o, err := redis.ParseURL(address)
	if err != nil || u == nil {
		return nil, &failure{code: exitCannot, err: fmt.Errorf("the Redis URL of --redis or %s cannot be read", redisVariable),
			hint: "it looks like redis://HOST:6379/0, rediss://… for TLS, unix:///run/redis.sock?db=0, or embedded; " +
				"in a password write special characters as %2F"}
	}
	return o, nil
}

func tlsConfig(c *config.TLS, from *tls.Config) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if t.ServerName == "" {
		t.ServerName = from.ServerName
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, err
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", c.CAFile)
		}
	}
	if c.CertFile != "" {
		// Read at every handshake, so that a renewed certificate works; and once now, so that a wrong name shows.
		load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
			return &pair, err
		}
		if _, err := load(nil); err != nil {
			return nil, err
		}
		t.GetClientCertificate = load
	}
	return t, nil
}
