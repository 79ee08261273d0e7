package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/internal/proof/rig"
)

// outcome is what the app saw of one contender under one fault.
type outcome struct {
	Fault      string `json:"fault"`
	Contender  string `json:"contender"`
	Ticks      int    `json:"ticks"`
	Doubled    int    `json:"doubled"`    // requests for a tick beyond the first one
	Lost       int    `json:"lost"`       // ticks without a request
	Overlapped int    `json:"overlapped"` // runs that began while the app was at work for the same job
	Late       int    `json:"late"`       // ticks whose first request came more than a second late
	Early      int    `json:"early"`      // ticks whose first request came more than 10 ms early
	NotRun     string `json:"notRun,omitempty"`
}

// fault is one thing that goes wrong while replicas are at work.
type fault struct {
	key, name, about string
	skews            []time.Duration
	redis            []string      // arguments of the server
	copied           bool          // Redis has a replica, and the contender's replicas reach it through a proxy
	length           time.Duration // in which ticks count
	jobs             func(*rig.App) []job
	strike           func(*trial) error
	without          map[string]string // contenders that are not run, and why
	// allowed are what Solotick may do of Doubled, Lost and Early; nil is no judgement.
	doubled, lost, early *int
}

func atMost(n int) *int { return &n }

// Faults run in groups: what is in one group runs at the same time, each contender with its own Redis. Where
// milliseconds decide, a fault is alone.
var faultGroups = [][]fault{
	{{key: "calm", name: "none", about: "nothing goes wrong", length: 16 * time.Second, doubled: atMost(0), lost: atMost(0), early: atMost(0)}},
	{{key: "skew50", name: "clocks 50 ms apart", about: "the replicas' clocks are off by 0, +50 ms and −50 ms", length: 16 * time.Second,
		skews: []time.Duration{0, 50 * time.Millisecond, -50 * time.Millisecond}, doubled: atMost(0), lost: atMost(0), early: atMost(0)}},
	{
		{key: "skew2500", name: "clocks 2.5 s apart", about: "the replicas' clocks are off by 0, +2.5 s and −2.5 s", length: 16 * time.Second,
			skews: []time.Duration{0, 2500 * time.Millisecond, -2500 * time.Millisecond}, doubled: atMost(0), lost: atMost(0), early: atMost(0)},
		{key: "sigkill", name: "SIGKILL of the holder", about: "each 6 s, the replica that runs the long job is killed, and started again after half a second",
			length: 30 * time.Second, strike: killHolders(6 * time.Second), doubled: atMost(0), early: atMost(0)},
		{key: "sigstop", name: "SIGSTOP for 20 s", about: "the replica that runs the long job is stopped for longer than its lease (15 s), then goes on",
			length: 30 * time.Second, strike: stopHolder, doubled: atMost(0), early: atMost(0)},
		{key: "stall", name: "Redis stalled", about: "Redis is stopped for 3 s, twice", length: 24 * time.Second, strike: stallRedis, doubled: atMost(0), early: atMost(0)},
	},
	{
		{key: "crash", name: "Redis killed", about: "Redis, with an append-only file and everysec, is killed and is back after a second, twice",
			length: 24 * time.Second, redis: []string{"--appendonly", "yes", "--appendfsync", "everysec"}, strike: crashRedis, doubled: atMost(0), early: atMost(0)},
		{key: "empty", name: "Redis emptied", about: "FLUSHALL while the long job runs, twice", length: 24 * time.Second, strike: emptyRedis, doubled: atMost(0), early: atMost(0)},
		{key: "failover", name: "failover", about: "the master is killed; a replica that is up to date takes its place after a second", length: 20 * time.Second,
			copied: true, redis: []string{"--repl-diskless-sync-delay", "0"}, strike: failover(0), doubled: atMost(0), early: atMost(0)},
		{key: "behind", name: "failover to a replica that is behind", about: "the same, and the replica lacks the last 1.5 s of the master; waitReplicas is 0",
			length: 20 * time.Second, copied: true, redis: []string{"--repl-diskless-sync-delay", "0"}, strike: failover(1500 * time.Millisecond)},
		{key: "restarts", name: "holder killed each 3 s", about: "one job each second, of half a second; its replica is killed in it each 3 s, and started again after half a second",
			length: 60 * time.Second, jobs: secondly, strike: killHolders(3 * time.Second), doubled: atMost(0), lost: atMost(6), early: atMost(0),
			without: map[string]string{"held": "a lock held for a second loses every other tick of this job", "setnx": "a delay of a second loses every other tick of this job"}},
	},
}

const (
	shortJobs = 8
	shortTake = 20 * time.Millisecond
	longTake  = 6 * time.Second
	longJob   = "long"
	settled   = 6 * time.Second // for processes to start
	tail      = 5 * time.Second // in which late requests still count
)

// mixed are short jobs every two seconds, whose ticks are counted, and a long one every four seconds, which runs for six:
// it is there to be at work when a fault strikes, and to overlap with itself. A tick that it skips is not lost.
func mixed(app *rig.App) []job {
	jobs := []job{{Name: longJob, Every: 4, URL: app.URL(longJob, longTake)}}
	for i := range shortJobs {
		name := fmt.Sprintf("job-%d", i)
		jobs = append(jobs, job{Name: name, Every: 2, URL: app.URL(name, shortTake)})
	}
	return jobs
}

