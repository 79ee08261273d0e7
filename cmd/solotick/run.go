package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/embedded"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar"
	"github.com/solotick/solotick/sidecar/admin"
	"github.com/solotick/solotick/sidecar/execute/command"
	"github.com/solotick/solotick/sidecar/notify"
	"github.com/solotick/solotick/sidecar/service"
)

func (a *app) runCommand() *cobra.Command {
	var observe bool
	c := &cobra.Command{
		Use:   "run",
		Short: "Run one replica: claim ticks in Redis and run their jobs",
		Long: `Run one replica: at each tick of the table, try to claim it in Redis, and run the job if that works.

The table is reloaded when its file changes, and at SIGHUP; a table with problems changes nothing. With --state-dir, the
replica keeps a copy of the table in force in that directory. If it starts again with the same directory while the table
has problems, it goes on with the copy, and says so in its log, health and status. Without a copy, it refuses to start;
with --start-anyway, it serves its endpoints, fires nothing, logs an error each minute, and begins with a good table.

A replica that is killed and started again in the same place takes over the runs that it left at once, and not only when
their leases are over. The place is the directory of --state-dir; without it, a directory of the service and the
replica's name below $XDG_RUNTIME_DIR/solotick or /run/solotick. Give each replica a directory of its own.

With --observe, the replica takes ticks as ever, but calls no job and sends no pings: run it so beside the old cron, and
see in history, status and metrics what it would have fired. Start all replicas of the service with it, or none: a tick
that an observing replica takes is not fired by the others.

For several replicas on one machine, give each free ports: --listen 127.0.0.1:0 --admin 127.0.0.1:0. Drain such a
replica with drain --admin and the address that it logs.

On SIGTERM and SIGINT the replica takes no new ticks, and running jobs get the table's shutdownGrace to end. A second
signal ends it at once. A SIGTERM within one second of another SIGTERM is ignored.

A table with redis.url: embedded is for trying out on one machine. For it the log begins at level debug, so that each
replica also says which ticks another one has fired.`,
		Example: `  solotick run -c table.yaml
  solotick run -c table.yaml --redis redis://127.0.0.1:6379/0 --replica one
  solotick run -c table.yaml --replica two --listen 127.0.0.1:0 --admin 127.0.0.1:0
  solotick run -c table.yaml --observe`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return a.run(c, observe) },
	}
	f := c.Flags()
	a.replicaFlag(c)
	a.addresses.flags(c)
	f.StringVar(&a.logFormat, "log-format", "text", "`format` of the log: text or json")
	f.StringVar(&a.logLevel, "log-level", "info", "lowest `level` that is logged: debug, info, warn or error")
	offer(c, "log-format", "text", "json")
	offer(c, "log-level", "debug", "info", "warn", "error")
	f.BoolVar(&observe, "observe", false, "take the ticks of all jobs, but call none")
	f.BoolVar(&a.anyway, "start-anyway", false, "start with a broken table, too: fire nothing until it is mended")
	f.StringVar((*string)(&a.state), "state-dir", os.Getenv(stateVariable),
		"`directory` of this replica for what survives restarts: the last good table (env SOLOTICK_STATE_DIR)")
	return c
}

