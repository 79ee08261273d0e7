// Package needs is where a test says what it needs beside Go: a program, root's rights, a namespace of the kernel. A
// test that lacks it is skipped, so that a missing program fails nobody; with CI=true the test fails instead. Both say
// it in one form, which summaries of test runs look for. The package installs nothing: .ci/install does.
package needs

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

// NotRun begins the one line that a test says when it lacks something. The rest of the line is the name of the thing.
const NotRun = "not run: needs "

// Program returns the path of a program. If it has several names, the first one that is on the PATH counts; a test that
// finds none says the first one.
func Program(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing(t, names[0])
	return ""
}

// Root demands that the test is run by root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "root")
	}
}

// That demands that err is nil: the error is why the machine does not have the thing. It is logged beside the one line.
func That(t testing.TB, thing string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if !errors.Is(err, exec.ErrNotFound) {
		t.Log(err)
	}
	missing(t, thing)
}

func missing(t testing.TB, thing string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(NotRun + thing)
	}
	t.Skip(NotRun + thing)
}
