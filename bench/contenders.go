package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// job is one row of a contender's table.
type job struct {
	Name   string `json:"name"`
	Every  int    `json:"every"`  // seconds, a divisor of 60
	Offset int    `json:"offset"` // of its ticks, in seconds
	URL    string `json:"url"`
	// Schedule is a cron expression instead of Every, for Solotick and gocron; "" = Every.
	Schedule string `json:"schedule"`
	// Missed is Solotick's key of that name: all fires each tick, if late, as those contenders do it that can. "" is
	// its default, the newest.
	Missed string `json:"-"`
}

// seat is what one replica is started with, and started again after a crash.
type seat struct {
	name  string
	redis string // host:port
	jobs  []job
	skew  time.Duration // of its wall clock
	dir   string        // takes table, log and state
}

// contender is one of those that are compared.
type contender struct {
	key  string // in figures and file names
	name string // in the document
	// settings are those that it runs with, in the words of the document.
	settings string
	// start starts a replica; ready, if it is not nil, waits until the replica takes ticks.
	start func(*bench, seat) (r replica, ready func() error, err error)
	// missing tells what this machine lacks to run it; "" is nothing.
	missing func(*bench) string
	asks    bool // it asks Solotick for each tick
}

// replica is the process of a seat, or a sidecar and the app beside it, which meet each fault together.
type replica []*rig.Process

// Kill ends all of it as a crash does.
func (r replica) Kill() {
	_ = r.Signal(syscall.SIGKILL)
	for _, p := range r {
		p.Kill()
	}
}

// Signal sends each process a signal.
func (r replica) Signal(s syscall.Signal) (err error) {
	for _, p := range r {
		err = errors.Join(err, p.Signal(s))
	}
	return err
}

var (
	solotick = contender{key: "solotick", name: "Solotick", start: (*bench).startSolotick,
		settings: "defaults; under faults, except for the last row, `missed: all`: " +
			"a tick that could not be fired in time is fired late"}
	redsync = peer("redsync", "gocron + redsync", "one key for each job, one try; released when the job ends")
	// contenders are all of them, as they stand in tables.
	contenders = []contender{
		solotick, redsync,
		peer("held", "the same, lock held for 1 s",
			"released one second after the lock was taken, or when the job ends if that is later"),
		peer("keyed", "the same, a key per tick",
			"the key contains the tick; it is never released and expires. It does not prevent overlaps"),
		peer("redislock", "redislock + fencing token + a key per tick",
			"by gocron's ticks; the key contains the tick; it is never released and expires; "+
				"INCR gives the token, which the app gets. It does not prevent overlaps"),
		peer("setnx", "SET NX EX, 1 s delay, DEL",
			"by gocron's ticks; the lock is deleted one second after the job has ended"),
		peer("zset", "sorted set with a running set", "a script pops due ticks by Redis' clock, adds the next ones, "+
			"and gives leases, which are renewed; ticks with expired leases are run again. "+
			"It does not prevent overlaps"),
		{key: "bullmq", name: "BullMQ job schedulers", start: (*bench).startBullMQ, missing: (*bench).nodeLacks,
			settings: "as its documentation shows, with defaults: each replica upserts the schedulers at its start. " +
				"It does not prevent overlaps"},
	}
)

// peer is a contender of the program in ./peer.
func peer(kind, name, settings string) contender {
	start := func(b *bench, s seat) (replica, func() error, error) {
		file, err := writeJobs(s)
		if err != nil {
			return nil, nil, err
		}
		p, err := rig.Launch(s.name, filepath.Join(s.dir, s.name+".log"), skewed(s), pick(s, b.peer, b.peerSkewed),
			"-kind", kind, "-redis", s.redis, "-jobs", file, "-name", s.name)
		return replica{p}, nil, err
	}
	return contender{key: kind, name: name, settings: settings, start: start}
}

func (b *bench) startSolotick(s seat) (replica, func() error, error) {
	r, err := b.replica(s, func(listen string) string { return table(s.jobs, listen) })
	if err != nil {
		return nil, nil, err
	}
	return replica{r.Process}, func() error { return r.Ready(time.Minute) }, nil
}

// replica starts a replica of Solotick.
func (b *bench) replica(s seat, table func(listen string) string) (*rig.Replica, error) {
	state := filepath.Join(s.dir, s.name+".state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, err
	}
	return rig.StartReplica(rig.ReplicaOptions{Binary: pick(s, b.ours, b.oursSkewed), Name: s.name,
		Redis: "redis://" + s.redis + "/0", Dir: s.dir, State: state, Skew: s.skew}, table)
}

// table is Solotick's.
func table(jobs []job, listen string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "service: bench\nlisten: %q\nadmin: \"\"\njobs:\n", listen)
	for _, j := range jobs {
		at := cmp.Or(j.Schedule, fmt.Sprintf("%d-59/%d * * * * *", j.Offset, j.Every))
		fmt.Fprintf(&b, "  - {name: %s, schedule: %q, http: {url: %q}, missed: %s}\n",
			j.Name, at, j.URL, cmp.Or(j.Missed, "latest"))
	}
	return b.String()
}

