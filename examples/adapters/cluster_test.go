package adapters_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/needs"
	"github.com/solotick/solotick/internal/testing/rig"
)

var built = sync.OnceValues(func() (string, error) {
	root, err := rig.Root()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(scratch, "solotick")
	return binary, rig.Build(root, rig.Package, binary)
})

// pod is an app with the replica beside it.
type pod struct {
	name    string
	skew    time.Duration // of the app's clock
	admin   string
	replica *rig.Replica
	listens *listener
	app     *app
	ended   []line // of apps that were killed
	faults  []fault
	starts  int
}

// fault is the time for which a pod was away, or its replica stood still.
type fault struct {
	from, to time.Time
}

// cluster is three pods and a Redis.
type cluster struct {
	*testing.T
	adapter
	dir   string
	redis *rig.Redis
	claim string // of the table
	pods  []*pod

	patience time.Duration // of the judge, for ticks that have no fate yet
}

const step = 2 * time.Second // from tick to tick

func newCluster(t *testing.T, a adapter, claim string) *cluster {
	t.Helper()
	needs.Program(t, "redis-server")
	c := &cluster{T: t, adapter: a, dir: t.TempDir(), claim: claim, patience: patience}
	var err error
	if c.redis, err = rig.StartRedis(c.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.redis.Kill)
	for i, skew := range []time.Duration{0, 2500 * time.Millisecond, -2500 * time.Millisecond} {
		p := &pod{name: fmt.Sprintf("pod-%d", i+1), skew: skew, admin: rig.FreeAddr(t)}
		p.listens = listen(t, p.admin)
		c.pods = append(c.pods, p)
		c.start(p)
	}
	return c
}

// start starts the replica and the app of a pod.
func (c *cluster) start(p *pod) {
	c.Helper()
	binary, err := built()
	if err != nil {
		c.Fatal(err)
	}
	p.starts++
	p.replica, err = rig.StartReplica(rig.ReplicaOptions{Binary: binary, Name: p.name, Redis: c.redis.URL(), Dir: c.dir,
		Level: "debug", Log: fmt.Sprintf("%s-%d.log", p.name, p.starts)}, func(listen string) string {
		return fmt.Sprintf("service: adapters\nlisten: %q\nadmin: %q\nredis: {timeout: 1500ms}\njobs:\n"+
			"  - {name: work, schedule: \"*/2 * * * * *\", claim: %s}\n", listen, p.admin, c.claim)
	})
	if err != nil {
		c.Fatal(err)
	}
	replica := p.replica
	c.Cleanup(func() {
		_ = replica.Signal(syscall.SIGCONT)
		replica.Kill()
		if c.Failed() {
			c.Logf("replica of %s:\n%s", p.name, tail(replica.Log))
		}
	})
	if err := replica.Ready(patience); err != nil {
		c.Fatal(err)
	}
	p.app = c.adapter.start(c.T, c.dir, fmt.Sprintf("app-%s-%d", p.name, p.starts), p.listens.URL, "*/2",
		300*time.Millisecond, p.skew, "work")
}

// says is what all apps have said so far.
func (c *cluster) says() (all []line) {
	c.Helper()
	for _, p := range c.pods {
		for _, l := range append(slices.Clone(p.ended), p.app.says(c.T)...) {
			l.app = p.name
			all = append(all, l)
		}
	}
	return all
}

// count counts what apps of these pods have said.
func (c *cluster) count(what string, pods ...*pod) (n int) {
	for _, l := range c.says() {
		if l.what == what && slices.ContainsFunc(pods, func(p *pod) bool { return p.name == l.app }) {
			n++
		}
	}
	return n
}

// more waits until apps of these pods have run so many more ticks.
func (c *cluster) more(n int, pods ...*pod) {
	c.Helper()
	n += c.count("done", pods...)
	await(c.T, "more ticks", func() bool { return c.count("done", pods...) >= n })
}

// begins waits until one of the pods begins a run, and returns it.
func (c *cluster) begins(pods ...*pod) *pod {
	c.Helper()
	before := map[*pod]int{}
	for _, p := range pods {
		before[p] = c.count("begun", p)
	}
	var found *pod
	await(c.T, "a run", func() bool {
		for _, p := range pods {
			if c.count("begun", p) > before[p] {
				found = p
			}
		}
		return found != nil
	})
	return found
}

// others are the pods except one.
func (c *cluster) others(than *pod) []*pod {
	return slices.DeleteFunc(slices.Clone(c.pods), func(p *pod) bool { return p == than })
}

