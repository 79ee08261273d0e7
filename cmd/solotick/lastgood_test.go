package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/rig"
	"github.com/solotick/solotick/sidecar"
	"github.com/solotick/solotick/sidecar/view"
)

// place has a table and a state directory, where the test starts a replica again and again.
type place struct {
	t            *testing.T
	table, state string
	env          []string
}

func newPlace(t *testing.T) *place {
	dir := t.TempDir()
	return &place{
		t: t, table: filepath.Join(dir, "table.yaml"), state: filepath.Join(dir, "state", "solotick"),
		env: bareEnv(),
	}
}

func (p *place) write(table string) {
	p.t.Helper()
	if err := os.WriteFile(p.table, []byte(table), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) start() *replica {
	cmd := exec.Command("solotick", "run", "-c", p.table, "--state-dir", p.state, "--log-format", "json", "--replica", "one")
	cmd.Env = p.env
	return start(p.t, cmd)
}

// A new place has none, which is no second error.
func TestAPlaceWithoutALastGoodTableIsNoError(t *testing.T) {
	if table, err := stateDir(t.TempDir()).last("table.yaml"); table != nil || err != nil {
		t.Errorf("%v, %v", table, err)
	}
}

func TestARestartInTheSamePlaceGoesOnWithTheLastGoodTable(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPlace(t)
	good, broken := fmt.Sprintf(saying, s.URL(), "good"), strings.Replace(fmt.Sprintf(saying, s.URL(), "bad"), "schedule", "shedule", 1)
	p.write(good)
	r := p.start()
	r.await("serving " + servesHealth)
	if kept, err := os.ReadFile(filepath.Join(p.state, lastGood)); err != nil || string(kept) != good {
		t.Errorf("%v, kept when the replica begins is\n%s", err, kept)
	}
	r.await("good")
	if code, body := r.get("/readyz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/readyz: %d %q", code, body)
	}
	_, before := r.get("/metrics")
	p.write(broken)
	r.await("the table is not reloaded: the one before stays in force")
	r.kill()

	r = p.start()
	r.await("taking ticks") // its clock begins a moment after it serves
	code, body := r.get("/healthz")
	if !strings.HasPrefix(body, "ok\nthe table in force is not") { // from the start, and not from the first look at the file
		t.Errorf("/healthz: %d %q", code, body)
	}
	told := r.await("the table cannot be used: going on with the last good one",
		"level", "ERROR", "file", p.table, "lastGood", filepath.Join(p.state, lastGood))
	if told.text("table") != hash(before) {
		t.Errorf("the table that it goes on with is %s, want %s", told.text("table"), hash(before))
	}
	if problem := r.await("problem in the table"); !strings.Contains(problem.text("err"), "shedule") {
		t.Errorf("the problem is told as %v", problem)
	}
	r.await("good")
	if code, body := r.get("/readyz"); code != http.StatusOK || !strings.HasPrefix(body, "ok\nthe table in force is not what its file says") {
		t.Errorf("/readyz: %d %q", code, body)
	}
	if _, now := r.get("/metrics"); hash(now) != hash(before) || figure(t, now, "solotick_table_last_reload_successful") != 0 {
		t.Error("the metrics do not tell that another table is in force than the file's")
	}
	elsewhere := filepath.Join(t.TempDir(), "table.yaml")
	if err := os.WriteFile(elsewhere, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "status to tell why", func() bool { // by a heartbeat of this process
		text, err := exec.Command("solotick", "status", "-c", elsewhere, "-o", "json").Output()
		var shown view.Status
		if err == nil {
			err = json.Unmarshal(text, &shown)
		}
		if err != nil || len(shown.Replicas) != 1 || shown.Drift {
			t.Fatalf("status: %v, %+v, drift %v", err, shown.Replicas, shown.Drift)
		}
		return strings.Contains(shown.Replicas[0].Reload, "shedule")
	})

	p.write(fmt.Sprintf(saying, s.URL(), "mended"))
	r.await("mended")
	if code, body := r.get("/readyz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/readyz with the mended table: %d %q", code, body)
	}
	r.stop()
	p.write(broken)
	r = p.start()
	r.await("mended")
	r.stop()
	if err := os.Remove(p.table); err != nil {
		t.Fatal(err)
	}
	r = p.start()
	r.await("mended")
	r.stop()
	if left, err := os.ReadDir(p.state); err != nil || len(left) != 1 {
		t.Errorf("left in the state directory: %v, %v", left, err)
	}
}

