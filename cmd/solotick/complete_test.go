package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