// run runs one replica, which calls no job if it only observes.
func (a *app) run(c *cobra.Command, observe bool) error {
	if a.config == standardInput {
		return usage("solotick run -c table.yaml",
			"run needs a file with the table: it reads the file again when that changes")
	}
	log, err := a.logger()
	if err != nil {
		return err
	}
	useLittle(containerMemory("/"))
	t, source, broken, err := a.tableToRun(log)
	if err != nil {
		return err
	}
	warn(log, t)
	address, err := a.redisURL(t)
	if err != nil {
		return err
	}
	if (t.Redis.URL == config.Embedded || address == config.Embedded) && !c.Flag("log-level").Changed {
		// Such a table is for trying out. At level debug the other replicas, too, say what became of a tick.
		a.logLevel = "debug"
		if log, err = a.logger(); err != nil {
			return err
		}
	}
	replica, err := a.replicaName(address == config.Embedded)
	if err != nil {
		return err
	}
	replica, free := a.ownName(replica, t.Service)
	defer free()
	process := uuid.NewString()
	dead, place := a.holdInstance(t.Service, replica, process, log)
	defer place.Close()
	if broken != nil && a.state == "" && t.MaxRunning >= 0 { // the last good table is of the process in the place
		return a.refused(broken)
	}

	ctx, end, stop := a.signals(log)
	defer stop()
	var background sync.WaitGroup
	defer background.Wait()
	// The store, the listeners and the pings outlive ctx: the replica needs them until its runs have ended.
	serving, served := context.WithCancel(context.Background())
	defer served()

	client, at, err := a.store(serving, &background, t.Redis, address, log)
	if err != nil {
		return err
	}
	defer client.Close()
	redis.SetLogger(redisLog{log})
	if os.Getpid() == 1 {
		background.Go(func() { command.Reap(serving, log) })
	}
	store, err := service.New(client, t.Service,
		lock.Options{Timeout: t.Redis.Timeout, WaitReplicas: t.Redis.WaitReplicas, History: t.Redis.History})
	if err != nil {
		return &failure{code: exitCannot, err: err}
	}
	if err := mayJoin(serving, store, replica, log); err != nil {
		return err
	}
	spans := spansTo(t.Service, replica, log)
	if spans != nil {
		background.Go(func() { spans.Run(serving) })
	}
	pinger := notify.New(log, buildVersion())
	background.Go(func() { _ = pinger.Run(serving) }) // Run never fails
	health, err := listen(t.Listen, "listen", servesHealth)
	if err != nil {
		return err
	}
	own, err := listen(t.Admin, "admin", servesAdmin)
	if err != nil {
		return err
	}
	callbacks := callbacksAt(own)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if observe {
		log.Warn("observing: ticks are taken, and no job is called")
	}
	s, err := sidecar.New(sidecar.Options{Table: t, Store: store, Redis: at, Replica: replica, Version: buildVersion(),
		Environment: os.Getenv(environVariable), Process: process, Died: dead, Log: log, Registerer: registry,
		Executor: executor(log, own, callbacks), Observe: observe, Prober: prober, Notify: pinger, Spans: spans})
	if err != nil {
		return &failure{code: exitCannot, err: err}
	}
	if broken != nil {
		if t.MaxRunning >= 0 {
			a.tellLastGood(t, log)
		}
		_ = s.Reload(nil, broken) // Reload logs the error; the replica goes on
	} else {
		a.state.keep(source, log)
	}
	serve(serving, &background, health, servesHealth, admin.Server(s, registry, log), log)
	api := admin.APIServer(admin.Options{Replica: s, Name: replica, Version: buildVersion(), Redis: at, Store: store,
		Callbacks: callbacks, Log: log})
	serve(serving, &background, own, servesAdmin, api, log)
	a.reloadWhenTold(serving, &background, s, source, end, log)
	background.Go(func() { returnMemory(serving) })
	if err := s.Run(ctx); err != nil {
		return &failure{code: exitCannot, err: err}
	}
	_ = place.Leave() // or the file stays, and names a process of which no run is left
	log.Info("stopped")
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return &failure{code: exitProblem, err: cause}
	}
	return nil
}

// mayJoin refuses to take the ticks of another environment: some of its replicas are there, and none of this one's. If
// Redis cannot be asked, or both begin at once, the replicas warn of each other.
func mayJoin(ctx context.Context, store *service.Store, replica string, log *slog.Logger) error {
	own, theirs := os.Getenv(environVariable), ""
	all, err := store.Heartbeats(ctx)
	if errors.Is(err, service.ErrTooMany) {
		log.Warn("the heartbeats of the replicas could not be read", "err", err)
	}
	now, _ := store.Now()
	for _, r := range all {
		switch {
		case r.Name == replica && r.Environment == own, r.Ready == service.Draining,
			now.Sub(r.Seen) > service.HeartbeatTimeout:
			// its predecessor, or one that is soon gone
		case r.Environment == own:
			return nil
		case r.Environment != "": // those that name none are being replaced by those that do
			theirs = r.Environment
		}
	}
	if theirs == "" {
		return nil
	}
	return cannot("use another service name or database, or join them with "+environVariable+"="+theirs,
		"this replica is of environment %q, and would take the ticks of %q", own, theirs)
}

// passwordPatience is how long the health endpoints wait for the first password, so that a replica whose command hangs
// is not taken for dead. Most commands are faster, and the first request to Redis then has the password.
const passwordPatience = time.Second

// store returns a client for Redis, and the place of Redis in words. It serves or joins the embedded store first, if
// that is the address.
func (a *app) store(ctx context.Context, background *sync.WaitGroup, c config.Redis, address string,
	log *slog.Logger) (redis.UniversalClient, string, error) {
	if address != config.Embedded {
		client, err := connect(ctx, c, address, passwordPatience, log)
		return client, where(c, address), err
	}
	at, err := serveEmbedded(ctx, background, log)
	if err != nil {
		return nil, "", err
	}
	client, err := connectEmbedded(c, at)
	return client, at, err
}