func TestANewPlaceRefusesABrokenTable(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("service: shop\nredis: {url: embedded}\njobs: [{name: a, shedule: x}]\n")
	r := p.start()
	if code := r.wait(); code != exitProblem {
		t.Errorf("exit code %d, want %d", code, exitProblem)
	}
	if said := strings.Join(r.raw, "\n"); !strings.Contains(said, "shedule") {
		t.Errorf("it said %s", said)
	}
	if left, _ := os.ReadDir(p.state); len(left) != 0 {
		t.Errorf("left in the state directory: %v", left)
	}
}

func TestTheLastGoodTableOfAnotherServiceIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPlace(t)
	p.write(fmt.Sprintf(saying, s.URL(), "of the shop"))
	r := p.start()
	r.await("of the shop")
	r.stop()
	for _, table := range []string{
		"service: bakery\nredis: {url: embedded}\njobs: [{name: a, shedule: x}]\n",
		"service: bakery\nredis: {url: embedded}\njobs: [{name: a\n", // no YAML
	} {
		p.write(table)
		r = p.start()
		if code := r.wait(); code != exitProblem {
			t.Errorf("exit code %d, want %d", code, exitProblem)
		}
		if l := r.await("the last good table cannot be used either"); l.text("err") != "it is of the service \"shop\"" {
			t.Errorf("told as %q", l.text("err"))
		}
	}
	p.write("redis: {url: embedded}\n") // which tells no service
	r = p.start()
	r.await("of the shop")
	r.stop()
}

func TestAPlaceThatAnotherProcessHoldsHasNoTableForThisOne(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPlace(t)
	good := fmt.Sprintf(saying, s.URL(), "of the shop")
	p.write(good)
	p.start().await("of the shop")
	kept := func() string {
		text, err := os.ReadFile(filepath.Join(p.state, lastGood))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}

	other := strings.Replace(fmt.Sprintf(saying, s.URL(), "of the bakery"), "service: shop", "service: bakery", 1)
	p.table += ".bakery"
	p.write(other)
	second := p.start()
	second.await("of the bakery")
	if kept() != good {
		t.Error("a process that does not hold the place has written its table there")
	}
	p.write(strings.Replace(other, "of the bakery", "of the new bakery", 1))
	second.await("of the new bakery") // it runs a tick after the reload
	if kept() != good {
		t.Error("a process that does not hold the place has written its table there at a reload")
	}
	second.stop()

	p.write(strings.Replace(good, "schedule", "shedule", 1))
	third := p.start()
	if code := third.wait(); code != exitProblem {
		t.Errorf("with a broken table, a process that does not hold the place ends with code %d, want %d", code, exitProblem)
	}
}

func TestTheLastGoodTableIsKeptAsItWasWritten(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPlace(t)
	p.env = append(p.env, "SAY=hunter2")
	table := fmt.Sprintf(saying, s.URL(), "${SAY}")
	p.write(table)
	r := p.start()
	r.await("hunter2")
	r.stop()
	kept, err := os.ReadFile(filepath.Join(p.state, lastGood))
	if err != nil || string(kept) != table {
		t.Errorf("%v, kept is\n%s", err, kept)
	}
	if info, err := os.Stat(filepath.Join(p.state, lastGood)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}

	p.write("jobs: none")
	p.env = p.env[:1] // and the variable has gone, too
	r = p.start()
	if code := r.wait(); code != exitProblem {
		t.Errorf("exit code %d, want %d", code, exitProblem)
	}
	r.await("the last good table cannot be used either")
}

func TestAStateDirectoryThatCannotBeWrittenIsToldAndNoReasonToStop(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPlace(t)
	p.write(fmt.Sprintf(saying, s.URL(), "well"))
	p.state = filepath.Join(p.table, "no-directory")
	r := p.start()
	r.await("the last good table is not kept: with a broken table, a restart would fail", "level", "ERROR")
	r.await("well")
	r.stop()
}

