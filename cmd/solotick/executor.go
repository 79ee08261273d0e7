package main

import (
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/execute/call"
	"github.com/solotick/solotick/sidecar/execute/command"
)

// executor returns the function that makes a job's executor. A command gets this process' environment, overridden by
// what the table sets, and without the Redis URL: jobs must not see its password. Jobs refuse to call admin, the
// listener of the API; nil means that there is none. callbacks are the runs on which apps report there, or nil.
func executor(log *slog.Logger, admin net.Listener, callbacks *callback.Runs) func(config.Job) execute.Executor {
	var own netip.AddrPort
	if admin != nil {
		own = admin.Addr().(*net.TCPAddr).AddrPort()
	}
	env := environment()
	servers := &call.Servers{}
	return func(c config.Job) execute.Executor {
		if c.HTTP != nil {
			return call.New(*c.HTTP, call.Options{AllowRemote: c.AllowRemote, Admin: own, Version: buildVersion(),
				Servers: servers, Callbacks: callbacks, Log: log.With("job", c.Name)})
		}
		return command.New(*c.Exec, command.Options{Log: log, Env: env})
	}
}

// callbacksAt are the runs on which apps report at the listener of the API; nil if there is none.
func callbacksAt(admin net.Listener) *callback.Runs {
	if admin == nil {
		return nil
	}
	return callback.New(admin.Addr().String())
}

// environment returns this process' environment without the Redis URL.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, redisVariable+"=") })
}

// prober returns the readiness check that the table configures.
func prober(c config.Ready) sidecar.Prober {
	if len(c.Exec) > 0 {
		return command.NewReady(c, environment())
	}
	return call.NewReady(c, buildVersion())
}
