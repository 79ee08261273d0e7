package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/rig"
)

// long is a service with one job, whose app accepts each run and ends it by a report. The app is the rig's: it writes
// down when it worked, and it works only while it may.
type long struct {
	t     *testing.T
	redis *redistest.Server
	app   *rig.App
	job   string // the job's keys, in flow style
	grace time.Duration
	table string // of the replica that was started last
}

// reportedJob has a ttl and a heartbeat that a busy machine keeps up with. unscheduled is a schedule whose ticks are
// years apart, so that no tick comes during a test.
const (
	reportedJob = `name: long, lock: {ttl: 12s, safetyDelay: 0s}, http: {url: %q, async: {heartbeat: 5s}}, `
	unscheduled = `schedule: "0 0 29 2 *", `
)

// newLong makes a service whose job takes so long.
func newLong(t *testing.T, take time.Duration, keys string) *long {
	t.Helper()
	app, err := rig.StartApp()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	return &long{t: t, redis: redistest.Start(t), app: app, job: fmt.Sprintf(reportedJob, app.URL("long", take)+"&async=true") + keys, grace: 40 * time.Second}
}

// start starts a replica in a place of its own, and returns how it is started there again.
func (l *long) start(name string) (r *replica, again func() *replica) {
	l.t.Helper()
	dir := l.t.TempDir()
	l.table = filepath.Join(dir, "table.yaml")
	text := fmt.Sprintf("service: shop\nredis: {url: %q, timeout: 4s}\nlisten: \"\"\nadmin: %q\nshutdownGrace: %s\njobs: [{%s}]\n",
		l.redis.URL(), rig.FreeAddr(l.t), l.grace, l.job)
	if err := os.WriteFile(l.table, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	table := l.table
	again = func() *replica {
		cmd := exec.Command("solotick", "run", "-c", table, "--state-dir", filepath.Join(dir, "state"), "--log-format", "json", "--replica", name)
		cmd.Env = bareEnv()
		return start(l.t, cmd)
	}
	r = again()
	r.await("taking ticks")
	return r, again
}

// call waits for the call of that number, from 0, and until its work is as it is wanted.
func (l *long) call(n int, what string, wanted func(*rig.Request) bool) rig.Request {
	l.t.Helper()
	var q rig.Request
	if err := rig.Until(patience, fmt.Sprintf("call %d: %s", n, what), func() bool {
		seen := l.app.Seen()
		if len(seen) <= n {
			return false
		}
		q = seen[n]
		return wanted(&q)
	}); err != nil {
		l.t.Fatalf("%v; the app was asked %+v", err, l.app.Seen())
	}
	return q
}

// beats waits until the app has worked for so long, and then for its next heartbeat, after which it may work for the
// longest time.
func (l *long) beats(n int, worked time.Duration) rig.Request {
	l.t.Helper()
	last := l.call(n, "its work", func(q *rig.Request) bool { return !q.Work.Began.IsZero() && q.Work.Until.Sub(q.Work.Began) > worked }).Work.Until
	return l.call(n, "its next heartbeat", func(q *rig.Request) bool { return q.Work.Until.After(last) })
}

// done waits until the app has said how a call's work ended, or has given that up without an answer.
func (l *long) done(n int) rig.Request {
	l.t.Helper()
	return l.call(n, "its end", func(q *rig.Request) bool { return q.Left || q.Work.Answer != 0 })
}

// cli runs a verb with the table.
func (l *long) cli(verb string, args ...string) string {
	l.t.Helper()
	out, err := exec.Command("solotick", append([]string{verb, "-c", l.table, "long"}, args...)...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("%s: %v: %s", verb, err, out)
	}
	return string(out)
}

// outcomes waits until the history has so many runs, and returns how they ended, the newest first.
func (l *long) outcomes(least int) (all []string) {
	l.t.Helper()
	if err := rig.Until(patience, "the history", func() bool {
		var runs []struct{ Outcome, Run string }
		if err := json.Unmarshal([]byte(l.cli("history", "-o", "json")), &runs); err != nil {
			l.t.Fatal(err)
		}
		all = nil
		for _, r := range runs {
			if r.Run != "" { // else ticks overlapped
				all = append(all, r.Outcome)
			}
		}
		return len(all) >= least
	}); err != nil {
		l.t.Fatalf("%v: %v", err, all)
	}
	return all
}

// apart checks that each app was called only after the work before had ended.
func (l *long) apart() {
	l.t.Helper()
	seen := l.app.Seen()
	for i := 1; i < len(seen); i++ {
		if before := seen[i-1].Work; seen[i].Arrived.Before(before.Ended) || before.Ended.IsZero() {
			l.t.Errorf("call %d came at %s, and the app might work on the one before until %s:\n%+v\n%+v", i, seen[i].Arrived, before.Ended, seen[i-1], seen[i])
		}
	}
	if odd := l.app.Odd(); len(odd) > 0 {
		l.t.Errorf("the app got %q", odd)
	}
}

func TestALongRunOfAReplicaThatIsKilledAndRestartedInItsPlaceIsRunAgainWhenItsAppHasStopped(t *testing.T) {
	t.Parallel()
	l := newLong(t, 10*time.Second, unscheduled+`guarantee: at-least-once`)
	replicas, again := map[string]*replica{}, map[string]func() *replica{}
	for _, name := range []string{"one", "two"} {
		replicas[name], again[name] = l.start(name)
	}
	l.cli("trigger")
	first := l.beats(0, 0)
	replicas[first.Replica].kill()
	killed := time.Now()
	replicas[first.Replica] = again[first.Replica]()

	// The process in the same place has the address, and does not know the token.
	var code int
	if err := rig.Until(patience, "an answer to the old token", func() bool {
		req, err := http.NewRequest(http.MethodPost, first.Callback+"/heartbeat", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+first.Secret)
		req.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		answer.Body.Close()
		code = answer.StatusCode
		return true
	}); err != nil || code != http.StatusNotFound {
		t.Errorf("the answer to the old token is %d, %v", code, err)
	}
	second := l.done(1)
	l.apart()
	first = l.app.Seen()[0]
	if after := second.Arrived.Sub(killed); after < 2*time.Second { // the lease was renewed less than 10 s before
		t.Errorf("the run was taken over %s after the kill", after)
	}
	if first.Work.Report == "succeeded" || second.Work.Report != "succeeded" || second.Work.Answer != http.StatusOK ||
		second.Attempt != 2 || second.Token <= first.Token || !second.Tick.Equal(first.Tick) {
		t.Errorf("the app was asked\n%+v\n%+v", first, second)
	}
	if got := l.outcomes(2); !slices.Equal(got, []string{"succeeded", "interrupted"}) {
		t.Errorf("the runs ended %v", got)
	}
	if text := l.cli("history"); !strings.Contains(text, "interrupted") || !strings.Contains(text, "succeeded") {
		t.Errorf("the history is\n%s", text)
	}
}

func TestTheTickAfterALongRunThatIsCancelledBeginsWhenItsAppHasStopped(t *testing.T) {
	t.Parallel()
	l := newLong(t, time.Minute, `schedule: "@every 1s", concurrencyPolicy: Queue`) // so the next tick waits for nothing else
	l.start("one")
	l.beats(0, 2*time.Second)
	l.cli("cancel", "--reason", "it fills the disk")
	first := l.done(0)
	if first.Work.Stop != http.StatusGone || !strings.Contains(first.Work.Why, "cancelled") {
		t.Errorf("the app was told %d: %s", first.Work.Stop, first.Work.Why)
	}
	l.beats(1, 0)
	l.apart()
	if got := l.outcomes(1); got[0] != "cancelled" {
		t.Errorf("the run ended as %v", got)
	}
}

func TestANewerTickReplacesALongRunWhenItsAppHasStopped(t *testing.T) {
	t.Parallel()
	l := newLong(t, time.Minute, `schedule: "@every 7s", concurrencyPolicy: Replace`)
	l.start("one")
	l.beats(2, 0)
	l.apart()
	for n := range 2 {
		if q := l.done(n); q.Work.Stop != http.StatusGone || !strings.Contains(q.Work.Why, "tick") {
			t.Errorf("the app was told %d: %s", q.Work.Stop, q.Work.Why)
		}
	}
	if got := l.outcomes(2); got[0] != "replaced" || got[1] != "replaced" {
		t.Errorf("the runs ended as %v", got)
	}
}

func TestALongRunGoesOnWhileItsReplicaDrains(t *testing.T) {
	t.Parallel()
	l := newLong(t, 8*time.Second, `schedule: "@every 1s"`)
	r, _ := l.start("one")
	l.beats(0, 0)
	r.stop()
	q := l.done(0)
	if q.Work.Report != "succeeded" || q.Work.Answer != http.StatusOK {
		t.Errorf("%+v", q)
	}
	if got := l.outcomes(1); !slices.Equal(got, []string{"succeeded"}) {
		t.Errorf("the runs ended as %v", got)
	}
}

func TestALongRunThatTheShutdownCutsOffIsRunAgainWhenItsAppHasStopped(t *testing.T) {
	t.Parallel()
	l := newLong(t, time.Minute, unscheduled+`guarantee: at-least-once`)
	l.grace = time.Second
	replicas := map[string]*replica{}
	for _, name := range []string{"one", "two"} {
		replicas[name], _ = l.start(name)
	}
	l.cli("trigger")
	first := l.beats(0, 0)
	replicas[first.Replica].signal(syscall.SIGTERM)
	if code := replicas[first.Replica].wait(); code != 0 {
		t.Errorf("the replica ended with exit code %d", code)
	}
	second := l.beats(1, 0)
	l.apart()
	if first = l.done(0); first.Work.Stop != http.StatusGone || !strings.Contains(first.Work.Why, "shut") || first.Work.Answer != http.StatusOK {
		t.Errorf("the app was told %d: %s, and its report was answered by %d", first.Work.Stop, first.Work.Why, first.Work.Answer)
	}
	if second.Attempt != 2 || second.Replica == first.Replica || second.Token <= first.Token {
		t.Errorf("the app was asked\n%+v\n%+v", first, second)
	}
	if got := l.outcomes(1); !slices.Equal(got, []string{"shutdown"}) {
		t.Errorf("the runs ended as %v", got)
	}
}