// Others may write to the state directory, as to an emptyDir.
func TestNothingThatIsPlantedInTheStateDirectoryIsUsedOrWaitedFor(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPlace(t)
	victim := filepath.Join(t.TempDir(), "victim")
	good := fmt.Sprintf(saying, s.URL(), "well")
	for _, err := range []error{os.MkdirAll(p.state, 0o700), os.WriteFile(victim, []byte("precious"), 0o600),
		os.Symlink(victim, filepath.Join(p.state, "instance")), syscall.Mkfifo(filepath.Join(p.state, lastGood), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p.write(good)
	r := p.start()
	r.await("restarts in place are not noticed: runs that a crash cuts short are taken over when their leases are over")
	r.await("well")
	r.stop()
	if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
		t.Errorf("the file behind the link holds %q, %v", text, err)
	}
	if kept, err := os.ReadFile(filepath.Join(p.state, lastGood)); err != nil || string(kept) != good {
		t.Errorf("%v, kept is\n%s", err, kept)
	}

	if err := os.Chmod(filepath.Join(p.state, lastGood), 0o606); err != nil { // as if others had written it
		t.Fatal(err)
	}
	p.write("jobs: none")
	r = p.start()
	if code := r.wait(); code != exitProblem {
		t.Errorf("exit code %d, want %d", code, exitProblem)
	}
	r.await("the last good table cannot be used either")
}

// anyway starts a replica that may have no table. Its endpoints are at an address that it is told.
func (p *place) anyway(listen string) *replica {
	cmd := exec.Command("solotick", "run", "-c", p.table, "--start-anyway", "--listen", listen, "--state-dir", p.state,
		"--log-format", "json", "--replica", "new")
	cmd.Env = append(p.env, hurryVariable+"=1")
	return start(p.t, cmd)
}

// awaitTimes waits until the log has a message that many times.
func (r *replica) awaitTimes(msg string, times int) {
	r.t.Helper()
	r.awaitLine(fmt.Sprintf("%q for time %d", msg, times), func(l line) bool {
		if l.is(msg) {
			times--
		}
		return times == 0
	})
}

func TestAReplicaThatStartsAnywayFiresNothingUntilItsTableIsMended(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPlace(t)
	good := fmt.Sprintf(saying, s.URL(), "mended")
	const noTable = "there is no table that can be used: nothing is fired here"
	p.write(strings.Replace(good, "schedule", "shedule", 1))
	r := p.anyway("127.0.0.1:0")
	r.await(noTable, "level", "ERROR")
	r.awaitTimes(noTable, 4) // at the start, at the first look, and then again and again
	if problem := r.await("problem in the table"); !strings.Contains(problem.text("err"), "shedule") {
		t.Errorf("the problem is told as %v", problem)
	}
	eventually(t, "the replica to be ready for the sake of its app", func() bool {
		code, body := r.get("/readyz")
		return code == http.StatusOK && body == "ok\n"+noTable+"\n"
	})
	if _, text := r.get("/metrics"); figure(t, text, "solotick_table_last_reload_successful") != 0 {
		t.Error("the metric says that the table is well")
	}

	elsewhere := filepath.Join(t.TempDir(), "table.yaml")
	if err := os.WriteFile(elsewhere, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	// A timer is no job of a table, and waits for a replica that has one all the same.
	var mended atomic.Bool
	called := make(chan bool, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called <- mended.Load() }))
	defer receiver.Close()
	timer := exec.Command("solotick", "timer", "set", "-c", elsewhere, "t1", "--after", "1s", "--url", receiver.URL)
	if out, err := timer.CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	var shown view.Status
	eventually(t, "status to tell why", func() bool {
		text, err := exec.Command("solotick", "status", "-c", elsewhere, "-o", "json").Output()
		if err == nil {
			err = json.Unmarshal(text, &shown)
		}
		if err != nil {
			t.Fatal(err)
		}
		return len(shown.Replicas) == 1 && strings.Contains(shown.Replicas[0].Reload, "shedule")
	})
	if got := shown.Replicas[0].NotReady; got != noTable || shown.Summary.Ready != 0 {
		t.Errorf("not ready because %q, %d are ready", got, shown.Summary.Ready)
	}

	r.awaitTimes(noTable, 40) // of which ten are a second
	for _, l := range r.soFar() {
		if l.is("taking ticks") {
			t.Error("it says that it takes ticks")
		}
	}
	mended.Store(true)
	p.write(good)
	r.await("mended")
	r.await("taking ticks")
	if !<-called {
		t.Error("a timer was fired without a table")
	}
	if code, body := r.get("/readyz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/readyz with the mended table: %d %q", code, body)
	}
	if kept, err := os.ReadFile(filepath.Join(p.state, lastGood)); err != nil || string(kept) != good {
		t.Errorf("%v, kept is\n%s", err, kept)
	}
}

