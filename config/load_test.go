package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// good loads a table that must be good.
func good(t *testing.T, name string) *Table {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/good", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, string(data))
}

func parsed(t *testing.T, data string) *Table {
	t.Helper()
	table, err := parse("table.yaml", []byte(data), testEnv, testNow)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return table
}

// problemsOf gives the problems of a table that must be bad.
func problemsOf(t *testing.T, data string) Problems {
	t.Helper()
	var problems Problems
	if _, err := parse("table.yaml", []byte(data), testEnv, testNow); !errors.As(err, &problems) {
		t.Fatalf("got %v, want problems of\n%s", err, data)
	}
	return problems
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %#v\nwant %#v", what, got, want)
	}
}

func TestEveryKeyEndsUpInItsPlace(t *testing.T) {
	table := good(t, "full")
	if len(table.Warnings) > 0 || len(table.Jobs) != 2 {
		t.Fatalf("%d jobs, warnings %v", len(table.Jobs), table.Warnings)
	}
	equal(t, "service", table.Service, "billing")
	equal(t, "listen", table.Listen, "127.0.0.1:9000")
	equal(t, "admin", table.Admin, "[::1]:9001")
	equal(t, "maxRunning", table.MaxRunning, 7)
	equal(t, "ready", table.Ready, &Ready{
		URL: "http://unix:/run/app.sock:/ready?x=1", Interval: 3 * time.Second, Timeout: 400 * time.Millisecond,
	})
	equal(t, "clock", table.Clock, "local")
	equal(t, "shutdownGrace", table.ShutdownGrace, time.Minute)
	equal(t, "redis", table.Redis, Redis{
		URL: "rediss://app@redis.internal:6380/3", PasswordFile: "/run/secrets/redis", Timeout: 750 * time.Millisecond,
		TLS: &TLS{"/etc/tls/ca.pem", "/etc/tls/tls.crt", "/etc/tls/tls.key", "redis"},
	})

	first, second := table.Jobs[0], table.Jobs[1]
	if first.Schedule == nil || first.Schedule.String() != "0 9 * * MON-FRI" {
		t.Fatalf("schedule is %v", first.Schedule)
	}
	ny, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	if next := first.Schedule.Next(testNow); !next.Equal(time.Date(2026, 12, 1, 9, 0, 0, 0, ny)) {
		t.Errorf("the first tick is %v", next)
	}
	first.Schedule, second.Schedule = nil, nil
	first.Fingerprint, second.Fingerprint = "", ""
	first.Content, second.Content = "", ""
	equal(t, "first job", first, Job{
		Name: "send-invoices", TimeZone: "America/New_York",
		HTTP: &HTTP{
			Method: "PUT", URL: "https://billing.example.com/jobs?dry=1",
			Headers: map[string]string{"Authorization": "Bearer " + canary, "X-Price": "${literal}, $5, $$"},
			Body:    "{\"dry\": false}\n", SuccessCodes: []CodeRange{{200, 204}, {404, 404}, {409, 409}}, IdempotencyKey: KeyUUID,
			HeaderFiles: map[string]HeaderFile{"X-App": {"/run/tokens/app", "Token "}},
			TLS:         &TLS{"/etc/app/roots", "/etc/app/crt", "/etc/app/private", "app"}, Sign: Sign{"/run/secrets/whsec"},
		},
		AllowRemote: true, Timeout: 10 * time.Minute, Guarantee: AtMostOnce, ConcurrencyPolicy: Forbid,
		Missed: All, StartingDeadline: time.Hour, StartRetries: 0,
		Retry: Retry{4, 2 * time.Second, 20 * time.Second, []CodeRange{{404, 404}, {500, 503}}},
		Lock:  Lock{TTL: 30 * time.Second}, Jitter: 30 * time.Second,
		Start: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), End: time.Date(2027, 11, 30, 23, 0, 0, 0, time.UTC),
		Notify:      "https://hc.example.com/1",
		Description: "sends the invoices – before ten", Owner: "team-invoices, #invoices",
		Runbook: "https://wiki.example.com:8443/invoices?view=plain#failed",
		Labels:  map[string]string{"tier": "silver", "area": "money", "cost_centre": "4711"},
	})
	equal(t, "second job", second, Job{
		Name: "tidy.up", TimeZone: "Europe/Berlin",
		Exec: &Exec{
			Command: []string{"/bin/tool", "--fast", "--token=" + canary},
			Env:     map[string]string{"LEVEL": "5", "EMPTY": ""}, Dir: "/data",
		},
		AllowRemote: true, Timeout: 2 * time.Minute, Guarantee: EveryReplica, ConcurrencyPolicy: Allow,
		Missed: Skip, StartingDeadline: 30 * time.Minute, StartRetries: 8, Retry: Retry{2, 2 * time.Second, 20 * time.Second, nil},
		Lock: Lock{TTL: 20 * time.Second}, Jitter: 10 * time.Second, Suspend: true,
		Reserved: true,
		Notify:   "http://hc.example.com/ping/" + canary,
		Owner:    "team-billing", Runbook: "http://wiki.example.com/", Labels: map[string]string{"tier": "gold", "area": "money"},
	})
}

