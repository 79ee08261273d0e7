package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/solotick/solotick/examples/handlers"
	"github.com/solotick/solotick/internal/testing/redistest"
)

// state is what an app tells of the long work of a job.
type state struct {
	Began, Stopped int // Stopped: it was told to stop
}

// long adds the handlers of long work to an app in Go: as those in node/app.js and python/app.py.
func long(t *testing.T, mux *http.ServeMux, store handlers.Store) {
	var mu sync.Mutex
	states := map[string]*state{}
	of := func(job string) *state {
		if states[job] == nil {
			states[job] = &state{}
		}
		return states[job]
	}
	work := &handlers.Long{Work: func(ctx context.Context, r *http.Request) error {
		job := r.Header.Get("Solotick-Job")
		mu.Lock()
		of(job).Began++
		mu.Unlock()
		take, _ := strconv.Atoi(r.FormValue("take"))
		select {
		case <-time.After(time.Duration(take) * time.Millisecond):
		case <-ctx.Done():
			mu.Lock()
			of(job).Stopped++
			mu.Unlock()
			return ctx.Err()
		}
		if why := r.FormValue("fail"); why != "" {
			return errors.New(why)
		}
		return nil
	}}
	mux.Handle("POST /jobs/long", handlers.Middleware(secret, store, work))
	mux.HandleFunc("GET /long", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(w).Encode(of(r.FormValue("job")))
	})
	t.Cleanup(work.Wait)
}

func (c *caller) state() (s state) {
	c.Helper()
	got, err := http.Get(c.app + "/long?job=" + c.job)
	if err != nil {
		c.Fatal(err)
	}
	defer got.Body.Close()
	if err := json.NewDecoder(got.Body).Decode(&s); err != nil {
		c.Fatal(err)
	}
	return s
}

func (c *caller) await(what string, so func() bool) {
	c.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.Fatalf("%s did not come", what)
		}
	}
}

// TestALongJob checks the handler for long work of each language, in an app that it starts once.
func TestALongJob(t *testing.T) {
	t.Parallel()
	checks := []struct {
		name  string
		check func(*caller)
	}{
		{"answers-a-job-without-async-when-the-work-is-done", answersAJobWithoutAsyncWhenTheWorkIsDone},
		{"begins-after-the-first-heartbeat", beginsAfterTheFirstHeartbeat},
		{"does-not-begin-without-leave", doesNotBeginWithoutLeave},
		{"stops-by-its-own-clock", stopsByItsOwnClock},
		{"stops-when-it-is-told-to", stopsWhenItIsToldTo},
		{"repeats-a-report-that-is-lost", repeatsAReportThatIsLost},
		{"keeps-its-key-until-the-work-ends", keepsItsKeyUntilTheWorkEnds},
		{"works-for-a-real-replica", worksForARealReplica},
	}
	run := func(t *testing.T, language, app, path string) {
		for _, c := range checks {
			if path == "/jobs/thread" && !strings.HasPrefix(c.name, "stops") && !strings.HasPrefix(c.name, "answers") {
				continue // only how the work is ended differs
			}
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.check(&caller{T: t, language: language, app: app, job: c.name + strings.ReplaceAll(path, "/", "-"), path: path})
			})
		}
	}
	t.Run("Go", func(t *testing.T) {
		t.Parallel()
		run(t, "Go", goApp(t), "/jobs/long")
	})
	for _, l := range languages() {
		if !slices.Contains([]string{"express", "fastify", "Python"}, l.name) {
			continue // has no such handler
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			app := l.start(t, l.ready(t))
			run(t, l.name, app, "/jobs/long")
			if l.name == "Python" {
				t.Run("thread", func(t *testing.T) { run(t, l.name, app, "/jobs/thread") })
			}
		})
	}
}

// api stands for the API of a replica that has called the app.
type api struct {
	*httptest.Server
	beats    atomic.Int64 // heartbeats that came
	finishes chan string
	over     chan struct{} // ends heartbeats that hang
}

