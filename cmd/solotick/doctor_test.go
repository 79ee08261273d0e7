package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/solotick/solotick/internal/testing/redistest"
)

// examined runs the doctor on a table's redis, and returns its findings by check.
func examined(t *testing.T, redis string) (found map[string][]doctorFinding, code int, text string) {
	t.Helper()
	table := filepath.Join(t.TempDir(), "table.yaml")
	if err := os.WriteFile(table, []byte("service: billing\nredis: {"+redis+"}\njobs: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	code = commandLine([]string{"doctor", "-c", table, "-o", "json"}, &out, &errOut)
	var all struct{ Findings []doctorFinding }
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		t.Fatalf("%v: %s%s", err, &out, &errOut)
	}
	found = map[string][]doctorFinding{}
	for _, f := range all.Findings {
		found[f.Check] = append(found[f.Check], f)
	}
	return found, code, out.String()
}

type doctorFinding struct{ Check, Level, Saw, Means, Do string }

// aclUser is an ACL user with all that docs/redis.md gives, without one word, if it is not "".
func aclUser(t *testing.T, without string) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(page), "\nuser solotick on >PASSWORD ")
	line, _, _ = strings.Cut(line, "\n")
	whole := " " + line + " "
	if without != "" && !strings.Contains(whole, " "+without+" ") {
		t.Fatalf("the user has no %s: %s", without, line)
	}
	if without != "" {
		whole = strings.Replace(whole, " "+without+" ", " ", 1)
	}
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte("user default on nopass ~* &* +@all\nuser solotick on >canary"+strings.TrimRight(whole, " ")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--aclfile", file}
}

const asUser = `url: "redis://solotick:canary@%s/0"`

