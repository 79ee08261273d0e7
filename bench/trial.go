package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/rig"
)

// trial is one contender under one fault.
type trial struct {
	b         *bench
	contender contender
	fault     fault
	*world
	begin, end time.Time
	copy       *rig.Redis   // of the Redis that is killed
	upstream   atomic.Value // address that the proxy connects to
	proxy      *lossy.Proxy
}

// strikeAll runs contenders under a group of faults: first all replicas are started, then ticks count, and faults
// strike.
func (b *bench) strikeAll(group []fault, contenders []contender, lacks map[string]string) ([]outcome, error) {
	var trials []*trial
	var outcomes []outcome
	defer func() {
		_ = together(len(trials), func(i int) error { trials[i].stop(); return nil })
	}()
	for _, f := range group {
		for _, c := range contenders {
			if len(b.among) > 0 && !slices.Contains(b.among, c.key) {
				continue
			}
			if why := cmp.Or(lacks[c.key], f.without[c.key]); why != "" {
				outcomes = append(outcomes, outcome{Fault: f.key, Contender: c.key, NotRun: why})
				continue
			}
			trials = append(trials, &trial{fault: f, contender: c, b: b})
		}
	}
	if len(trials) == 0 {
		return outcomes, nil
	}
	if err := together(len(trials), func(i int) error { return trials[i].open() }); err != nil {
		return nil, err
	}
	begin := half(settled)
	for begin.Unix()%4 != 3 { // all jobs come due half a second later, and the faults know when
		begin = begin.Add(time.Second)
	}
	if err := together(len(trials), func(i int) error { return trials[i].run(begin) }); err != nil {
		return nil, err
	}
	for _, t := range trials {
		o := judge(t.app.Seen(), t.seats[0].jobs, t.begin, t.end)
		o.Fault, o.Contender = t.fault.key, t.contender.key
		outcomes = append(outcomes, o)
	}
	return inOrder(outcomes, group, contenders), nil
}

// inOrder sorts outcomes as faults and contenders stand in their lists.
func inOrder(outcomes []outcome, group []fault, contenders []contender) []outcome {
	place := func(o outcome) int {
		f := slices.IndexFunc(group, func(f fault) bool { return f.key == o.Fault })
		c := slices.IndexFunc(contenders, func(c contender) bool { return c.key == o.Contender })
		return f*len(contenders) + c
	}
	slices.SortFunc(outcomes, func(a, b outcome) int { return place(a) - place(b) })
	return outcomes
}

// open starts a contender with what its fault needs.
func (t *trial) open() (err error) {
	defer func() { err = t.named(err) }()
	dir, err := os.MkdirTemp(t.b.dir, "fault-")
	if err != nil {
		return err
	}
	s := setting{replicas: replicas, jobs: t.fault.jobs, skews: t.fault.skews}
	if s.jobs == nil {
		s.jobs = mixed
	}
	if s.redis, err = rig.StartRedis(dir, t.fault.redis...); err != nil {
		return err
	}
	if t.fault.copied {
		if s.address, err = t.copyRedis(s.redis); err != nil {
			return err
		}
	}
	t.world, err = t.b.open(t.contender, s)
	return err
}

func (t *trial) named(err error) error {
	if err != nil {
		err = fmt.Errorf("%s, %s: %w", t.fault.name, t.contender.name, err)
	}
	return err
}

// copyRedis gives a Redis a replica and a proxy, and returns the proxy's address.
func (t *trial) copyRedis(master *rig.Redis) (string, error) {
	dir, err := os.MkdirTemp(t.b.dir, "copy-")
	if err != nil {
		return "", err
	}
	if t.copy, err = rig.StartRedis(dir, "--replicaof", "127.0.0.1", fmt.Sprint(master.Port)); err != nil {
		return "", err
	}
	if err := rig.Until(20*time.Second, "the replica of Redis to be up to date", func() bool {
		info, err := t.copy.Info("replication")
		return err == nil && info["master_link_status"] == "up"
	}); err != nil {
		return "", err
	}
	t.upstream.Store(master.Addr())
	t.proxy = lossy.New(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", t.upstream.Load().(string))
	})
	return t.proxy.Listen()
}

// stop ends all that a trial has started. A contender whose replica has ended by itself is judged by what the app saw.
func (t *trial) stop() {
	if t.world != nil {
		_ = t.close()
	}
	if t.proxy != nil {
		t.proxy.Close()
	}
	if t.copy != nil {
		_ = t.copy.Stop(grace)
	}
}