const (
	cut   = -1 // the connection
	hangs = -2
)

// newAPI answers the nth heartbeat with beat(n), and the nth report with finish(n).
func (c *caller) newAPI(beat, finish func(n int) int) *api {
	a := &api{finishes: make(chan string, 10), over: make(chan struct{})}
	var mu sync.Mutex
	n := map[string]int{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer t0ken" || r.Header.Get("Solotick-Run") != "" {
			c.Errorf("a report is %s with %v", r.Method, r.Header)
		}
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		n[r.URL.Path]++
		n := n[r.URL.Path]
		mu.Unlock()
		var status int
		switch r.URL.Path {
		case "/v1/runs/r/heartbeat":
			status = beat(n)
			a.beats.Add(1)
		case "/v1/runs/r/finish":
			status = finish(n)
			a.finishes <- string(body)
		default:
			c.Errorf("a report goes to %s", r.URL.Path)
		}
		switch status {
		case cut:
			panic(http.ErrAbortHandler)
		case hangs:
			<-a.over
		default:
			w.WriteHeader(status)
			fmt.Fprintln(w, `{"error": "for a reason"}`)
		}
	}))
	c.Cleanup(a.Close)
	c.Cleanup(func() { close(a.over) })
	return a
}

func always(status int) func(int) int { return func(int) int { return status } }

// callback are the headers of a call that may be accepted.
func (a *api) callback(heartbeat string) []string {
	return []string{"Solotick-Callback", a.URL + "/v1/runs/r", "Solotick-Callback-Token", "t0ken", "Solotick-Heartbeat", heartbeat}
}

// finished is the app's report.
func (a *api) finished(c *caller) (outcome, detail string) {
	c.Helper()
	select {
	case body := <-a.finishes:
		var report struct{ Outcome, Detail string }
		if err := json.Unmarshal([]byte(body), &report); err != nil {
			c.Errorf("the report %q: %v", body, err)
		}
		return report.Outcome, report.Detail
	case <-time.After(patience):
		c.Fatal("no report came")
		return "", ""
	}
}

// interrupted demands that the app reports work that it has stopped as interrupted, and not as failed: it may be run
// again.
func (a *api) interrupted(c *caller, why string) {
	c.Helper()
	if outcome, detail := a.finished(c); outcome != "interrupted" || !strings.HasPrefix(detail, "stopped: ") || !strings.Contains(detail, why) {
		c.Errorf("it is reported as %s, %q, want that it was interrupted: %s", outcome, detail, why)
	}
}

func answersAJobWithoutAsyncWhenTheWorkIsDone(c *caller) {
	began := time.Now()
	c.wants(http.StatusOK, "a call", "take=100", "k", 1)
	if took := time.Since(began); took < 100*time.Millisecond {
		c.Errorf("it was answered after %s", took)
	}
	if failed := c.wants(http.StatusInternalServerError, "a failure", "fail=disk+full", "l", 1); !strings.Contains(failed.body, "disk full") {
		c.Errorf("a failure is answered with %q", failed.body)
	}
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.app+c.path+"?take=600000", nil)
	if err != nil {
		c.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + secret}, "Solotick-Job": {c.job}, "Idempotency-Key": {c.job + "/m"}}
	var gone sync.WaitGroup
	gone.Go(func() { _, _ = client.Do(r) })
	c.await("the work", func() bool { return c.state().Began == 3 })
	cancel()
	gone.Wait()
	c.await("its end", func() bool { return c.state().Stopped == 1 })
}

