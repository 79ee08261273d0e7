package main

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/embedded"
)

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
