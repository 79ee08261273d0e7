// Package skew runs two versions of Solotick beside each other on one Redis: the release before, and this tree. That is
// what a rolling update does, and a rollback.
package skew

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/needs"
	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/results"
	"github.com/solotick/solotick/internal/testing/rig"
)

// release names the release before: a tag, or a commit while there is none.
const release = "testdata/release"

// before builds the release before from the history of this repository. A clone without history cannot be tried.
func before(t *testing.T, root, out string) {
	t.Helper()
	raw, err := os.ReadFile(release)
	if err != nil {
		t.Fatal(err)
	}
	id, source := strings.TrimSpace(string(raw)), t.TempDir()
	archive := exec.Command("sh", "-c", `git archive --format=tar "$1" | tar -x -C "$2"`, "sh", id, source)
	archive.Dir = root
	said, err := archive.CombinedOutput()
	if _, missing := os.Stat(filepath.Join(source, "go.mod")); err == nil && missing == nil {
		if err := rig.Build(source, rig.Package, out); err != nil {
			t.Fatal(err)
		}
		return
	}
	shallow, _ := exec.Command("git", "-C", root, "rev-parse", "--is-shallow-repository").Output()
	if strings.TrimSpace(string(shallow)) == "false" {
		t.Fatalf("%s is not in the history: %v\n%s", id, err, said)
	}
	needs.That(t, "the history of the repository", fmt.Errorf("the release before (%s) is not in it: %v\n%s", id, err, said))
}

// patience is for what must come, on a busy machine.
const patience = time.Minute

const table = `
service: shop
redis: {url: %[1]q, timeout: 5s}
listen: ""
admin: ""
jobs:
  - {name: second, schedule: "@every 1s", missed: all, http: {url: %[2]q}}
  - {name: long, schedule: "@every 4s", guarantee: at-least-once, http: {url: %[3]q}}
  - {name: held, schedule: "@every 1s", http: {url: %[4]q}}
`

// world is a service whose replicas are of two versions.
type world struct {
	t      *testing.T
	dir    string
	app    *rig.App
	binary map[string]string // by version
	at     map[string]*rig.Process
}

func (w *world) table() string { return filepath.Join(w.dir, "table.yaml") }

// begin starts a replica of a version, and waits until it takes ticks.
func (w *world) begin(name, version string) {
	w.t.Helper()
	log := filepath.Join(w.dir, name+"-"+version+".log")
	p, err := rig.Launch(name, log, nil, w.binary[version], "run", "-c", w.table(), "--replica", name)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(p.Kill)
	w.at[name] = p
	w.until(version+" "+name+" takes ticks", func() bool {
		said, _ := os.ReadFile(log)
		return bytes.Contains(said, []byte("taking ticks"))
	})
}

// change puts a replica of another version in the place of one, as a rolling update does.
func (w *world) change(name, version string) {
	w.t.Helper()
	if err := w.at[name].Stop(patience); err != nil {
		w.t.Fatal(err)
	}
	w.begin(name, version)
	n := w.app.Count()
	w.until("calls go on", func() bool { return w.app.Count() > n+2 })
}

func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	if err := rig.Until(patience, what, so); err != nil {
		w.t.Fatal(err)
	}
}

// run runs a verb of a version.
func (w *world) run(version string, args ...string) []byte {
	w.t.Helper()
	cmd := exec.Command(w.binary[version], append(args, "-c", w.table())...)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		w.t.Errorf("%s %s: %v\n%s", version, strings.Join(args, " "), err, errOut.String())
	}
	return out
}

// agree checks that all replicas are there, ready, and of one table.
func (w *world) agree(version string) {
	w.t.Helper()
	w.until("three replicas of one table, for "+version, func() bool {
		var s struct {
			Drift    bool
			Replicas []struct{ Ready bool }
		}
		if err := json.Unmarshal(w.run(version, "status", "-o", "json"), &s); err != nil {
			w.t.Fatal(err)
		}
		ready := slices.DeleteFunc(s.Replicas, func(r struct{ Ready bool }) bool { return !r.Ready })
		return !s.Drift && len(ready) == 3
	})
}