func beginsAfterTheFirstHeartbeat(c *caller) {
	a := c.newAPI(func(n int) int {
		if began := c.state().Began; began != 0 && n <= 3 {
			c.Errorf("the work has begun before heartbeat %d was answered", n)
		}
		return []int{cut, http.StatusServiceUnavailable, http.StatusOK}[min(n, 3)-1]
	}, always(http.StatusOK))
	called := time.Now()
	c.wants(http.StatusAccepted, "a call", "take=9500", "k", 1, a.callback("12")...)
	if outcome, detail := a.finished(c); outcome != "succeeded" || detail != "" {
		c.Errorf("it is reported as %s, %q", outcome, detail)
	}
	took := time.Since(called)
	if n := a.beats.Load(); n < 4 || n > 4+int64(took/(4*time.Second)) {
		c.Errorf("%d heartbeats in %s, where each lets it work for 12 s", n, took)
	}
	if s := c.state(); s.Began != 1 || s.Stopped != 0 {
		c.Errorf("%+v", s)
	}
}

func doesNotBeginWithoutLeave(c *caller) {
	answers := map[string]int{"over": http.StatusGone, "unknown": http.StatusNotFound, "unsure": http.StatusServiceUnavailable,
		"silent": cut}
	apis := map[string]*api{}
	for key, status := range answers {
		apis[key] = c.newAPI(always(status), always(http.StatusGone))
		c.wants(http.StatusAccepted, key, "", key, 1, apis[key].callback("9")...)
	}
	for key, status := range answers {
		a := apis[key]
		if status == http.StatusGone || status == http.StatusNotFound {
			a.interrupted(c, fmt.Sprintf("a heartbeat was answered %d", status))
			if n := a.beats.Load(); n != 1 {
				c.Errorf("%s: there were %d heartbeats", key, n)
			}
			continue
		}
		other := &caller{T: c.T, app: c.app, job: c.job} // another handler, with the same keys
		c.await("the end of the call", func() bool { return other.call("codes=200", key, 1).status == http.StatusOK })
		a.interrupted(c, "no heartbeat was answered in time")
		if n := a.beats.Load(); n < 2 {
			c.Errorf("%s: there were %d heartbeats", key, n)
		}
	}
	if s := c.state(); s.Began != 0 {
		c.Errorf("the work has begun: %+v", s)
	}
	a := c.newAPI(always(http.StatusOK), always(http.StatusOK))
	c.wants(http.StatusBadRequest, "no heartbeat", "", "x", 1, a.callback("x")...)
}

// stopsByItsOwnClock: it may work for 21 s from when it sent the first heartbeat. The answer comes late, the next one
// never, and no other one lets it work on. Beside it works one that sent its first heartbeat later, and got its answer
// sooner. That one may work for longer.
func stopsByItsOwnClock(c *caller) {
	const heartbeat, late = 21 * time.Second, 3 * time.Second
	reports := make(chan string, 10)
	begin := func(c *caller, first func()) *api {
		a := c.newAPI(func(n int) int {
			if n == 1 {
				first()
			}
			return []int{http.StatusOK, hangs, http.StatusServiceUnavailable}[min(n, 3)-1]
		}, func(int) int {
			reports <- c.job
			return http.StatusGone
		})
		c.wants(http.StatusAccepted, "a call", "take=600000", "k", 1, a.callback("21")...)
		return a
	}
	sent := make(chan time.Time, 1)
	a := begin(c, func() {
		sent <- time.Now()
		time.Sleep(late)
	})
	from := <-sent
	time.Sleep(late / 2)
	other := &caller{T: c.T, language: c.language, app: c.app, job: c.job + "-other", path: c.path}
	b := begin(other, func() {})
	a.interrupted(c, "no heartbeat was answered in time")
	if took := time.Since(from); took < heartbeat*4/5 {
		c.Errorf("it stopped %s after the first heartbeat was sent", took)
	}
	b.interrupted(c, "no heartbeat was answered in time")
	if first := <-reports; first != c.job {
		c.Error("it counts its time from the answer to a heartbeat, and not from its sending")
	}
	for _, c := range []*caller{c, other} {
		if s := c.state(); s.Stopped != 1 {
			c.Errorf("%+v", s)
		}
	}
}