func TestWhatIsLeftOutHasItsDefault(t *testing.T) {
	table := good(t, "small")
	hash, fingerprint, schedule := table.Hash, table.Jobs[0].Fingerprint, table.Jobs[0].Schedule
	if len(hash) != 12 || len(fingerprint) != 16 || schedule == nil {
		t.Errorf("hash %q, fingerprint %q, schedule %v", hash, fingerprint, schedule)
	}
	equal(t, "table", table, &Table{
		Service: "billing", Redis: Redis{Timeout: 500 * time.Millisecond}, Listen: ":9747", Admin: "127.0.0.1:9748", Clock: "redis",
		ShutdownGrace: 25 * time.Second, Hash: hash,
		Jobs: []Job{{
			Name: "ping", Schedule: schedule, TimeZone: "UTC", Timeout: 5 * time.Minute,
			HTTP: &HTTP{
				Method: "POST", URL: "http://127.0.0.1:8080/ping", SuccessCodes: []CodeRange{{200, 299}},
			},
			Guarantee: AtMostOnce, ConcurrencyPolicy: Forbid, Missed: Latest, StartRetries: 5, Retry: Retry{0, 5 * time.Second, time.Minute, nil},
			Lock: Lock{TTL: 15 * time.Second, SafetyDelay: time.Second}, Fingerprint: fingerprint,
			Content: table.Jobs[0].Content,
		}},
	})
}

func TestEmptyMappingsAndListsAreEmpty(t *testing.T) {
	table := good(t, "embedded")
	equal(t, "redis.url", table.Redis.URL, Embedded)
	equal(t, "listen", table.Listen, "")
	equal(t, "jobs", len(table.Jobs), 0)
	equal(t, "warnings", warnings(table), []string{"jobs is empty: nothing will run"})
}

func warnings(table *Table) []string {
	var out []string
	for _, w := range table.Warnings {
		out = append(out, w.Message)
	}
	return out
}

func TestWhatIsOddIsAWarning(t *testing.T) {
	table := good(t, "odd")
	equal(t, "warnings", warnings(table), []string{
		`job "new-year-2020": schedule "0 0 0 1 1 ? 2020": its last tick has passed, it will not run again`,
		`job "new-year-2020": allowRemote has no effect on exec`,
		`job "windowed": schedule "@daily": its last tick has passed, it will not run again`,
		`job "windowed": retry.on has no effect on exec: a command is tried again after any exit code other than 0`,
		`job "everywhere": lock has no effect: with guarantee every-replica there is no lock`,
		`job "everywhere": startRetries has no effect: with guarantee every-replica there is no lock`,
		`job "everywhere": reserved has no effect: without maxRunning every job has room`,
	})
	for _, w := range table.Warnings {
		if w.Line == 0 || !strings.Contains(w.String(), "^") {
			t.Errorf("%s shows no place", w)
		}
	}
	equal(t, "aliased command", table.Jobs[2].Exec.Command, []string{"tool"})
}