// verb calls a verb whose output is JSON.
func (c *cluster) verb(into any, args ...string) {
	c.Helper()
	binary, err := built()
	if err != nil {
		c.Fatal(err)
	}
	table := filepath.Join(c.dir, c.pods[0].name+".yaml")
	out, err := exec.Command(binary, append(args, "-o", "json", "--redis", c.redis.URL(), "-c", table)...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		c.Fatalf("solotick %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// asked is a claim that an app sent, with its answer.
type asked struct {
	pod      string
	path     string
	sent     time.Time
	status   int // 0 = none came
	answer   struct{ Tick, Run, Reason, Error string }
	finished time.Time // when the end of the run was answered with 200
}

const (
	now     = "/v1/jobs/work/ticks/now"
	longest = time.Minute // for which an answer is held back
)

// listener stands between an app and its replica, and changes nothing. It writes down all claims.
type listener struct {
	*httptest.Server
	mu  sync.Mutex
	all []*asked
}

func listen(t *testing.T, replica string) *listener {
	l := &listener{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: replica})
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	proxy.ModifyResponse = func(r *http.Response) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		l.mu.Lock()
		defer l.mu.Unlock()
		if a, is := r.Request.Context().Value(l).(*asked); is {
			a.status = r.StatusCode
			_ = json.Unmarshal(body, &a.answer)
		}
		if run, is := strings.CutSuffix(r.Request.URL.Path, "/finish"); is && r.StatusCode == http.StatusOK {
			for _, a := range l.all {
				if strings.HasSuffix(run, "/"+a.answer.Run) {
					a.finished = time.Now()
				}
			}
		}
		return nil
	}
	l.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/jobs/") {
			a := &asked{path: r.URL.Path, sent: time.Now()}
			l.mu.Lock()
			l.all = append(l.all, a)
			l.mu.Unlock()
			r = r.WithContext(context.WithValue(r.Context(), l, a))
		}
		proxy.ServeHTTP(w, r)
	}))
	l.Config.ErrorLog = log.New(io.Discard, "", 0)
	l.Start()
	t.Cleanup(l.Close)
	return l
}

// claims are those that were sent so far.
func (l *listener) claims() (all []asked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.all {
		all = append(all, *a)
	}
	return all
}

// TestThreeAppsRunEachTickOnce: the adapters' apps beside real replicas, with wrong clocks, while processes die and
// stand still. The test waits for ticks and never for time, so a slow machine only makes it longer.
func TestThreeAppsRunEachTickOnce(t *testing.T) {
	t.Parallel()
	each(t, append(adapters(t), cron(t)), func(t *testing.T, a adapter) {
		c := newCluster(t, a, "{}")
		c.more(4, c.pods...)

		killed := c.begins(c.pods...)
		from := time.Now()
		killed.app.Kill()
		killed.replica.Kill()
		killed.ended = append(killed.ended, killed.app.says(t)...)
		c.more(3, c.others(killed)...)
		c.start(killed)
		killed.faults = append(killed.faults, fault{from, time.Now()})
		asked := func(p *pod) int { return len(p.listens.claims()) }
		n := asked(killed)
		await(t, "claims of the pod that is back", func() bool { return asked(killed) >= n+3 })

		stopped := c.begins(c.pods...)
		from = time.Now()
		if err := stopped.replica.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		c.more(2, c.others(stopped)...)
		if err := stopped.replica.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		stopped.faults = append(stopped.faults, fault{from, time.Now()})
		n = asked(stopped)
		await(t, "claims of the pod that stood still", func() bool { return asked(stopped) >= n+3 })
		c.more(4, c.pods...)

		for _, wrong := range c.judge() {
			t.Error(wrong)
		}
		for _, p := range c.pods {
			t.Logf("%s: %d claims, %d runs done", p.name, asked(p), c.count("done", p))
		}
	})
}

// TestTheJudgeHasTeeth: it notices apps that run each tick without asking, and apps that never finish.
func TestTheJudgeHasTeeth(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]string{"careless": "was begun 3 times", "silent": "was done by pod-"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			a := adapters(t)[0]
			a.env = []string{asApp + "=" + fault}
			c := newCluster(t, a, "{timeout: 1s}")
			c.patience = 5 * time.Second // for what does not come
			c.more(6, c.pods...)
			wrong := c.judge()
			if !slices.ContainsFunc(wrong, func(s string) bool { return strings.Contains(s, want) }) {
				t.Errorf("it says only %q", wrong)
			}
		})
	}
}

// fate is what becomes of a tick, as solotick why tells it.
type fate struct{ Fate, Run, Replica, Detail string }

// final reports whether nothing more becomes of the tick.
func (f fate) final() bool {
	return !slices.Contains([]string{"running", "waiting", "future", "unclaimed"}, f.Fate)
}

