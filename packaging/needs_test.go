package packaging

import (
	"os"
	"os/exec"
	"testing"
)

// The package internal/testing/needs does this for other modules. This one cannot require it by a replacement: the
// release runs its tools by this go.mod in another directory, where the replacement's path leads nowhere.

func needed(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		missing(t, name)
	}
}

// missing skips the test in the form that internal/testing/needs gives it, or fails it where CI=true.
func missing(t *testing.T, thing string) {
	t.Helper()
	const notRun = "not run: needs "
	if os.Getenv("CI") == "true" {
		t.Fatal(notRun + thing)
	}
	t.Skip(notRun + thing)
}