func secondly(app *rig.App) []job {
	return []job{{Name: "job-0", Every: 1, URL: app.URL("job-0", 500*time.Millisecond)}}
}

// faults runs all contenders under all faults.
func (b *bench) faults() (part, error) {
	var p part
	lacks := map[string]string{}
	for _, c := range contenders {
		if c.missing != nil {
			lacks[c.key] = c.missing(b)
		}
	}
	for _, group := range faultGroups {
		if len(b.only) > 0 {
			group = slices.DeleteFunc(slices.Clone(group), func(f fault) bool { return !slices.Contains(b.only, f.key) })
		}
		outcomes, err := b.strikeAll(group, lacks)
		if err != nil {
			return p, err
		}
		p.Faults = append(p.Faults, outcomes...)
	}
	return p, nil
}

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

// strikeAll runs a group: first all replicas are started, then ticks count, and faults strike.
func (b *bench) strikeAll(group []fault, lacks map[string]string) ([]outcome, error) {
	var trials []*trial
	var outcomes []outcome
	defer func() {
		_ = together(len(trials), func(i int) error { trials[i].stop(); return nil })
	}()
	for _, f := range group {
		for _, c := range contenders {
			if why := cmp.Or(lacks[c.key], f.without[c.key]); why != "" {
				outcomes = append(outcomes, outcome{Fault: f.key, Contender: c.key, NotRun: why})
				continue
			}
			trials = append(trials, &trial{fault: f, contender: c, b: b})
		}
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
	return inOrder(outcomes, group), nil
}

// inOrder sorts outcomes as faults and contenders stand in their lists.
func inOrder(outcomes []outcome, group []fault) []outcome {
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
			t.processes[i].Kill()
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
	return stopFor(t, t.processes[i], 20*time.Second)
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

func stopFor(t *trial, p *rig.Process, d time.Duration) error {
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

// judge compares what the app saw with the ticks that were due. Ticks of the long job are not counted, its overlaps are.
func judge(seen []rig.Request, jobs []job, begin, end time.Time) (o outcome) {
	type tickOf struct {
		job  string
		tick int64
	}
	first, count := map[tickOf]time.Time{}, map[tickOf]int{}
	periods := map[string]time.Duration{}
	for _, j := range jobs {
		periods[j.Name] = time.Duration(j.Every) * time.Second
	}
	busy := map[string]time.Time{} // until when the app is at work for a job
	for _, r := range seen {
		tick := r.Tick.Truncate(periods[r.Job])
		at := tickOf{r.Job, tick.Unix()}
		if count[at]++; count[at] == 1 {
			first[at] = r.Arrived
		}
		if !tick.Before(begin) && tick.Before(end) && r.Arrived.Before(busy[r.Job]) {
			o.Overlapped++
		}
		ended := r.Ended
		if ended.IsZero() {
			ended = end.Add(time.Hour)
		}
		if ended.After(busy[r.Job]) {
			busy[r.Job] = ended
		}
	}
	for _, j := range jobs {
		if j.Name == longJob {
			continue
		}
		for tick := begin.Truncate(periods[j.Name]).Add(periods[j.Name]); tick.Before(end); tick = tick.Add(periods[j.Name]) {
			at := tickOf{j.Name, tick.Unix()}
			o.Ticks++
			if count[at] == 0 {
				o.Lost++
				continue
			}
			o.Doubled += count[at] - 1
			switch delay := first[at].Sub(tick); {
			case delay > time.Second:
				o.Late++
			case delay < -10*time.Millisecond:
				o.Early++
			}
		}
	}
	return o
}

// words is an outcome as the tables have it.
func (o outcome) words() string {
	if o.NotRun != "" {
		return "not run: " + o.NotRun
	}
	var words []string
	for _, w := range []struct {
		n    int
		word string
	}{{o.Doubled, "doubled"}, {o.Lost, "lost"}, {o.Overlapped, "overlapped"}, {o.Late, "late"}, {o.Early, "early"}} {
		if w.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", w.n, w.word))
		}
	}
	if len(words) == 0 {
		return "all on time"
	}
	return strings.Join(words, ", ")
}

// missed tells that Solotick did what its fault does not allow.
func (o outcome) missed() bool {
	f, ok := faultOf(o.Fault)
	over := func(n int, limit *int) bool { return limit != nil && n > *limit }
	return ok && o.Contender == solotick.key && (o.NotRun != "" || over(o.Doubled, f.doubled) || over(o.Lost, f.lost) || over(o.Early, f.early) ||
		f.doubled != nil && o.Overlapped > 0)
}

func faultOf(key string) (fault, bool) {
	for _, group := range faultGroups {
		for _, f := range group {
			if f.key == key {
				return f, true
			}
		}
	}
	return fault{}, false
}

// showFaults prints outcomes, and what was committed where that was something else.
func showFaults(outcomes, committed []outcome) (missed bool) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	if len(outcomes) > 0 {
		fmt.Fprintln(w, "fault\tcontender\tticks\toutcome\tverdict\tcommitted")
	}
	for _, o := range outcomes {
		verdict, was := "", ""
		if o.missed() {
			verdict, missed = "MISSED", true
		}
		for _, c := range committed {
			if c.Fault == o.Fault && c.Contender == o.Contender && c.words() != o.words() {
				was = c.words()
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", o.Fault, o.Contender, o.Ticks, o.words(), verdict, was)
	}
	w.Flush()
	return missed
}
