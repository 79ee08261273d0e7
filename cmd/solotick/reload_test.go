package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/solotick/solotick/internal/testing/redistest"
)

// saying is a table with one job, which runs every second and prints a word.
const saying = `
service: shop
redis: {url: %q, timeout: 5s}
listen: "127.0.0.1:0"
admin: ""
jobs:
  - {name: say, schedule: "@every 1s", exec: {command: [echo, %q]}}
`

// volume is a ConfigMap as the kubelet mounts it. The file is a link into ..data, which is a link to a directory. For
// each change the kubelet makes a new directory and replaces the link by a rename.
type volume struct {
	t   *testing.T
	dir string
	n   int
}

func (v *volume) write(table string) {
	v.t.Helper()
	v.n++
	stamped := fmt.Sprintf("..2026_11_21_12_00_%02d.1", v.n)
	old, _ := os.Readlink(filepath.Join(v.dir, "..data")) // none at first
	must := func(err error) {
		v.t.Helper()
		if err != nil {
			v.t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(v.dir, stamped), 0o755))
	must(os.WriteFile(filepath.Join(v.dir, stamped, "table.yaml"), []byte(table), 0o644))
	must(os.Symlink(stamped, filepath.Join(v.dir, "..data_tmp")))
	must(os.Rename(filepath.Join(v.dir, "..data_tmp"), filepath.Join(v.dir, "..data")))
	if old == "" {
		must(os.Symlink("..data/table.yaml", filepath.Join(v.dir, "table.yaml")))
	} else {
		must(os.RemoveAll(filepath.Join(v.dir, old)))
	}
}

func TestATableIsReloadedAsTheKubeletSwapsIt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	mounted := &volume{t: t, dir: t.TempDir()}
	mounted.write(fmt.Sprintf(saying, s.URL(), "first"))
	cmd := exec.Command("solotick", "run", "-c", filepath.Join(mounted.dir, "table.yaml"), "--log-format", "json")
	cmd.Env = bareEnv()
	r := start(t, cmd)
	r.await("first")
	_, before := r.get("/metrics")

	mounted.write(fmt.Sprintf(saying, s.URL(), "second"))
	r.await("second")
	if _, now := r.get("/metrics"); hash(now) == hash(before) || figure(t, now, "solotick_table_last_reload_successful") != 1 {
		t.Errorf("table_info %s before and %s now, or the reload is not told as one that succeeded", hash(before), hash(now))
	}

	mounted.write(strings.Replace(fmt.Sprintf(saying, s.URL(), "third"), "schedule", "shedule", 1))
	r.await("the table is not reloaded: the one before stays in force")
	problem := r.await("problem in the table")
	if !strings.Contains(problem.text("err"), "shedule") || fmt.Sprint(problem["line"]) != "7" {
		t.Errorf("the problem is told as %v", problem)
	}
	if _, now := r.get("/metrics"); figure(t, now, "solotick_table_last_reload_successful") != 0 {
		t.Error("the metrics do not tell that the reload failed")
	}

	mounted.write(fmt.Sprintf(saying, s.URL(), "second")) // as the table in force is: the edit is undone
	eventually(t, "the table in force is the file's again", func() bool {
		_, now := r.get("/metrics")
		return figure(t, now, "solotick_table_last_reload_successful") == 1
	})

	mounted.write(strings.Replace(fmt.Sprintf(saying, s.URL(), "fourth"), "shop", "other", 1))
	r.awaitLine("what needs a restart", func(l line) bool {
		return strings.Contains(l.text("err"), "service cannot change while running")
	})

	mounted.write(fmt.Sprintf(saying, s.URL(), "fifth"))
	r.await("fifth")
	r.stop()
	for _, word := range []string{"third", "fourth"} {
		if strings.Contains(strings.Join(r.raw, "\n"), word) {
			t.Errorf("%s was run", word)
		}
	}
}

func TestSIGHUPReadsTheTableAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	r := launch(t, fmt.Sprintf(saying, s.URL(), "first"), nil)
	r.await("first")
	path := r.cmd.Args[3]
	if err := os.WriteFile(path, []byte(fmt.Sprintf(saying, s.URL(), "second")), 0o600); err != nil {
		t.Fatal(err)
	}
	r.signal(syscall.SIGHUP)
	r.await("SIGHUP: reading the table")
	r.await("second")
	r.stop()
}

// The first look at the file finds it as it was loaded: to read a large table again would take as long as the start.
func TestATableIsNotReadTwiceAtTheStart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	r := launch(t, fmt.Sprintf(saying, s.URL(), "said"), nil)
	r.await("taking ticks")
	_, before := r.get("/metrics")
	said := 0
	r.awaitLine("five ticks, one a second", func(l line) bool {
		if l.is("said") {
			said++
		}
		return said == 5
	})
	_, now := r.get("/metrics")
	const name = "solotick_table_last_reload_success_timestamp_seconds"
	if figure(t, now, name) != figure(t, before, name) {
		t.Error("the table was read again, although nothing had changed")
	}
	r.stop()
}

// hash returns the table's hash in the metrics.
func hash(metrics string) string {
	_, after, _ := strings.Cut(metrics, `solotick_table_info{hash="`)
	value, _, _ := strings.Cut(after, `"`)
	return value
}