// once checks that each tick of a job was called once from the first call to the last, with the given period.
func (w *world) once(job string, period time.Duration, least int) {
	w.t.Helper()
	called := map[time.Time]int{}
	var ticks []time.Time
	for _, r := range w.app.Seen() {
		if r.Job == job {
			if called[r.Tick]++; called[r.Tick] == 1 {
				ticks = append(ticks, r.Tick)
			} else {
				w.t.Errorf("%s: %s was called %d times", job, r.Tick, called[r.Tick])
			}
		}
	}
	slices.SortFunc(ticks, time.Time.Compare)
	for i := 1; i < len(ticks); i++ {
		if gap := ticks[i].Sub(ticks[i-1]); gap != period {
			w.t.Errorf("%s: nothing was called for %s from %s", job, gap, ticks[i-1])
		}
	}
	if len(ticks) < least {
		w.t.Errorf("%s: only %d ticks", job, len(ticks))
	}
}

// TestAnUpdateAndARollbackLoseAndDoubleNothing: replicas are exchanged one by one, for newer ones and back. One version
// reads all that the other has written: claims, runs, timers, pauses.
func TestAnUpdateAndARollbackLoseAndDoubleNothing(t *testing.T) {
	run := results.Of(t, "go -C proof test ./skew")
	root, err := rig.Root()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir(), binary: map[string]string{}, at: map[string]*rig.Process{}}
	for _, version := range []string{"old", "new"} {
		w.binary[version] = filepath.Join(w.dir, version)
	}
	before(t, root, w.binary["old"])
	if err := rig.Build(root, rig.Package, w.binary["new"]); err != nil {
		t.Fatal(err)
	}
	if w.app, err = rig.StartApp(); err != nil {
		t.Fatal(err)
	}
	defer w.app.Close()
	text := fmt.Sprintf(table, redistest.Start(t).URL(), w.app.URL("second", 10*time.Millisecond), w.app.URL("long", 2500*time.Millisecond),
		w.app.URL("held", 0))
	if err := os.WriteFile(w.table(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	names := []string{"one", "two", "three"}
	for _, name := range names {
		w.begin(name, "old")
	}
	w.run("old", "pause", "held", "--reason", "an update")
	w.run("old", "timer", "set", "of-old", "--after", "10s", "--url", w.app.URL("timer:of-old", 0))
	held := func(from time.Time) (n int) {
		for _, r := range w.app.Seen() {
			if r.Job == "held" && r.Tick.After(from) {
				n++
			}
		}
		return n
	}
	paused := time.Now().Add(time.Second) // a tick may be claimed before it comes

	for _, name := range names {
		w.change(name, "new")
		w.agree("old")
		w.agree("new")
	}
	if n := held(paused); n != 0 {
		t.Errorf("a paused job was called %d times by the other version", n)
	}
	resumed := time.Now()
	w.run("new", "resume", "held")
	w.run("new", "timer", "set", "of-new", "--after", "8s", "--url", w.app.URL("timer:of-new", 0))
	for _, name := range names {
		w.change(name, "old")
		w.agree("old")
		w.agree("new")
	}
	w.until("timers are fired", func() bool {
		n := 0
		for _, r := range w.app.Seen() {
			if strings.HasPrefix(r.Job, "timer:") {
				n++
			}
		}
		return n >= 2
	})
	for _, name := range names {
		if err := w.at[name].Stop(patience); err != nil {
			t.Error(err)
		}
	}
	w.once("second", time.Second, 8)
	w.once("long", 4*time.Second, 2)
	w.once("timer:of-old", 0, 1)
	w.once("timer:of-new", 0, 1)
	if n := held(resumed); n == 0 {
		t.Error("what the new version resumed is still paused")
	}
	if odd := w.app.Odd(); len(odd) > 0 {
		t.Errorf("odd calls: %q", odd)
	}
	run.Add(2*len(names), "replicas exchanged")
	run.Add(len(w.app.Seen()), "ticks and timers fired")
}
