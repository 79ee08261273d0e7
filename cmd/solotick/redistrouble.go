package main

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/diagnosis"
)

// where says where Redis is, at the address or else in the table, without a word of a user or a password.
func where(c config.Redis, address string) string {
	switch {
	case address == config.Embedded:
		return embeddedAddr
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

// unreachable is the failure of the first request to Redis, which says whether it is of use at all.
func unreachable(where string, err error) *failure {
	d := diagnosis.Of(err)
	redis := "Redis (" + where + ")"
	return &failure{code: exitCannot, err: fmt.Errorf("%s %s: %s", redis, d.Says, d.Reason), hint: d.Hint}
}

// warnOfPassword warns of a password in --redis. A variable of the environment is seen by the same user alone.
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