// A table that is mended, and has another listener than the broken one told, needs a new process; it comes by itself.
func TestAReplicaWithoutATableEndsForOneThatNeedsARestart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPlace(t)
	good := fmt.Sprintf(saying, s.URL(), "mended")
	p.write(strings.Replace(good, "schedule", "shedule", 1))
	r := p.anyway("127.0.0.1:0")
	r.await("there is no table that can be used: nothing is fired here")
	p.write(strings.Replace(good, `admin: ""`, `admin: "127.0.0.1:0"`, 1))
	if code := r.wait(); code != exitProblem { // what restarts it may restart only what failed
		t.Errorf("exit code %d, want %d", code, exitProblem)
	}
	const needs = "the table is mended: admin cannot change while running: restart the replica"
	if last := r.lines[len(r.lines)-1]; !last.is(needs, "level", "ERROR") {
		t.Errorf("its last words are %v", last)
	}
	p.anyway("127.0.0.1:0").await("mended")
}

// The defaults may be another program's, and the mended table would need a restart.
func TestAReplicaThatStartsAnywayServesWhereAFileThatIsNoYAMLSays(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPlace(t)
	good := fmt.Sprintf(saying, s.URL(), "mended")
	p.write(strings.TrimSuffix(good, "}\n"))
	r := p.anyway("")
	if addr := r.await("serving " + servesHealth).text("addr"); !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Errorf("it serves at %s", addr)
	}
	r.await("there is no table that can be used: nothing is fired here")
	p.write(good)
	r.await("mended")
	r.stop()
}

func TestAReplicaThatStartsAnywayServesWithoutAServiceAndARedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPlace(t)
	listen := rig.FreeAddr(t)
	r := p.anyway(listen) // there is no file, either
	r.await("there is no table that can be used: nothing is fired here", "level", "ERROR", "file", p.table)
	get := func(path string) (int, string) {
		answer, err := http.Get("http://" + listen + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	if code, body := get("/readyz"); code != http.StatusOK || body != "ok\n"+sidecar.NoTable+", and no Redis is asked\n" {
		t.Errorf("/readyz: %d %q", code, body)
	}
	if _, text := get("/metrics"); figure(t, text, "solotick_table_last_reload_successful") != 0 {
		t.Error("the metric says that the table is well")
	}
	p.write("service: shop\nredis: {ulr: x}\n")
	p.write(fmt.Sprintf(saying, s.URL(), "mended"))
	r.await("mended")
	if code, body := r.get("/readyz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/readyz with the mended table: %d %q", code, body)
	}
}

func TestCommandsBesideABrokenTableUseTheLastGoodOne(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPlace(t)
	p.write(fmt.Sprintf(saying, s.URL(), "well") + "  - {name: nightly, schedule: \"0 3 * * *\", exec: {command: [\"true\"]}}\n")
	r := p.start()
	r.await("well")
	p.write("service: shop\nredis: {url: " + s.URL() + "}\njobs: [\n")
	status := func(env ...string) (out, warning string) {
		cmd := exec.Command("solotick", "status", "-c", p.table)
		cmd.Env = append(p.env, env...)
		var said strings.Builder
		cmd.Stderr = &said
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, said.String())
		}
		return string(text), said.String()
	}
	out, warning := status(stateVariable + "=" + p.state)
	if !strings.HasPrefix(out, p.table+" has 1 problem · 0 of 2 failing · ") || !strings.Contains(out, "\nnightly ") {
		t.Errorf("status says\n%s", out)
	}
	if want := "warning: " + p.table + " has 1 problem: this command uses the last good table; solotick validate"; !strings.HasPrefix(warning, want) {
		t.Errorf("it warns %q", warning)
	}
	if out, _ = status(); !strings.HasPrefix(out, p.table+" has 1 problem · ") || strings.Contains(out, "nightly") {
		t.Errorf("without a last good table, status says\n%s", out)
	}
	if err := os.Remove(p.table); err != nil { // as a volume that is not there
		t.Fatal(err)
	}
	if out, _ = status(stateVariable + "=" + p.state); !strings.HasPrefix(out, p.table+" cannot be read · 0 of 2 failing · ") {
		t.Errorf("without the file, status says\n%s", out)
	}
}
