// Package systemd shows that the unit beside it is what systemd and Solotick understand.
package systemd

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/testing/needs"
	"github.com/solotick/solotick/internal/testing/rig"
)

// installed is a name without a directory: systemd finds it in /usr/local/bin, and where the packages put it, in
// /usr/bin.
const installed = "solotick"

// unit are the settings of the file, by name; of one that stands there twice, both.
func unit(t *testing.T) map[string][]string {
	t.Helper()
	f, err := os.Open("solotick.service")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string][]string{}
	for in := bufio.NewScanner(f); in.Scan(); {
		line := in.Text()
		if line == "" || line[0] == '#' || line[0] == '[' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			t.Fatalf("%q is no setting", line)
		}
		all[name] = append(all[name], value)
	}
	return all
}

// setting is one that stands there once.
func setting(t *testing.T, all map[string][]string, name string) string {
	t.Helper()
	if len(all[name]) != 1 {
		t.Fatalf("%s is %q", name, all[name])
	}
	return all[name][0]
}

var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "solotick-systemd-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "solotick")
		root, err := rig.Root()
		if err == nil {
			err = rig.Build(root, rig.Package, program)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

func TestSystemdTakesTheUnitAndFindsItConfined(t *testing.T) {
	needs.Program(t, "systemd-analyze")
	text, err := os.ReadFile("solotick.service")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "solotick.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "="+installed+" ", "="+program+" ")), 0o600); err != nil {
		t.Fatal(err)
	}
	// It warns of settings that it does not know, and does not count them as errors.
	if out, err := exec.Command("systemd-analyze", "verify", file).CombinedOutput(); err != nil || strings.Contains(string(out), "solotick.service") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// 9.6 is a service without any confinement, 2.0 the upper end of what systemd calls OK.
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", file).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

func TestTheUnitRunsWhatThereIs(t *testing.T) {
	all := unit(t)
	for name, verb := range map[string]string{"ExecStart": "run --state-dir /var/lib/solotick", "ExecStop": "drain --admin 127.0.0.1:9748"} {
		command := setting(t, all, name)
		if command != installed+" "+verb {
			t.Errorf("%s is %q", name, command)
		}
		if out, err := exec.Command(program, append(strings.Fields(verb), "--help")...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	if reload := setting(t, all, "ExecReload"); reload != "/bin/kill -HUP $MAINPID" {
		t.Errorf("ExecReload is %q", reload)
	}
}

// Commands, or a fault of its own, must not take the machine with them.
func TestTheUnitIsBounded(t *testing.T) {
	all := unit(t)
	var memory int
	if _, err := fmt.Sscanf(setting(t, all, "MemoryMax"), "%dG", &memory); err != nil || memory < 1 {
		t.Errorf("MemoryMax is %q: %v", all["MemoryMax"], err)
	}
	// By default systemd stops a service, and all its jobs, when the kernel has ended one of them for its memory.
	if policy := setting(t, all, "OOMPolicy"); policy != "continue" {
		t.Errorf("OOMPolicy is %s", policy)
	}
	for name, least := range map[string]int{"TasksMax": 64, "LimitNOFILE": 256} {
		if n, err := strconv.Atoi(setting(t, all, name)); err != nil || n < least || n > 65536 {
			t.Errorf("%s is %d, %v", name, n, err)
		}
	}
}

// The packages bring an empty file, so that the service starts with a Redis that asks for no password.
func TestAnEmptyPasswordIsNone(t *testing.T) {
	password, err := filepath.Abs("../../packaging/redis-password")
	if err != nil {
		t.Fatal(err)
	}
	server := miniredis.RunT(t)
	table := filepath.Join(t.TempDir(), "table.yaml")
	status := func() (string, error) {
		text := "service: s\nredis: {url: \"redis://" + server.Addr() + "\", passwordFile: " + password + "}\n" +
			"jobs: [{name: j, schedule: '@hourly', http: {url: 'http://127.0.0.1:1/'}}]\n"
		if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(program, "status", "-c", table).CombinedOutput()
		return string(out), err
	}
	if out, err := status(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	server.RequireAuth("secret")
	if out, err := status(); err == nil {
		t.Errorf("a Redis that asks for a password took none:\n%s", out)
	}
}

func TestTheTableFitsTheUnit(t *testing.T) {
	all := unit(t)
	env := map[string]string{"CREDENTIALS_DIRECTORY": "/run/credentials/solotick.service"}
	if file := setting(t, all, "EnvironmentFile"); file != "/etc/solotick/environment" {
		t.Errorf("EnvironmentFile is %s", file)
	}
	text, err := os.ReadFile("environment")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && line[0] != '#' {
			env[name] = value
		}
	}
	table, err := config.Load("table.yaml", func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range table.Warnings {
		t.Errorf("the table has a warning: %s", w.Message)
	}
	credential, from, _ := strings.Cut(setting(t, all, "LoadCredential"), ":")
	if want := env["CREDENTIALS_DIRECTORY"] + "/" + credential; table.Redis.PasswordFile != want || from == "" {
		t.Errorf("the password is in %s, the table looks in %s", want, table.Redis.PasswordFile)
	}
	stop, err := time.ParseDuration(setting(t, all, "TimeoutStopSec"))
	if need := table.ShutdownGrace + 10*time.Second; err != nil || stop < need {
		t.Errorf("TimeoutStopSec is %s, at least %s is needed; %v", stop, need, err)
	}
	state := "/var/lib/" + setting(t, all, "StateDirectory")
	for _, j := range table.Jobs {
		if j.Exec != nil && j.Exec.Dir != state {
			t.Errorf("the job %s runs in %s, and may write to %s alone", j.Name, j.Exec.Dir, state)
		}
	}
	if start := setting(t, all, "ExecStart"); !strings.HasSuffix(start, " --state-dir "+state) {
		t.Errorf("%s does not keep the last good table in %s", start, state)
	}
	// Without /proc/stat there is no process_start_time_seconds, which the alerts need.
	if all["ProcSubset"] != nil {
		t.Error("ProcSubset hides what the metrics of the process are made of")
	}
}