// TestTheDoctorNamesWhatIsPlanted on servers of which each has one fault, with what it means and what to do.
func TestTheDoctorNamesWhatIsPlanted(t *testing.T) {
	t.Parallel()
	url := func(s *redistest.Server) string { return fmt.Sprintf("url: %q", s.URL()) }
	persistent := []string{"--appendonly", "yes"}
	start := func(t *testing.T, args ...string) *redistest.Server {
		return redistest.Start(t, append(args, persistent...)...)
	}
	for what, c := range map[string]struct {
		plant func(t *testing.T) (redis string)
		check string
		level string
		saw   string
		do    string
	}{
		"eviction": {func(t *testing.T) string { return url(start(t, "--maxmemory-policy", "volatile-lru")) }, "eviction", "problem", "volatile-lru", "noeviction"},
		"a replica": {func(t *testing.T) string {
			master := start(t)
			s := start(t, "--replicaof", "127.0.0.1", strconv.Itoa(master.Port()), "--repl-diskless-sync-delay", "0")
			s.AwaitCopy(master)
			return url(s)
		}, "role", "problem", "slave of 127.0.0.1", "name the master"},
		"no password": {func(t *testing.T) string { return url(start(t, "--requirepass", "canary")) }, "connection", "problem", "asks for a password", "redis.passwordFile"},
		"wrong password": {func(t *testing.T) string {
			return fmt.Sprintf(`url: "redis://solotick:canary2@%s/0"`, start(t, aclUser(t, "")...).Addr())
		}, "connection", "problem", "refuses the user or the password", "check redis.username"},
		"a command is not allowed": {func(t *testing.T) string { return fmt.Sprintf(asUser, start(t, aclUser(t, "+zrem")...).Addr()) }, "rights", "problem", "may not zrem", "+zrem"},
		"the keys are not allowed": {func(t *testing.T) string {
			return fmt.Sprintf(asUser, start(t, aclUser(t, "~solotick:{billing}:*")...).Addr())
		}, "rights", "problem", "forbids", "docs/redis.md"},
		"the channel is not allowed": {func(t *testing.T) string {
			return fmt.Sprintf(asUser, start(t, aclUser(t, "&solotick:{billing}:events*")...).Addr())
		},
			"nudges", "problem", "forbids", "&solotick:{billing}:events"},
		"no scripts":   {func(t *testing.T) string { return fmt.Sprintf(asUser, start(t, aclUser(t, "+evalsha")...).Addr()) }, "rights", "problem", "forbids", "docs/redis.md"},
		"nothing kept": {func(t *testing.T) string { return url(redistest.Start(t)) }, "persistence", "warning", "appendonly is no", "appendonly yes"},
		"no replica":   {func(t *testing.T) string { return url(start(t)) + ", waitReplicas: 1" }, "replicas", "problem", "0 replicas, and redis.waitReplicas is 1", "lower redis.waitReplicas"},
		"full": {func(t *testing.T) string {
			s := start(t)
			if answer, err := s.Ask("CONFIG SET maxmemory 900000"); err != nil || answer != "+OK" {
				t.Fatal(answer, err)
			}
			return url(s)
		}, "memory", "problem", "MB are used", "raise maxmemory"},
		"another program's key": {func(t *testing.T) string {
			s := start(t)
			if answer, err := s.Ask("SET solotick:{billing}:running x"); err != nil || answer != "+OK" {
				t.Fatal(answer, err)
			}
			return url(s)
		}, "keyspace", "problem", "solotick:{billing}:running is of another type", "another service name"},
		"TLS to a plain port": {func(t *testing.T) string { return fmt.Sprintf(`url: "rediss://%s/0"`, start(t).Addr()) }, "connection", "problem", "do not agree on TLS", "redis:// in place of rediss://"},
		"another name": {func(t *testing.T) string {
			ca := redistest.NewCA(t)
			s := start(t, append(ca.Server("redis.internal"), "--tls-auth-clients", "no")...)
			return fmt.Sprintf(`url: "rediss://%s/0", tls: {caFile: %q}`, s.TLSAddr(), ca.File)
		}, "connection", "problem", "do not agree on TLS", "redis.tls.serverName"},
		"nobody is there": {func(*testing.T) string { return `url: "redis://127.0.0.1:1/0"` }, "connection", "problem", "does not answer", "check host and port"},
		"a clock that is off": {func(t *testing.T) string {
			s := miniredis.RunT(t)
			s.SetTime(time.Now().Add(-90 * time.Minute))
			return fmt.Sprintf(`url: "redis://%s/0"`, s.Addr())
		}, "clock", "problem", "clock is 1h3", "NTP"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			found, code, text := examined(t, c.plant(t))
			at := -1
			for i, f := range found[c.check] {
				if f.Level == c.level && strings.Contains(f.Saw+f.Means, c.saw) && strings.Contains(f.Do, c.do) && f.Means != "" {
					at = i
				}
			}
			if want := map[string]int{"problem": exitProblem, "warning": 0}[c.level]; at < 0 || code != want {
				t.Errorf("exit %d, want %d, and a %s of %s with %q and %q in\n%s", code, want, c.level, c.check, c.saw, c.do, text)
			}
			for check, all := range found {
				for _, f := range all {
					if f.Level == "problem" && check != c.check && !consequences[what] {
						t.Errorf("it finds another problem, too: %+v", f)
					}
				}
			}
			if strings.Contains(text, "canary") {
				t.Errorf("it shows a password:\n%s", text)
			}
		})
	}
}

// consequences are the faults of which other checks notice something, too.
var consequences = map[string]bool{"a replica": true, "full": true, "the keys are not allowed": true, "the channel is not allowed": true,
	"another program's key": true}

// TestTheDoctorFindsNothingWhereNothingIsWrong, with the rights that docs/redis.md gives.
func TestTheDoctorFindsNothingWhereNothingIsWrong(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, append(aclUser(t, ""), "--appendonly", "yes")...)
	found, code, text := examined(t, fmt.Sprintf(asUser, s.Addr()))
	for _, all := range found {
		for _, f := range all {
			if f.Level != "ok" && f.Check != "roundtrips" && f.Check != "clock" { // these two measure the machine
				t.Errorf("%+v", f)
			}
		}
	}
	if code != 0 || len(found) < 11 {
		t.Errorf("exit %d\n%s", code, text)
	}
	// Its own keys last for a second, and Redis counts a key until it gets to deleting it.
	eventually(t, "its keys are gone", func() bool {
		answer, err := s.Ask("DBSIZE")
		return err == nil && answer == ":0"
	})
}