// judge says what is wrong with the ticks from the first that was begun to the last that was done.
func (c *cluster) judge() (wrong []string) {
	c.Helper()
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	at := func(l line) time.Time {
		tick, err := time.Parse(time.RFC3339, l.tick)
		if err != nil {
			c.Fatal(err)
		}
		return tick
	}
	var first, last time.Time
	for _, l := range c.says() {
		if tick := at(l); first.IsZero() || tick.Before(first) {
			first = tick
		} else if l.what == "done" && tick.After(last) {
			last = tick
		}
	}
	fates := map[time.Time]fate{}
	settled := time.Now().Add(c.patience)
	for tick := first; !tick.After(last); tick = tick.Add(step) {
		_ = rig.Until(time.Until(settled), "", func() bool { // a tick that has no fate then is wrong
			var f fate
			c.verb(&f, "why", "work", tick.Format(time.RFC3339))
			fates[tick] = f
			return f.final()
		})
	}

	begun, done := map[time.Time][]line{}, map[time.Time][]line{}
	newest := line{}
	lines := c.says()
	slices.SortStableFunc(lines, func(a, b line) int { return at(a).Compare(at(b)) })
	for _, l := range lines {
		tick := at(l)
		switch f, judged := fates[tick]; {
		case !judged && tick.Before(last):
			bad("%v is no tick", l)
		case !judged:
		case l.what == "begun":
			begun[tick] = append(begun[tick], l)
			if newest.run != "" && l.token <= newest.token && tick.After(at(newest)) {
				bad("the token of %v is not greater than that of %v", l, newest)
			}
			newest = l
		case l.what == "done":
			done[tick] = append(done[tick], l)
			if (f.Fate != "succeeded" || f.Run != l.run) && !c.excused(l.run) {
				bad("%s was done by %s, run %s, and its fate is %+v", l.tick, l.app, l.run, f)
			}
		default:
			if !c.excused(l.run) {
				bad("a job was told to stop: %v", l)
			}
		}
	}
	for tick, f := range fates {
		stamp := tick.Format(time.RFC3339)
		if n := len(begun[tick]); n > 1 {
			bad("%s was begun %d times: %v", stamp, n, begun[tick])
		}
		asks := c.asks(tick)
		granted := slices.ContainsFunc(asks, func(a asked) bool { return a.status == http.StatusOK })
		switch f.Fate {
		case "succeeded":
			if len(done[tick]) != 1 || !granted {
				bad("%s has succeeded, and %v says so; the claims: %+v", stamp, done[tick], asks)
			}
		case "missed", "overlapped":
			if granted {
				bad("%s is %s, and it was granted: %+v", stamp, f.Fate, asks)
			}
			for _, a := range asks {
				switch {
				case a.path == now: // perhaps it was for another tick
				case a.answer.Reason == "superseded", a.answer.Reason == "too_late": // it came late
				case a.answer.Reason == "overlap": // a run was in the way, which has to have a fate itself
				case a.status == 0 && c.faulted(a.pod, a.sent):
				default:
					bad("%s is %s, and it was asked for: %+v", stamp, f.Fate, a)
				}
			}
		default:
			if !c.excused(f.Run) {
				bad("%s: %+v", stamp, f)
			}
		}
	}
	var runs []struct{ Run, Tick, Replica, Outcome string }
	c.verb(&runs, "history", "work", "-n", "1000")
	seen := map[string]bool{}
	for _, r := range runs {
		if r.Run == "" { // ticks that were missed
			continue
		}
		if seen[r.Tick] {
			bad("%s is twice in the history", r.Tick)
		}
		seen[r.Tick] = true
		tick, err := time.Parse(time.RFC3339, r.Tick)
		if f, judged := fates[tick]; err != nil || judged && (f.Run != r.Run || f.Fate != r.Outcome) {
			bad("the history says %+v, and the fate of its tick is %+v, %v", r, f, err)
		}
	}
	slices.Sort(wrong)
	return wrong
}

// faulted reports whether something that began then on the pod met a fault.
func (c *cluster) faulted(name string, began time.Time) bool {
	for _, p := range c.pods {
		for _, f := range p.faults {
			if p.name == name && began.Before(f.to) && began.Add(longest).After(f.from) {
				return true
			}
		}
	}
	return false
}

// excused reports whether a run need not have succeeded: it was under way on a pod that was killed, or stood still.
func (c *cluster) excused(run string) bool {
	for _, p := range c.pods {
		for _, a := range p.listens.claims() {
			for _, f := range p.faults {
				if a.answer.Run == run && a.sent.Before(f.to) && (a.finished.IsZero() || a.finished.After(f.from)) {
					return true
				}
			}
		}
	}
	return false
}

// asks are the claims that named a tick, or got it, and all that were for the tick next to their instant.
func (c *cluster) asks(tick time.Time) (all []asked) {
	for _, p := range c.pods {
		for _, a := range p.listens.claims() {
			of := strings.Split(a.path, "/")[5]
			if a.status == http.StatusOK {
				of = a.answer.Tick
			}
			if at, err := time.Parse(time.RFC3339, of); err == nil && at.Equal(tick) || of == "now" {
				a.pod = p.name
				all = append(all, a)
			}
		}
	}
	return all
}
