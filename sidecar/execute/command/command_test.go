package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

func sh(script string, o Options) execute.Executor {
	if o.Env == nil {
		o.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	return New(config.Exec{Command: []string{"/bin/sh", "-c", script}}, o)
}

func TestExitCodesAndSignalsAreTold(t *testing.T) {
	for script, want := range map[string]struct {
		status execute.Status
		code   int
		says   string
	}{
		"exit 0":        {execute.Succeeded, 0, ""},
		"exit 1":        {execute.Failed, 1, "exited with code 1"},
		"exit 255":      {execute.Failed, 255, "exited with code 255"},
		"kill -9 $$":    {execute.Failed, -1, "killed by SIGKILL"},
		"kill -TERM $$": {execute.Failed, -1, "killed by SIGTERM"},
	} {
		res := sh(script, Options{}).Execute(t.Context(), aRun())
		wantStatus(t, res, want.status)
		if res.Code != want.code || res.Err != nil && !strings.Contains(res.Err.Error(), want.says) {
			t.Errorf("%s: %+v", script, res)
		}
	}
}

func TestTheCommandIsToldItsRunInItsEnvironment(t *testing.T) {
	e := New(config.Exec{
		Command: []string{"env"}, // found in the PATH given here
		Env:     map[string]string{"OWN": "table", "SOLOTICK_JOB": "forged", "BOTH": "table"},
	}, Options{Env: []string{
		"PATH=/usr/bin:/bin", "BASE=1", "BOTH=base", "SOLOTICK_RUN=forged", "SOLOTICK_FENCING_TOKEN=7", "SOLOTICK_CONFIG=/c",
		"TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}})
	r := aRun()
	want := map[string]string{"PATH": "/usr/bin:/bin", "BASE": "1", "BOTH": "table", "OWN": "table", "SOLOTICK_CONFIG": "/c"}
	for _, f := range r.Facts() {
		want[f.Env] = f.Value
	}
	got := environment(t, e.Execute(t.Context(), r))
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	r.Token = 0
	if v, there := environment(t, e.Execute(t.Context(), r))["SOLOTICK_FENCING_TOKEN"]; there {
		t.Errorf("a run without a token was told %q", v)
	}
}

func environment(t *testing.T, res execute.Result) map[string]string {
	t.Helper()
	wantStatus(t, res, execute.Succeeded)
	m := map[string]string{}
	for kv := range strings.SplitSeq(res.Output, "\n") {
		name, value, _ := strings.Cut(kv, "=")
		m[name] = value
	}
	return m
}

func TestNothingIsInheritedButWhatIsGiven(t *testing.T) {
	t.Setenv("SECRET_OF_THE_SIDECAR", "1")
	e := New(config.Exec{Command: []string{"/usr/bin/env"}}, Options{})
	if got := environment(t, e.Execute(t.Context(), aRun())); len(got) != 9 || got["SECRET_OF_THE_SIDECAR"] != "" {
		t.Errorf("environment %v", got)
	}
}

func TestArgumentsDirectoryAndInputAreTheTables(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "tool"), "#!/bin/sh\npwd\nfor a; do echo \"[$a]\"; done\ncat\n", 0o755)
	e := New(config.Exec{Command: []string{"./tool", "a b", "$HOME", ""}, Dir: dir},
		Options{Env: []string{"PATH=" + os.Getenv("PATH")}})
	res := e.Execute(t.Context(), aRun())
	wantStatus(t, res, execute.Succeeded)
	if want := dir + "\n[a b]\n[$HOME]\n[]"; res.Output != want {
		t.Errorf("%q, want %q", res.Output, want)
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestTheInputOfACommandIsEmpty(t *testing.T) {
	res := sh("cat; echo end", Options{}).Execute(t.Context(), aRun())
	if wantStatus(t, res, execute.Succeeded); res.Output != "end" {
		t.Errorf("%q", res.Output)
	}
}

func TestTheCommandIsLookedForInItsOwnPath(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	write(t, filepath.Join(first, "tool"), "#!/bin/sh\n", 0o644) // may not be executed: looked over
	write(t, filepath.Join(second, "tool"), "#!/bin/sh\necho second\n", 0o755)
	if err := os.Mkdir(filepath.Join(first, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	e := New(config.Exec{Command: []string{"tool"}, Env: map[string]string{"PATH": first + ":" + second}},
		Options{Env: []string{"PATH=/nowhere"}})
	res := e.Execute(t.Context(), aRun())
	wantStatus(t, res, execute.Succeeded)
	if res.Output != "second" {
		t.Errorf("output %q", res.Output)
	}
}

func TestWhatLiesInTheSidecarsOwnDirectoryIsNotMeant(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "tool", "#!/bin/sh\n", 0o755)
	e := New(config.Exec{Command: []string{"tool"}}, Options{Env: []string{"PATH=.:"}})
	wantStatus(t, e.Execute(t.Context(), aRun()), execute.NotStarted)
}

func TestACommandThatCannotBeStartedIsNotStarted(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plain"), "#!/bin/sh\n", 0o644)
	write(t, filepath.Join(dir, "orphaned"), "#!/no/such/interpreter\n", 0o755)
	write(t, filepath.Join(dir, "junk"), "junk", 0o755)
	path := Options{Env: []string{"PATH=" + dir + "::.:relative"}}
	for says, c := range map[string]config.Exec{
		`"missing" is in no directory of PATH`: {Command: []string{"missing"}},
		`plain" may not be executed`:           {Command: []string{"plain"}},
		"permission denied":                    {Command: []string{filepath.Join(dir, "plain")}},
		"no such file or directory":            {Command: []string{"/no/such/file"}},
		"the interpreter of its first line":    {Command: []string{filepath.Join(dir, "orphaned")}},
		"interpreter of":                       {Command: []string{"./orphaned"}, Dir: dir},
		"exec format error":                    {Command: []string{"junk"}},
		"its directory: stat /no/such/dir":     {Command: []string{"/bin/true"}, Dir: "/no/such/dir"},
		`its directory: "/etc/passwd" is none`: {Command: []string{"/bin/true"}, Dir: "/etc/passwd"},
		"it is empty":                          {},
		"permission denied\x00":                {Command: []string{dir}},
		"argument list too long":               {Command: []string{"/bin/true", strings.Repeat("x", 3<<20)}},
		"invalid argument":                     {Command: []string{"/bin/true", "a\x00b"}},
		"NUL":                                  {Command: []string{"/bin/true"}, Env: map[string]string{"A": "\x00"}},
	} {
		res := New(c, path).Execute(t.Context(), aRun())
		wantStatus(t, res, execute.NotStarted)
		if res.Code != -1 || !strings.Contains(res.Err.Error(), strings.TrimRight(says, "\x00")) {
			t.Errorf("%v in %q: %+v", c.Command[:min(1, len(c.Command))], c.Dir, res)
		}
	}
	if n := listed(); n != 0 {
		t.Errorf("%d commands still listed", n)
	}
}

func listed() (n int) {
	children.byPID.Range(func(any, any) bool { n++; return true })
	return n
}

func TestAnEndedContextStartsNothing(t *testing.T) {
	ctx, cancel := contextWithCause(t)
	cancel(errLockLost)
	mark := filepath.Join(t.TempDir(), "mark")
	wantCause(t, sh("touch "+mark, Options{}).Execute(ctx, aRun()))
	if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
		t.Error("it ran")
	}
}

// records keeps what is logged.
type records struct {
	mu   sync.Mutex
	text []string
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) WithGroup(string) slog.Handler            { return r }
func (r *records) WithAttrs(as []slog.Attr) slog.Handler    { return &recordsWith{r, as} }
func (r *records) Handle(_ context.Context, rec slog.Record) error {
	return (&recordsWith{r, nil}).Handle(context.Background(), rec)
}

type recordsWith struct {
	*records
	attrs []slog.Attr
}

func (r *recordsWith) Handle(_ context.Context, rec slog.Record) error {
	line := rec.Level.String() + " " + rec.Message
	attrs := slices.Clone(r.attrs)
	rec.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	for _, a := range attrs {
		line += " " + a.String()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, line)
	return nil
}

func TestOutputGoesToTheLogLineByLine(t *testing.T) {
	var log records
	res := sh(`echo one; echo; echo two >&2; printf 'three\r\n'; printf 'no newline'`,
		Options{Log: slog.New(&log)}).Execute(t.Context(), aRun())
	wantStatus(t, res, execute.Succeeded)
	slices.Sort(log.text) // the two streams are not in step
	common := fmt.Sprintf(" job=%s tick=2026-01-02T15:04:05.678Z run=%s line=", aRun().Job, aRun().ID)
	var want []string
	for _, line := range []string{" stream=stdout", "no newline stream=stdout", "one stream=stdout", "three stream=stdout", "two stream=stderr"} {
		want = append(want, "INFO output"+common+line)
	}
	slices.Sort(want)
	if !slices.Equal(log.text, want) {
		t.Errorf("got  %q\nwant %q", log.text, want)
	}
	for _, s := range []string{"one\n", "two", "three", "no newline"} {
		if !strings.Contains(res.Output, s) {
			t.Errorf("output %q lacks %q", res.Output, s)
		}
	}
}

func TestTheTailIsKeptOfALotOfOutput(t *testing.T) {
	e := sh(`i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i+1)); done; exit 3`, Options{})
	res := e.Execute(t.Context(), aRun())
	wantStatus(t, res, execute.Failed)
	if len(res.Output) > execute.MaxOutput || len(res.Output) < execute.MaxOutput-2 || !strings.HasSuffix(res.Output, "\nline 2999") {
		t.Errorf("%d bytes ending in %q", len(res.Output), res.Output[max(0, len(res.Output)-20):])
	}
}

func TestALineLongerThanMemoryIsCut(t *testing.T) {
	var log records
	e := New(config.Exec{Command: []string{os.Args[0]}},
		Options{Log: slog.New(&log), Env: []string{"ROLE=longline", noRaceExit}})
	before := memory()
	res := e.Execute(t.Context(), aRun())
	wantStatus(t, res, execute.Succeeded)
	const mark = "x… (cut: the line is longer than 64 KiB) stream=stdout"
	if len(log.text) != 2 || len(log.text[0]) > lineSize+200 || !strings.Contains(log.text[0], mark) ||
		!strings.HasSuffix(log.text[1], " line=last stream=stdout") {
		t.Errorf("%d lines of %d bytes", len(log.text), len(log.text[0]))
	}
	if !strings.HasSuffix(res.Output, "KiB)\nlast") {
		t.Errorf("output ends in %q", res.Output[len(res.Output)-40:])
	}
	if grown := memory() - before; grown > 64<<20 {
		t.Errorf("memory grew by %d MiB for a line of 300 MiB", grown>>20)
	}
}

// memory is the most this process has ever asked the system for, in bytes.
func memory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}