func (b *bench) startBullMQ(s seat) (replica, func() error, error) {
	file, err := writeJobs(s)
	if err != nil {
		return nil, nil, err
	}
	p, err := rig.Launch(s.name, filepath.Join(s.dir, s.name+".log"), skewed(s),
		"node", filepath.Join(b.node(), "bullmq.mjs"), s.redis, file, s.name)
	return replica{p}, nil, err
}

// node is where the programs for Node.js are.
func (b *bench) node() string { return filepath.Join(b.root, "bench", "peer", "node") }

// nodeLacks installs what programs for Node.js need, by its lock file, unless that is done.
func (b *bench) nodeLacks() string {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is missing"
		}
	}
	installed, err := os.Stat(filepath.Join(b.node(), "node_modules", ".package-lock.json"))
	if locked, lockErr := os.Stat(filepath.Join(b.node(), "package-lock.json")); err == nil && lockErr == nil &&
		installed.ModTime().After(locked.ModTime()) {
		return ""
	}
	npm := exec.CommandContext(b.ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = b.node()
	if text, err := npm.CombinedOutput(); err != nil {
		return fmt.Sprintf("npm ci in bench/peer/node: %v: %.300s",
			err, strings.Join(strings.Fields(string(text)), " "))
	}
	return ""
}

func writeJobs(s seat) (string, error) {
	text, err := json.Marshal(s.jobs)
	if err != nil {
		return "", err
	}
	file := filepath.Join(s.dir, s.name+".json")
	return file, os.WriteFile(file, text, 0o600)
}

func skewed(s seat) []string {
	if s.skew == 0 {
		return nil
	}
	return []string{rig.SkewVariable + "=" + s.skew.String()}
}

// pick chooses the binary whose clock can be wrong only where it is.
func pick(s seat, normal, skewed string) string {
	if s.skew != 0 {
		return skewed
	}
	return normal
}

const (
	replicas = 3
	grace    = 30 * time.Second
	// take is how long the app is at work for each call: long enough that a contender who is late finds the job
	// running, short enough that one who is later still finds it over.
	take = 5 * time.Millisecond
)

// world is one contender at work: its replicas, a Redis of their own, and the app that they call.
type world struct {
	b         *bench
	contender contender
	redis     *rig.Redis
	app       *rig.App
	seats     []seat
	replicas  []replica // by seat
}

// setting says what a world is made of.
type setting struct {
	replicas int
	jobs     func(*rig.App) []job
	skews    []time.Duration // by seat; those that it lacks are 0
	redis    *rig.Redis      // nil = one of its own
	address  string          // of Redis, as the replicas see it; "" = its own
	warm     time.Duration   // before ticks are measured
}

// herd is so many jobs on the same seconds.
func herd(n, every int) func(*rig.App) []job {
	return func(app *rig.App) []job {
		jobs := make([]job, n)
		for i := range jobs {
			name := fmt.Sprintf("job-%d", i)
			jobs[i] = job{Name: name, Every: every, URL: app.URL(name, take)}
		}
		return jobs
	}
}

// open starts a world. Its replicas take ticks when it returns, or will within a moment.
func (b *bench) open(c contender, s setting) (w *world, err error) {
	w = &world{b: b, contender: c, redis: s.redis}
	begun := w
	defer func() {
		if err != nil {
			_ = begun.close()
		}
	}()
	dir, err := os.MkdirTemp(b.dir, c.key+"-")
	if err != nil {
		return nil, err
	}
	if w.redis == nil {
		if w.redis, err = rig.StartRedis(dir); err != nil {
			return nil, err
		}
	}
	if w.app, err = rig.StartApp(); err != nil {
		return nil, err
	}
	jobs := s.jobs(w.app)
	var waits []func() error
	for i := range s.replicas {
		at := seat{name: fmt.Sprintf("%s-%d", c.key, i), redis: s.address, jobs: jobs, dir: dir}
		if at.redis == "" {
			at.redis = w.redis.Addr()
		}
		if i < len(s.skews) {
			at.skew = s.skews[i]
		}
		r, ready, err := c.start(b, at)
		if err != nil {
			return nil, err
		}
		w.seats, w.replicas = append(w.seats, at), append(w.replicas, r)
		if ready != nil {
			waits = append(waits, ready)
		}
	}
	for _, ready := range waits {
		if err := ready(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// restart starts the replica of a seat again.
func (w *world) restart(i int) error {
	r, _, err := w.contender.start(w.b, w.seats[i])
	if err == nil {
		w.replicas[i] = r
	}
	return err
}

// close ends the replicas in good order, then Redis and the app.
func (w *world) close() error {
	err := rig.StopAll(grace, slices.Concat(w.replicas...)...)
	if w.app != nil {
		w.app.Close()
	}
	if w.redis != nil {
		err = errors.Join(err, w.redis.Stop(grace))
	}
	return err
}
