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

// The addresses of the flags hold from the start and through reloads, and an app beside the replica needs no password.
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
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte("a long password!\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
		"--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0", "--admin-password-file", secret)
	cmd.Env = p.env
	r := start(t, cmd)
	_, port, _ := net.SplitHostPort(r.await("serving " + servesAdmin).text("addr"))
	at := "http://127.0.0.1:" + port
	if got := <-called; !strings.HasPrefix(got, at+"/v1/runs/") {
		t.Errorf("the app reports to %q, and not to %s", got, at)
	}
	for _, c := range []struct {
		host, password string
		want           int
	}{{"", "", 200}, {"billing.example", "", 401}, {"billing.example", "a long password!", 200}} {
		req, err := http.NewRequest("GET", at+"/v1/replica", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		req.SetBasicAuth("", c.password)
		got, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != c.want {
			t.Errorf("%+v: %d", c, got.StatusCode)
		}
	}
	p.write(table + "  - {name: more, schedule: \"@hourly\", http: {url: \"" + app.URL + "\"}}\n")
	r.await("table reloaded")
}

func TestAnAdminAddressForOthersNeedsAPassword(t *testing.T) {
	dir := t.TempDir()
	short := filepath.Join(dir, "short")
	if err := os.WriteFile(short, []byte("123456789012345\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "table.yaml")
	if err := os.WriteFile(file, []byte("service: shop\nredis: {url: \"redis://127.0.0.1:1\"}\nlisten: \"\"\njobs: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--admin", "0.0.0.0:9748"}, exitUsage, "must be on this machine alone"},
		{[]string{"--admin", ":9748"}, exitUsage, "must be on this machine alone"},
		{[]string{"--admin", "10.0.0.5:9748", "--admin-password-file", short}, exitUsage, "must be on this machine alone"},
		{[]string{"--admin", "9748"}, exitCannot, "missing port"},
		{[]string{"--admin", "0.0.0.0:0", "--admin-password-file", short}, exitCannot, "fewer than 16 bytes"},
		{[]string{"--admin", "0.0.0.0:0", "--admin-password-file", filepath.Join(dir, "none")}, exitCannot, "no such file"},
	} {
		var out, errOut bytes.Buffer
		code := commandLine(append([]string{"run", "-c", file}, c.args...), &out, &errOut)
		if code != c.code || !strings.Contains(errOut.String(), c.says) || !strings.Contains(errOut.String(), "hint: ") {
			t.Errorf("%v: exit code %d\n%s", c.args, code, errOut.String())
		}
	}
}