func TestLockOfDefaultsIsMergedKeyByKey(t *testing.T) {
	table := parsed(t, `
service: billing
jobs:
  - {name: a, schedule: "@daily", exec: {command: [a]}, lock: {safetyDelay: 2s}}
  - {name: b, schedule: "@daily", exec: {command: [b]}, lock: {ttl: 5s}}
defaults: {lock: {ttl: 40s}}
`)
	equal(t, "a", table.Jobs[0].Lock, Lock{40 * time.Second, 2 * time.Second})
	equal(t, "b", table.Jobs[1].Lock, Lock{5 * time.Second, time.Second})
}

func TestFormattingMakesNoDifference(t *testing.T) {
	plain := "service: billing\njobs:\n  - name: a\n    schedule: \"@daily\"\n    exec: {command: [a]}\n    timeout: 5m\n"
	same := []string{
		"\ufeff" + plain,
		strings.ReplaceAll(plain, "\n", "\r\n"),
		"---\n# a comment\n" + plain + "...\n",
		strings.Replace(plain, "timeout: 5m", "timeout: 300s", 1),
		strings.Replace(plain, "    timeout: 5m\n", "", 1),
		`{"jobs": [{"exec": {"command": ["a"]}, "schedule": '@daily', "name": "a"}], "service": "billing"}`,
	}
	want := parsed(t, plain)
	for _, text := range same {
		got := parsed(t, text)
		if got.Hash != want.Hash || got.Jobs[0].Fingerprint != want.Jobs[0].Fingerprint {
			t.Errorf("%q has another hash", text)
		}
	}
}

func TestLoadTellsProblemsFromFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(filepath.Join(dir, "none.yaml"), nil)
	if !errors.Is(err, fs.ErrNotExist) || errors.As(err, new(Problems)) {
		t.Errorf("no file: %v", err)
	}
	file := filepath.Join(dir, "table.yaml")
	if err := os.WriteFile(file, []byte("service: billing\njobs: [a]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var problems Problems
	if _, err := Load(file, nil); !errors.As(err, &problems) || problems[0].File != file {
		t.Errorf("a bad table: %v", err)
	}
	if err := os.WriteFile(file, []byte("service: billing\njobs: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if table, err := Load(file, nil); err != nil || table.Service != "billing" {
		t.Errorf("a good table: %v", err)
	}
}

// TestMomentsOutsideTheCalendarAreRefused: in UTC these are in the years -1 and 10000, which nothing can write.
func TestMomentsOutsideTheCalendarAreRefused(t *testing.T) {
	problems := problemsOf(t, `
service: s
jobs:
  - name: a
    schedule: "@daily"
    start: 0000-01-01T00:00:00+01:00
    end: 9999-12-31T23:59:59-01:00
    exec: {command: [a]}
`)
	if len(problems) != 2 || problems[0].Line != 6 || problems[1].Line != 7 {
		t.Errorf("got %v", problems)
	}
}

func TestLocalTargetsNeedNoPermission(t *testing.T) {
	for url, local := range map[string]bool{
		"http://localhost/x":              true,
		"http://LOCALHOST:8080":           true,
		"http://127.0.0.1:8080/x":         true,
		"http://127.1.2.3/x":              true,
		"http://[::1]:8080/x":             true,
		"http://[::ffff:127.0.0.1]/x":     true,
		"http://unix:/run/app.sock:/x":    true,
		"http://user:pw@127.0.0.1/x?a=b":  true,
		"http://localhost.example.com/x":  false,
		"http://127.0.0.1.example.com/x":  false,
		"http://127.0.0.1@example.com/x":  false,
		"http://example.com/?127.0.0.1":   false,
		"http://0.0.0.0/x":                false,
		"http://10.0.0.1/x":               false,
		"http://2130706433/x":             false,
		"http://127.1/x":                  false,
		"http://[::]/x":                   false,
		"http://169.254.169.254/latest":   false,
		"http://unix.example.com:80/x":    false,
		"https://billing.example.com/run": false,
	} {
		text := "service: s\njobs:\n  - {name: a, schedule: \"@daily\", http: {url: \"" + url + "\"}}\n"
		_, err := parse("table.yaml", []byte(text), testEnv, testNow)
		if (err == nil) != local {
			t.Errorf("%s: %v", url, err)
		}
		text = strings.Replace(text, "}}", "}, allowRemote: true}", 1)
		if _, err := parse("table.yaml", []byte(text), testEnv, testNow); err != nil {
			t.Errorf("%s with permission: %v", url, err)
		}
	}
}

func TestRedisURLs(t *testing.T) {
	for url, ok := range map[string]bool{
		"redis://redis":                       true,
		"redis://redis:6379/15":               true,
		"redis://:pw@redis:6379/":             true,
		"rediss://user:pw@[::1]:6379/0":       true,
		"unix:///run/redis.sock":              true,
		"unix://user:pw@/run/redis.sock?db=2": true,
		"embedded":                            true,
		"redis://":                            false,
		"redis://redis/-1":                    false,
		"redis://redis/01":                    false,
		"redis://redis/0/1":                   false,
		"redis://redis:0/0":                   false,
		"redis://redis:x/0":                   false,
		"redis://redis/0?db=1":                false,
		"redis://redis/0#1":                   false,
		"unix:///run/redis.sock?db=x":         false,
		"unix:///run/redis.sock?db=1&pw=x":    false,
		"unix:/":                              false,
		"redis+sentinel://redis":              false,
		"tcp://redis:6379":                    false,
		"":                                    false,
		" redis://redis":                      false,
	} {
		_, err := parse("table.yaml", []byte("service: s\nredis: {url: \""+url+"\"}\njobs: []\n"), testEnv, testNow)
		if (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestStartRetriesOfAJobWinOverThoseOfDefaults(t *testing.T) {
	const jobs = `
service: billing
jobs:
  - {name: a, schedule: "@daily", exec: {command: [a]}}
  - {name: b, schedule: "@daily", exec: {command: [b]}, startRetries: 0}
  - {name: c, schedule: "@daily", exec: {command: [c]}, startRetries: 100}
`
	for defaults, want := range map[string][]int{"": {5, 0, 100}, "defaults: {startRetries: 2}\n": {2, 0, 100}} {
		var got []int
		for _, j := range parsed(t, jobs+defaults).Jobs {
			got = append(got, j.StartRetries)
		}
		equal(t, defaults, got, want)
	}
}

// TestARenewalThatJustFitsIsGood is the bound of redis.timeout: three of them fill the ttl.
func TestARenewalThatJustFitsIsGood(t *testing.T) {
	const table = "service: s\nredis: {timeout: 1s}\n%sjobs: [{name: a, schedule: \"@daily\", %sexec: {command: [a]}}]\n"
	for _, c := range [][2]string{{"", "lock: {ttl: 3s}, "}, {"defaults: {lock: {ttl: 3s}}\n", ""}} {
		parsed(t, fmt.Sprintf(table, c[0], c[1]))
		short := strings.NewReplacer("3s", "2999ms").Replace(fmt.Sprintf(table, c[0], c[1]))
		if _, err := parse("table.yaml", []byte(short), testEnv, testNow); err == nil {
			t.Errorf("good, too: %s", short)
		}
	}
}

func TestWithoutAnEnvironmentEveryVariableIsMissing(t *testing.T) {
	if _, err := Parse("table.yaml", []byte("service: ${A}\njobs: []\n"), nil); err == nil {
		t.Error("no error")
	}
	if _, err := Parse("table.yaml", []byte("service: ${A:-a}\njobs: []\n"), nil); err != nil {
		t.Error(err)
	}
}
