package main

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/execute/call"
	"github.com/solotick/solotick/sidecar/execute/command"
)

// executor makes what runs a job. A command gets this process' environment below what the table sets, without the Redis
// URL: its password is not the jobs' business. admin is where the API listens, nil for nowhere: it is not called.
func executor(log *slog.Logger, admin net.Listener) func(config.Job) execute.Executor {
	var own netip.AddrPort
	if admin != nil {
		own = admin.Addr().(*net.TCPAddr).AddrPort()
	}
	env := environment()
	return func(c config.Job) execute.Executor {
		if c.HTTP != nil {
			return call.New(*c.HTTP, call.Options{AllowRemote: c.AllowRemote, Admin: own, Version: buildVersion()})
		}
		return command.New(*c.Exec, command.Options{Log: log, Env: env, Urgent: lockLost, Resources: c.Resources})
	}
}

// environment is this process' without the Redis URL.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, redisVariable+"=") })
}

// prober makes what asks the app whether it is ready.
func prober(c config.Ready) sidecar.Prober {
	if len(c.Exec) > 0 {
		return command.NewReady(c, environment())
	}
	return call.NewReady(c, buildVersion())
}

// lockLost tells whether a run is cancelled because another may begin soon.
func lockLost(cause error) bool { return errors.Is(cause, lock.ErrLost) }