func (t *trial) run(begin time.Time) (err error) {
	defer func() { err = t.named(err) }()
	t.begin, t.end = begin, begin.Add(t.fault.length)
	if err := t.b.sleep(t.begin); err != nil {
		return err
	}
	if t.fault.strike != nil {
		if err := t.fault.strike(t); err != nil {
			return err
		}
	}
	return t.b.sleep(t.end.Add(tail))
}

// at waits until so long after the beginning.
func (t *trial) at(d time.Duration) error { return t.b.sleep(t.begin.Add(d)) }

// holder is the seat of the replica whose run the app is at, or whose run came last. It waits for a run at work first,
// of the long job if there is one; after the limit there is none.
func (t *trial) holder(limit time.Duration) int {
	atWork := -1
	_ = rig.Until(limit, "a run", func() bool {
		for _, r := range slices.Backward(t.app.Seen()) {
			if r.Ended.IsZero() && (r.Job == longJob || len(t.seats[0].jobs) == 1) {
				atWork = slices.IndexFunc(t.seats, func(s seat) bool { return s.name == r.Replica })
				return true
			}
		}
		return t.b.ctx.Err() != nil
	})
	return atWork
}

// killHolders kills the replica at work again and again, and starts it half a second later.
func killHolders(every time.Duration) func(*trial) error {
	return func(t *trial) error {
		for next := 2 * time.Second; next+every <= t.fault.length; next += every {
			if err := t.at(next); err != nil {
				return err
			}
			i := t.holder(every - time.Second)
			if i < 0 {
				continue // nothing runs that could be cut short
			}
			t.replicas[i].Kill()
			if err := t.b.sleep(time.Now().Add(500 * time.Millisecond)); err != nil {
				return err
			}
			if err := t.restart(i); err != nil {
				return err
			}
		}
		return nil
	}
}

func stopHolder(t *trial) error {
	if err := t.at(2 * time.Second); err != nil {
		return err
	}
	i := max(t.holder(4*time.Second), 0)
	return stopFor(t, t.replicas[i], 20*time.Second)
}

func stallRedis(t *trial) error {
	for _, at := range []time.Duration{3 * time.Second, 13 * time.Second} {
		if err := t.at(at); err != nil {
			return err
		}
		if err := stopFor(t, t.redis.Process, 3*time.Second); err != nil {
			return err
		}
	}
	return nil
}

func stopFor(t *trial, p interface{ Signal(syscall.Signal) error }, d time.Duration) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	err := t.b.sleep(time.Now().Add(d))
	return errors.Join(err, p.Signal(syscall.SIGCONT))
}

func crashRedis(t *trial) error {
	for _, at := range []time.Duration{4 * time.Second, 14 * time.Second} { // a tick comes while it is away
		if err := t.at(at); err != nil {
			return err
		}
		t.redis.Kill()
		if err := t.b.sleep(time.Now().Add(time.Second)); err != nil {
			return err
		}
		if err := t.redis.Restart(); err != nil {
			return err
		}
	}
	return nil
}

func emptyRedis(t *trial) error {
	for _, at := range []time.Duration{3 * time.Second, 12 * time.Second} {
		if err := t.at(at); err != nil {
			return err
		}
		t.holder(4 * time.Second)
		if _, err := t.redis.Ask("FLUSHALL"); err != nil {
			return err
		}
	}
	return nil
}

// failover kills the master, and lets its replica take its place, which has stopped to follow so long before.
func failover(behind time.Duration) func(*trial) error {
	return func(t *trial) error {
		if err := t.at(6*time.Second - behind/5); err != nil { // a tick comes at 6.5 s
			return err
		}
		if behind > 0 {
			if _, err := t.copy.Ask("REPLICAOF NO ONE"); err != nil {
				return err
			}
			if err := t.b.sleep(time.Now().Add(behind)); err != nil {
				return err
			}
		}
		t.redis.Kill()
		t.proxy.Cut()
		if err := t.b.sleep(time.Now().Add(time.Second)); err != nil {
			return err
		}
		if behind == 0 {
			if _, err := t.copy.Ask("REPLICAOF NO ONE"); err != nil {
				return err
			}
		}
		t.upstream.Store(t.copy.Addr())
		return nil
	}
}