// serveEmbedded serves or joins the embedded store until ctx ends. It returns the store's address.
func serveEmbedded(ctx context.Context, background *sync.WaitGroup, log *slog.Logger) (at string, err error) {
	store, err := embedded.Open(embeddedAddrs...)
	if err != nil {
		return "", &failure{exitCannot, err, "end the other program, or name a Redis with --redis redis://HOST:6379/0"}
	}
	at = store.At()
	if usual := embeddedAddrs[0]; at != usual && store.Serving() {
		log.Info("another program uses "+usual+", so the embedded store takes another port", "addr", at)
	}
	if store.Serving() {
		log.Info("serving the embedded store, for trying out on one machine", "addr", at)
	} else {
		log.Info("joined the embedded store of another process", "addr", at)
	}
	background.Go(func() {
		store.Run(ctx, func() {
			log.Info("serving the embedded store from now on: the process that did has ended", "addr", at)
		})
	})
	return at, nil
}

// sameSignal is the time after a SIGTERM in which a second one counts as the same. timeout(1) and tini -g signal a
// process and its group, so it arrives twice. A second SIGINT always counts: it is a second Ctrl-C.
const sameSignal = time.Second

// signals returns a context that ends at the first signal, or by end. The second signal ends the process.
func (a *app) signals(log *slog.Logger) (ctx context.Context, end context.CancelCauseFunc, stop func()) {
	ctx, end = context.WithCancelCause(context.Background())
	got := make(chan os.Signal, 2)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		first, ok := <-got
		if !ok {
			return
		}
		log.Info("stopping; a second signal ends at once", "signal", first.String())
		end(nil)
		if s, ok := another(got, first); ok {
			log.Warn("ending at once", "signal", s.String())
			os.Exit(exitProblem)
		}
	}()
	return ctx, end, func() {
		signal.Stop(got)
		close(got)
		end(nil)
	}
}

// another waits for a second signal. It ignores a SIGTERM that repeats the first one within sameSignal. ok is false at
// the end.
func another(got <-chan os.Signal, first os.Signal) (s os.Signal, ok bool) {
	came := time.Now()
	for s = range got {
		if first != syscall.SIGTERM || s != first || time.Since(came) >= sameSignal {
			return s, true
		}
	}
	return nil, false
}

// replicaName returns the name of the flag, or of the pod, or of the host. With the embedded store several processes
// share one host, so the pid is added to its name. For other stores see ownName.
func (a *app) replicaName(oneMachine bool) (string, error) {
	name := cmp.Or(a.replica, os.Getenv("POD_NAME"))
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return "", cannot("--replica NAME", "naming the replica: %w", err)
		}
		name = host
		if oneMachine {
			name = fmt.Sprintf("%s-%d", host, os.Getpid())
		}
	}
	if len(name) > 253 || strings.ContainsFunc(name, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }) {
		return "", usage("--replica NAME", "--replica %q is not one word of at most 253 bytes", name)
	}
	return name, nil
}

// ownName makes a name taken from the host unique on it. The first process of the service has the host's name until it
// calls free; the others add their pid. Names of the flag or the pod stay as they are.
func (a *app) ownName(name, service string) (own string, free func()) {
	if a.replica != "" || os.Getenv("POD_NAME") != "" {
		return name, func() {}
	}
	if free, ok := takeName(name, service); ok {
		return name, free
	}
	return fmt.Sprintf("%s-%d", name, os.Getpid()), func() {}
}

// The contents of the two listeners, for log lines and errors.
const (
	servesHealth = "/metrics /healthz /readyz"
	servesAdmin  = "the status page and the API"

	servesReports = "the reports of apps" // for solotick try
)

// listen listens on the address that the table has under key. An empty address gives no listener.
func listen(addr, key, what string) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := admin.Listen(addr)
	if err != nil {
		return nil, cannot("set `"+key+"` in the table to another address (or --"+key+" of run), "+
			`or to "" to switch it off`, "serving %s: %w", what, err)
	}
	return l, nil
}

// serve serves until ctx ends, if there is a listener.
func serve(ctx context.Context, background *sync.WaitGroup, l net.Listener, what string, server *http.Server,
	log *slog.Logger) {
	if l == nil {
		return
	}
	log.Info("serving "+what, "addr", l.Addr().String())
	background.Go(func() {
		if err := server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Error("serving "+what, "err", err)
		}
	})
	background.Go(func() {
		<-ctx.Done()
		bounded, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(bounded) != nil {
			_ = server.Close() // end hanging requests
		}
	})
}
