package needs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// witness is a test that writes down what it is told. Like a test, it goes no further once it is skipped or has failed.
type witness struct {
	testing.TB
	said []string
}

func (*witness) Helper() {}

func (w *witness) Log(args ...any) { w.said = append(w.said, "log: "+fmt.Sprint(args...)) }

func (w *witness) Skip(args ...any) {
	w.said = append(w.said, "skip: "+fmt.Sprint(args...))
	panic(w)
}

func (w *witness) Fatal(args ...any) {
	w.said = append(w.said, "fatal: "+fmt.Sprint(args...))
	panic(w)
}

// told returns what a test is told.
func told(test func(t testing.TB)) []string {
	w := &witness{}
	func() {
		defer func() {
			if stop := recover(); stop != nil && stop != w {
				panic(stop)
			}
		}()
		test(w)
	}()
	return w.said
}

func TestATestThatLacksSomethingSaysSoInOneForm(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct {
		what string
		need func(t testing.TB)
		want []string // of which the last one is a skip, and a failure in CI
	}{
		{"a program", func(t testing.TB) { Program(t, "redis-server") }, []string{"not run: needs redis-server"}},
		{"a program of two names", func(t testing.TB) { Program(t, "chromium", "google-chrome") }, []string{"not run: needs chromium"}},
		{"a namespace", func(t testing.TB) { That(t, "a network namespace", errors.New("not\npermitted")) },
			[]string{"log: not\npermitted", "not run: needs a network namespace"}},
		{"what was not found", func(t testing.TB) { That(t, "a browser", fmt.Errorf("looking: %w", exec.ErrNotFound)) },
			[]string{"not run: needs a browser"}},
	} {
		for ci, how := range map[string]string{"": "skip: ", "true": "fatal: "} {
			t.Setenv("CI", ci)
			want := slices.Clone(c.want)
			want[len(want)-1] = how + want[len(want)-1]
			if got := told(c.need); !slices.Equal(got, want) {
				t.Errorf("%s, CI=%q: %q, want %q", c.what, ci, got, want)
			}
		}
	}
}

func TestATestThatLacksNothingGoesOn(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	program := filepath.Join(dir, "google-chrome")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	said := told(func(tb testing.TB) {
		if got := Program(tb, "chromium", "google-chrome"); got != program {
			t.Errorf("the program is %q, want %q", got, program)
		}
		That(tb, "a network namespace", nil)
	})
	if len(said) > 0 {
		t.Errorf("it is told %q", said)
	}
}

func TestOnlyRootIsRoot(t *testing.T) {
	t.Setenv("CI", "")
	var want []string
	if os.Geteuid() != 0 {
		want = []string{"skip: not run: needs root"}
	}
	if got := told(func(t testing.TB) { Root(t) }); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
