package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestTheFirstLineOfACommandIsReturned(t *testing.T) {
	for script, want := range map[string]string{
		"echo one":                    "one",
		"echo one; echo two":          "one",
		"printf 'one two\\r\\nthree'": "one two",
		"printf one":                  "one",
		"printf o; sleep 0.05; printf 'ne\\ntwo'": "one",
		"printf ' ü '":                        " ü ",
		"echo canary >&2; echo one":           "one",
		"echo $BASE":                          "base",
		"cat; echo one":                       "one", // no input
		"echo one; yes two | head -c 1000000": "one", // it does not die of what nobody reads
	} {
		got, err := FirstLine(t.Context(), []string{"sh", "-c", script}, []string{"BASE=base", "PATH=" + os.Getenv("PATH")})
		if got != want || err != nil {
			t.Errorf("%s: %q, %v", script, got, err)
		}
	}
}

func TestACommandWithoutAFirstLineSaysWhyAndRepeatsNothing(t *testing.T) {
	for script, says := range map[string]string{
		"":                        "printed nothing",
		"echo; echo canary":       "printed nothing",
		"echo canary; exit 1":     "exited with code 1",
		"echo canary >&2; exit 3": "exited with code 3",
		"echo canary; kill -9 $$": "killed by SIGKILL",
		"printf 'canary\\001'":    "is no text",
		"printf 'canary\\377\\n'": "is no text",
		"yes canary | tr -d '\\n' | head -c 70000": "longer than 64 KiB",
	} {
		got, err := FirstLine(t.Context(), []string{"sh", "-c", script}, []string{"PATH=" + os.Getenv("PATH")})
		if got != "" || err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %.20q, %v", script, got, err)
		}
	}
	if _, err := FirstLine(t.Context(), []string{"no-such-command", "canary"}, nil); err == nil ||
		!strings.Contains(err.Error(), `"no-such-command" is in no directory of PATH`) || strings.Contains(err.Error(), "canary") {
		t.Error(err)
	}
	if n := listed(); n != 0 {
		t.Errorf("%d commands still listed", n)
	}
}

func TestACommandThatHangsIsKilledWithItsChildren(t *testing.T) {
	begun := filepath.Join(t.TempDir(), "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := contextWithCause(t)
	go func() {
		if f, err := os.Open(begun); err == nil { // when the shell opens it, too
			f.Close()
		}
		cancel(errLockLost)
	}()
	began := time.Now()
	// A child holds the output, and the shell ignores SIGTERM.
	_, err := FirstLine(ctx, []string{"sh", "-c", "trap '' TERM; echo canary; sleep 600 & : >" + begun + "; wait"}, []string{"PATH=" + os.Getenv("PATH")})
	if !errors.Is(err, errLockLost) || !strings.Contains(err.Error(), "killed") || time.Since(began) >= 600*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}