func stopsWhenItIsToldTo(c *caller) {
	a := c.newAPI(func(n int) int { return []int{http.StatusOK, http.StatusGone}[min(n, 2)-1] }, always(http.StatusOK))
	c.wants(http.StatusAccepted, "a call", "take=600000", "k", 1, a.callback("15")...)
	a.interrupted(c, `answered 410 {"error": "for a reason"}`)
	if n := a.beats.Load(); n != 2 {
		c.Errorf("it sent %d heartbeats, the second of which told it to stop", n)
	}
	if s := c.state(); s.Stopped != 1 {
		c.Errorf("%+v", s)
	}
}

func repeatsAReportThatIsLost(c *caller) {
	a := c.newAPI(always(http.StatusOK), func(n int) int { return []int{cut, http.StatusServiceUnavailable, http.StatusOK}[min(n, 3)-1] })
	c.wants(http.StatusAccepted, "a call", "fail=disk+full", "k", 1, a.callback("15")...)
	for n := range 3 {
		if outcome, detail := a.finished(c); outcome != "failed" || detail != "disk full" {
			c.Errorf("report %d is %s, %q", n+1, outcome, detail)
		}
	}
	time.Sleep(300 * time.Millisecond)
	if len(a.finishes) != 0 {
		c.Error("it was reported again after an answer")
	}
}

func keepsItsKeyUntilTheWorkEnds(c *caller) {
	a := c.newAPI(always(http.StatusOK), always(http.StatusOK))
	ends := func(want string) string {
		outcome, detail := a.finished(c)
		if outcome != want {
			c.Errorf("it is reported as %s, %q", outcome, detail)
		}
		return detail
	}
	c.wants(http.StatusAccepted, "a call", "take=2000&fail=disk+full", "k", 5, a.callback("15")...)
	c.wants(http.StatusConflict, "while it works", "", "k", 5, a.callback("15")...)
	ends("failed")
	c.wants(http.StatusAccepted, "after a failure", "take=400", "k", 5, a.callback("15")...)
	ends("succeeded")
	c.wants(http.StatusOK, "when it has succeeded", "", "k", 6, a.callback("15")...)
	if s := c.state(); s.Began != 2 {
		c.Errorf("%+v", s)
	}
	c.wants(http.StatusAccepted, "another tick", "take=3000", "l", 6, a.callback("15")...)
	c.wants(http.StatusAccepted, "a takeover", "take=100", "l", 7, a.callback("15")...)
	ends("succeeded")
	ends("succeeded")
	c.wants(http.StatusOK, "when both have ended", "", "l", 7, a.callback("15")...)

	c.wants(http.StatusAccepted, "a call whose end cannot be kept", "", "no-end", 7, a.callback("15")...)
	if detail := ends("failed"); !strings.Contains(detail, "the store of keys does not answer") {
		c.Errorf("the detail is %q", detail)
	}
}

