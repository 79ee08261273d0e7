package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solotick/solotick/internal/testing/redistest"
)

// The addresses of the flags hold from the start and through reloads.
func TestTheFlagsReplaceTheAddressesOfTheTable(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	called := make(chan string, 100)
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		called <- r.Header.Get("Solotick-Callback")
	}))
	defer app.Close()
	p := newPlace(t)
	table := fmt.Sprintf(`
service: shop
redis: {url: %q, timeout: 5s}
listen: %q
admin: %q
jobs:
  - {name: long, schedule: "@every 1s", http: {url: %q, async: {}}}
`, s.URL(), taken.Addr(), taken.Addr(), app.URL)
	p.write(table)
	cmd := exec.Command("solotick", "run", "-c", p.table, "--log-format", "json", "--replica", "one",
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	cmd.Env = p.env
	r := start(t, cmd)
	_, port, _ := net.SplitHostPort(r.await("serving " + servesAdmin).text("addr"))
	at := "http://127.0.0.1:" + port
	if got := <-called; !strings.HasPrefix(got, at+"/v1/runs/") {
		t.Errorf("the app reports to %q, and not to %s", got, at)
	}
	p.write(table + "  - {name: more, schedule: \"@hourly\", http: {url: \"" + app.URL + "\"}}\n")
	r.await("table reloaded")
}

func TestAnAdminAddressForOthersIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.yaml")
	if err := os.WriteFile(file, []byte("service: shop\nredis: {url: \"redis://127.0.0.1:1\"}\nlisten: \"\"\njobs: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		admin string
		code  int
		says  string
	}{
		{"0.0.0.0:9748", exitUsage, "must be on this machine alone"},
		{":9748", exitUsage, "must be on this machine alone"},
		{"10.0.0.5:9748", exitUsage, "must be on this machine alone"},
		{"9748", exitCannot, "missing port"},
	} {
		var out, errOut bytes.Buffer
		code := commandLine([]string{"run", "-c", file, "--admin", c.admin}, &out, &errOut)
		if code != c.code || !strings.Contains(errOut.String(), c.says) || !strings.Contains(errOut.String(), "hint: ") {
			t.Errorf("%v: exit code %d\n%s", c, code, errOut.String())
		}
	}
}
