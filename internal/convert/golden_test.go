package convert

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/solotick/solotick/config"
)

var update = flag.Bool("update", false, "rewrite the expected output")

// optioned are the files that are read with other options than none.
var optioned = map[string]Options{
	"etc/crontab":         {Service: "machine", TimeZone: "Europe/Berlin"},
	"known-users.crontab": {Redis: "redis://:${PASSWORD}@redis:6379/0"},
	"kubectl-list.yaml":   {Service: "sweeper", TimeZone: "UTC"},
}

// TestEachFileBecomesTheTableThatWasFoundGood compares table and summary with what was looked through.
func TestEachFileBecomesTheTableThatWasFoundGood(t *testing.T) {
	names := inputs(t)
	if len(names) < 20 {
		t.Fatalf("only %d files: is the test run in the wrong folder?", len(names))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, data)
		})
	}
}

// inputs are the files to be read.
func inputs(t testing.TB) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS("testdata"), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (path == "want" || path == "fuzz") {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// golden checks what a file becomes: a table that the rest of Solotick reads, with the jobs that were found, and a
// summary.
func golden(t *testing.T, name string, data []byte) {
	t.Helper()
	o := optioned[name]
	r, err := Convert([]Input{{Name: name, Data: data}}, o)
	want := filepath.Join("testdata", "want", strings.ReplaceAll(name, "/", "-"))
	var said []string
	var unreadable *Error
	switch {
	case errors.As(err, &unreadable):
		said = []string{"error: " + err.Error(), "hint: " + unreadable.Hint}
	case err != nil:
		t.Fatal(err)
	default:
		carried(t, r, Input{name, data}, o)
		said = r.Summary()
		compare(t, want+".table.yaml", r.Table)
	}
	compare(t, want+".said", []byte(strings.Join(said, "\n")+"\n"))
}

func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got:\n%s\nwant:\n%s", file, got, want)
	}
}

// itsOwn tells what is odd in the file itself, and stays so in its table.
func itsOwn(warning string) bool {
	odd := []string{"are both restricted", "starts again with", "in Quartz", "ticks can be", "there is no shell", "means 60 ticks"}
	return slices.ContainsFunc(odd, func(words string) bool { return strings.Contains(warning, words) })
}

// carried reads the table as Solotick does, and finds in it exactly what was read from the file.
func carried(t *testing.T, r *Result, f Input, o Options) {
	t.Helper()
	jobs, _, err := read(f, o)
	if err != nil {
		t.Fatal(err)
	}
	nameAll(jobs)
	table, err := config.Parse("table.yaml", r.Table, func(name string) (string, bool) { return "x", name == "PASSWORD" })
	if err != nil {
		t.Fatalf("the table is not valid: %v\n%s", err, r.Table)
	}
	for _, w := range table.Warnings {
		if !itsOwn(w.Message) && r.Jobs > 0 {
			t.Errorf("the table has a warning: %s", w)
		}
	}
	names, at := map[string]bool{}, 0
	for i := range jobs {
		j := &jobs[i]
		if j.settle(o); j.name != "" && names[j.name] {
			t.Errorf("two jobs are called %s", j.name)
		}
		if names[j.name] = true; j.lost != "" {
			continue
		}
		got := table.Jobs[at]
		at++
		zone := j.timeZone
		if zone == "" {
			zone = o.TimeZone
		}
		if zone == "" {
			zone = "UTC"
		}
		env := map[string]string{}
		for _, v := range j.env {
			env[v.name] = v.value
		}
		timeout := unlimited
		if j.timeout > 0 {
			timeout = j.timeout
		}
		switch {
		case got.Name != j.name, got.Schedule.String() != strings.TrimSpace(j.schedule), got.TimeZone != zone, got.Exec.Dir != j.dir,
			got.Timeout != timeout, got.Suspend != j.suspend, got.Jitter != j.jitter, got.StartingDeadline != j.deadline,
			got.Retry.Limit != j.retries, string(got.ConcurrencyPolicy) != j.concurrency && j.concurrency+string(got.ConcurrencyPolicy) != "Allow":
			t.Errorf("job %s became %+v", j.name, got)
		case !slices.Equal(got.Exec.Command, j.command):
			t.Errorf("job %s: command %q became %q", j.name, j.command, got.Exec.Command)
		}
		for k, v := range env {
			if got.Exec.Env[k] != v {
				t.Errorf("job %s: variable %s=%q became %q", j.name, k, v, got.Exec.Env[k])
			}
		}
		if len(got.Exec.Env) != len(env) {
			t.Errorf("job %s: variables %v became %v", j.name, env, got.Exec.Env)
		}
	}
	if at != len(table.Jobs) || at != r.Jobs || len(jobs)-at != r.Lost {
		t.Errorf("%d jobs of %d, %d lost, in a table of %d", r.Jobs, len(jobs), r.Lost, len(table.Jobs))
	}
}

func TestTheSameFileAlwaysGivesTheSameTable(t *testing.T) {
	for _, name := range inputs(t) {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		first, err := Convert([]Input{{name, data}}, Options{})
		for range 2 {
			again, errAgain := Convert([]Input{{name, data}}, Options{})
			if (err == nil) != (errAgain == nil) || err == nil && !bytes.Equal(first.Table, again.Table) {
				t.Errorf("%s: another table, or error, every time", name)
				break
			}
		}
	}
}