// worksForARealReplica, which sees no end of the work, except by reports.
func worksForARealReplica(c *caller) {
	c.Helper()
	redis := redistest.Start(c)
	table := "admin: \"127.0.0.1:0\"\ndefaults: {timeout: 5m, lock: {ttl: 26s}}\njobs:\n"
	for job, query := range map[string]string{"works": "take=4500", "fails": "take=100&fail=disk+full", "endless": "take=600000", "killed": "take=600000"} {
		table += fmt.Sprintf("  - {name: %s-%s, schedule: \"0 0 1 1 *\", http: {url: \"%s%s?%s\", async: {heartbeat: 12s}, headers: {Authorization: \"Bearer ${SECRET}\"}}}\n",
			c.job, job, c.app, c.path, query)
	}
	one := replicaOf(c.T, redis.URL()+", timeout: 8s", "one", table) // verbs have patience with a busy machine
	solotick := func(args ...string) string {
		out, err := verb(c.T, one, args...).CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			c.Fatal(err)
		}
		return string(out)
	}
	of := func(job string) *caller {
		return &caller{T: c.T, language: c.language, app: c.app, job: c.job + "-" + job, path: c.path}
	}
	begun := func(job string) *caller {
		of := of(job)
		if out := solotick("trigger", of.job); !strings.Contains(out, "triggered") {
			c.Fatal(out)
		}
		c.await("the work of "+of.job, func() bool { return of.state().Began == 1 })
		return of
	}
	c.await("the replica", func() bool { return strings.Contains(solotick("status", "--check"), "1/1 replicas ready") })

	works, endless := begun("works"), begun("endless")
	if out := solotick("cancel", endless.job); !strings.Contains(out, "cancelled "+endless.job) {
		c.Error(out)
	}
	c.await("the end of the cancelled work", func() bool { return endless.state().Stopped == 1 })
	begun("fails")
	for job, want := range map[string]string{"works": "succeeded", "endless": "cancelled", "fails": "disk full"} {
		c.await("the end of "+job, func() bool { return strings.Contains(solotick("history", of(job).job), want) })
	}
	if s := works.state(); s.Began != 1 || s.Stopped != 0 {
		c.Errorf("the work that succeeded: %+v", s)
	}
	killed := begun("killed")
	if err := one.Process.Kill(); err != nil {
		c.Fatal(err)
	}
	c.await("the end of the work whose replica was killed", func() bool { return killed.state().Stopped == 1 })
}

// TestAShutdownEndsWithinAHeartbeatAfterItsGrace: the app is told to end its work, or must have stopped by then.
// Kubernetes needs to know how long that takes (docs/kubernetes.md). The job's timeout is far away, so a replica that
// waits for it is noticed.
func TestAShutdownEndsWithinAHeartbeatAfterItsGrace(t *testing.T) {
	const grace, heartbeat = time.Second, 3 * time.Second
	for _, app := range []struct {
		name string
		deaf bool // the app does not stop
	}{{"it stops", false}, {"it does not stop", true}} {
		t.Run(app.name, func(t *testing.T) {
			t.Parallel()
			redis := redistest.Start(t)
			begun, over, why := make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
			work := &handlers.Long{Work: func(ctx context.Context, _ *http.Request) error {
				begun <- struct{}{}
				<-ctx.Done()
				why <- context.Cause(ctx)
				if app.deaf {
					<-over
				}
				return ctx.Err()
			}}
			server := httptest.NewServer(handlers.Middleware(secret, &handlers.Memory{}, work))
			t.Cleanup(server.Close)
			t.Cleanup(work.Wait)
			one := replicaOf(t, redis.URL(), "one", fmt.Sprintf("admin: \"127.0.0.1:0\"\nshutdownGrace: %s\njobs:\n  - {name: work, schedule: \"* * * * * *\", timeout: 1h, "+
				"http: {url: %q, async: {heartbeat: %s}, headers: {Authorization: \"Bearer ${SECRET}\"}}}\n",
				grace, server.URL, heartbeat))
			t.Cleanup(func() { close(over) })
			select {
			case <-begun:
			case <-time.After(patience):
				t.Fatal("the work has not begun")
			}
			told := time.Now()
			if err := one.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			late := time.AfterFunc(patience, func() { _ = one.Process.Kill() })
			defer late.Stop()
			if state, err := one.Process.Wait(); err != nil || !state.Success() {
				t.Fatalf("it did not end in order within %s: %v, %v", patience, state, err)
			}
			least := grace
			if app.deaf {
				least += heartbeat / 2
			}
			if took := time.Since(told); took < least {
				t.Errorf("it took %s, want %s at least", took, least)
			}
			if err := <-why; err == nil || !strings.Contains(err.Error(), "a heartbeat was answered 410") {
				t.Errorf("the app was not told to stop by the answer to a heartbeat: %v", err)
			}
			out, err := verb(t, one, "history").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "shutdown") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
