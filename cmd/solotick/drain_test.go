package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/rig"
)

// drains runs `drain` with a table that names the admin address.
func drains(t *testing.T, admin string, args ...string) (code int, out, errOut string) {
	t.Helper()
	table := filepath.Join(t.TempDir(), "table.yaml")
	if err := os.WriteFile(table, fmt.Appendf(nil, "service: shop\nadmin: %q\njobs: []\n", admin), 0o600); err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	code = commandLine(append([]string{"drain", "-c", table}, args...), &o, &e)
	return code, o.String(), e.String()
}

func TestDrainWaitsForTheRunsOfTheReplica(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	over := filepath.Join(t.TempDir(), "over") // ends the run
	r := launch(t, fmt.Sprintf(`
service: shop
redis: {url: %q, timeout: 5s}
listen: ""
admin: "127.0.0.1:0"
jobs:
  - {name: job, schedule: "@every 1s", exec: {command: ["sh", "-c", "until [ -e %s ]; do sleep 0.1; done"]}}
`, s.URL(), over), nil, "--replica", "one")
	addr := r.await("serving the status page and the API").text("addr")
	r.await("fired")
	code, out, errOut := drains(t, addr, "--timeout", "500ms")
	if code != exitCannot || out != "" || !strings.HasPrefix(errOut, "error: runs of one have not ended after ") || !strings.HasSuffix(errOut, "s; the drain goes on\n") {
		t.Errorf("while a job runs: %d %q %q", code, out, errOut)
	}
	if err := os.WriteFile(over, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut = drains(t, addr)
	if code != 0 || !strings.HasPrefix(out, "drained one after ") || errOut != "" {
		t.Errorf("to the end: %d %q %q", code, out, errOut)
	}
	r.await("finished", "outcome", "succeeded")
	code, out, _ = drains(t, addr, "-o", "json")
	if code != 0 || !strings.HasPrefix(out, "{\n  \"drained\": true,\n  \"replica\": \"one\",\n  \"tookMs\": ") {
		t.Errorf("drained before: %d %q", code, out)
	}
	r.stop()
}

func TestADrainThatWasNotToBeHadIsSaid(t *testing.T) {
	t.Parallel()
	nobody := rig.FreeAddr(t)
	for _, c := range []struct {
		status       int
		answer, says string
	}{
		{http.StatusForbidden, `{"error": "no"}`, "error: asking the replica to drain: no\n"},
		{http.StatusOK, `<html>`, "error: asking the replica to drain: invalid character"},
		{http.StatusOK, strings.Repeat(" ", maxAnswer+1) + "{}", "error: asking the replica to drain: unexpected"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.answer))
		}))
		defer server.Close()
		if code, out, errOut := drains(t, server.Listener.Addr().String()); code != exitCannot || out != "" || !strings.HasPrefix(errOut, c.says) {
			t.Errorf("%d %.20s: %d %q %q", c.status, c.answer, code, out, errOut)
		}
	}
	for admin, says := range map[string]string{
		nobody: "error: no replica answers at " + nobody + "\nhint: is it running?",
		"":     "error: the table has no admin address",
	} {
		if code, out, errOut := drains(t, admin); code != exitCannot || out != "" || !strings.HasPrefix(errOut, says) {
			t.Errorf("at %q: %d %q %q", admin, code, out, errOut)
		}
	}
	// An address without a port does not mean port 80.
	if code, _, errOut := drains(t, nobody, "--admin", "127.0.0.1"); code != exitCannot || !strings.HasPrefix(errOut, "error: no replica answers at 127.0.0.1\n") {
		t.Errorf("without a port: %d %q", code, errOut)
	}
	for _, args := range [][]string{{"--timeout", "0s"}, {"--timeout", "-1s"}, {"now"}, {"-o", "xml"}} {
		if code, _, errOut := drains(t, nobody, args...); code != exitUsage {
			t.Errorf("%v: %d %q", args, code, errOut)
		}
	}
}

// TestAReplicaIsDrainedWhateverItsTableSaysByNow: its file may have been broken, changed or removed since it was read.
func TestAReplicaIsDrainedWhateverItsTableSaysByNow(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"drained": true, "replica": "one", "tookMs": 1}`)
	}))
	defer server.Close()
	table := filepath.Join(t.TempDir(), "table.yaml")
	for _, hint := range []string{"hint: --admin", "name the table with -c, or with SOLOTICK_CONFIG; --admin"} {
		if err := os.WriteFile(table, []byte("lsten: x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(hint, "-c") && os.Remove(table) != nil {
			t.Fatal("the table is not gone")
		}
		var out, errOut bytes.Buffer
		if code := commandLine([]string{"drain", "-c", table}, &out, &errOut); code == 0 || !strings.Contains(errOut.String(), hint+" 127.0.0.1:9748 needs no table\n") {
			t.Errorf("%d %s", code, &errOut)
		}
		errOut.Reset()
		if code := commandLine([]string{"drain", "-c", table, "--admin", server.Listener.Addr().String()}, &out, &errOut); code != 0 || out.String() != "drained one after 1ms\n" {
			t.Errorf("%d %s%s", code, &out, &errOut)
		}
	}
}

func TestTheReplicaIsToldHowLongADrainIsWaitedFor(t *testing.T) {
	t.Parallel()
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method == http.MethodPost && r.URL.Path == "/v1/drain" && r.URL.RawQuery == "timeout=20s"
		_, _ = w.Write([]byte(`{"drained": true, "replica": "one\u001b[2J", "tookMs": 1204}`))
	}))
	defer server.Close()
	code, out, errOut := drains(t, server.Listener.Addr().String(), "--timeout", "20s")
	if code != 0 || out != "drained one [2J after 1.204s\n" || !asked {
		t.Errorf("%d %q %q", code, out, errOut)
	}
}

func TestADrainIsNotWaitedForLongerThanItsTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // and does not accept
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := new(app).drain(ctx, l.Addr().String(), 0); err == nil || err.Error() != "no longer waiting; the drain goes on" {
		t.Errorf("%v", err)
	}
}
