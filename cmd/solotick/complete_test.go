package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redistest"
)

func TestACompletionDoesNotWaitForARedisThatIsSilent(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	table := filepath.Join(t.TempDir(), "table.yaml")
	text := `{service: billing, redis: {url: "redis://` + silent.Addr().String() + `/0", timeout: 2m},
jobs: [{name: reports, schedule: "@hourly", exec: {command: ["true"]}}]}`
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(redisVariable, "")
	var out, errOut bytes.Buffer
	began := time.Now()
	code := commandLine([]string{"__complete", "trigger", "-c", table, ""}, &out, &errOut)
	if took := time.Since(began); code != 0 || !strings.HasPrefix(out.String(), "reports\n") || took > patience {
		t.Errorf("exit code %d after %s: %s%s", code, took, &out, &errOut)
	}
}

// Redis may hold any text, and a shell shows the words that it can complete.
func TestWhatNoTerminalShouldShowIsNotCompleted(t *testing.T) {
	s := redistest.Start(t)
	a := &app{redis: s.URL(), service: "billing", logLevel: "error", logFormat: "text", err: io.Discard}
	got := a.askQuietly(func(context.Context, *operator, []string) ([]string, error) {
		return []string{"good-1", "bad\x1b[2J", "two\nlines", "bad\u009b", "good-2"}, nil
	}, nil)
	if !slices.Equal(got, []string{"good-1", "good-2"}) {
		t.Errorf("%q", got)
	}
}
