package config

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// nothingSet is the environment of CI, and of an operator's laptop.
func nothingSet(string) (string, bool) { return "", false }

// readText is Read for text.
func readText(text string, env Env) (*Table, error) {
	return readTable("table.yaml", []byte(text), env, testNow)
}

func TestAVariableThatIsNotSetIsAWarningForWhoRunsNothing(t *testing.T) {
	const text = `service: billing
redis: {url: "redis://redis:6379/0", passwordFile: "${SECRETS}/redis"}
jobs:
  - name: send-invoices
    schedule: "0 9 * * *"
    http: {url: "http://127.0.0.1:8080/", headers: {Authorization: "Bearer ${TOKEN}", X-Key: "${TOKEN}"}}
  - {name: tidy, schedule: "0 3 * * *", timeZone: "${ZONE}", exec: {command: [tidy, "${TOKEN}"]}}
  - {name: "app-${NAME}", schedule: "0 3 * * *", exec: {command: [tidy]}}
`
	if _, err := parse("table.yaml", []byte(text), nothingSet, testNow); err == nil {
		t.Error("who runs the jobs is not told")
	}
	got, err := readText(text, nothingSet)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "unset", got.Unset, []string{"SECRETS", "TOKEN", "ZONE", "NAME"})
	equal(t, "unknown", slices.Sorted(maps.Keys(got.Unknown)), []string{Names, "redis.passwordFile"})
	var names []string
	for _, j := range got.Jobs {
		names = append(names, j.Name)
	}
	equal(t, "jobs", names, []string{"send-invoices", "tidy"})
	if got.Jobs[0].Schedule == nil || got.Jobs[1].Schedule != nil {
		t.Error("a schedule is known, whose zone is not, or the other way round")
	}
	if len(got.Warnings) != 4 {
		t.Errorf("got %d warnings, want one for each variable", len(got.Warnings))
	}
	const want = `table.yaml:6:68: job "send-invoices": ` +
		`http.headers.Authorization: the environment variable TOKEN is not set; 2 more values use it
     6 |     http: {url: "http://127.0.0.1:8080/", headers: {Authorization: ***
       |                                                                    ^~~
  hint: solotick run needs it, or a default: ${TOKEN:-…}`
	equal(t, "warning", got.Warnings[1].String(), want)
}

// TestAnUnsetVariableMakesNoProblemOfOtherValues leaves each value of a good table open whose variable may be far from
// its default.
func TestAnUnsetVariableMakesNoProblemOfOtherValues(t *testing.T) {
	for _, text := range []string{
		"redis: {timeout: \"${X}\"}\njobs: [{name: a, schedule: \"@daily\", lock: {ttl: 1200ms}, exec: {command: [a]}}]",
		"redis: {timeout: 6s}\ndefaults: {lock: {ttl: \"${X}\"}}\njobs: [{name: a, schedule: \"@daily\", exec: {command: [a]}}]",
		"jobs: [{name: a, schedule: \"@daily\", retry: {limit: 1, backoff: \"${X}\", maxBackoff: 1s}, exec: {command: [a]}}]",
		"jobs: [{name: a, schedule: \"@daily\", retry: {limit: 1, backoff: 2m, maxBackoff: \"${X}\"}, exec: {command: [a]}}]",
		"jobs: [{name: a, schedule: \"@daily\", allowRemote: \"${X}\", http: {url: \"http://example.com/\"}}]",
		"jobs: [{name: a, schedule: \"@daily\", http: {url: \"${X}\"}}]",
		"jobs: [{name: a, schedule: \"${X}\", jitter: 10m, exec: {command: [a]}}]",
		"jobs: [{name: a, schedule: \"@at 2020-01-01T00:00:00Z\", start: \"${X}\", exec: {command: [a]}}]",
		"jobs: [{name: a, schedule: \"@daily\", guarantee: \"${X}\", missed: \"${X}\", concurrencyPolicy: \"${X}\", startRetries: \"${X}\", " +
			"exec: {command: [a]}}]",
		"jobs: [{name: a, schedule: \"@daily\", guarantee: every-replica, missed: \"${X}\", allowRemote: \"${X}\", exec: {command: [a]}}]",
		"jobs: [{name: a, schedule: \"@daily\", notify: {url: \"${X}\"}, exec: {command: [\"${X}\"], dir: \"${X}\"}}]",
		"maxRunning: \"${X}\"\njobs: [{name: a, schedule: \"@daily\", reserved: true, exec: {command: [a]}}]",
		"redis: {sentinel: {master: \"${X}\", addrs: [\"${X}\"]}}\nready: {tcp: \"${X}\"}\nlisten: \"${X}\"\nadmin: \"${X}\"\n" +
			"jobs: [{name: \"${X}\", schedule: H H * * *, exec: {command: [a]}}]",
		"redis: {url: \"${X}\", username: app, tls: {}}\njobs: [{name: a, schedule: \"@daily\", " +
			"http: {url: \"http://127.0.0.1\", successCodes: [\"${X}\"]}}]",
	} {
		got, err := readText("service: s\n"+text+"\n", nothingSet)
		if err != nil {
			t.Errorf("%s:\n%v", text, err)
			continue
		}
		for _, w := range got.Warnings {
			if !strings.Contains(w.Message, "X is not set") {
				t.Errorf("%s:\n%s", text, w)
			}
		}
	}
}

func TestOfABrokenTableIsReadWhatCanBe(t *testing.T) {
	const head = "# a comment\nservice: billing\nredis:\n  # another\n  url: redis://redis:6379/0\n"
	for name, c := range map[string]struct {
		text    string
		jobs    []string
		unknown []string
	}{
		"one job": {head + "jobs:\n  - {name: a, schedule: \"61 * * * *\", exec: {command: [a]}}\n" +
			"  - {name: b, schedule: \"@daily\", exec: {command: [b]}}\n", []string{"a", "b"}, []string{"jobs"}},
		"two of one name": {head + "jobs:\n  - {name: a, schedule: \"@daily\", exec: {command: [a]}}\n" +
			"  - {name: a, schedule: \"@daily\", exec: {command: [b]}}\n", []string{"a"}, []string{"jobs"}},
		"a name": {head + "jobs:\n  - {name: A!, schedule: \"@daily\", exec: {command: [a]}}\n" +
			"  - {name: b, schedule: \"@daily\", exec: {command: [b]}}\n", []string{"b"}, []string{"jobs", Names}},
		"no job":  {head + "jobs:\n  - name b\n  -\n", nil, []string{"jobs", Names}},
		"no list": {head + "jobs: {a: {schedule: \"@daily\", exec: {command: [a]}}}\n", nil, []string{"jobs", Names}},
		"another key": {head + "frobnicate: 1\njobs:\n  - {name: b, schedule: \"@daily\", exec: {command: [b]}}\n",
			[]string{"b"}, nil},
		"no YAML":              {head + "jobs:\n  - {name: a, schedule: *x, exec: [\n", nil, []string{"jobs", Names}},
		"no YAML before it":    {"jobs: [\n" + head, nil, []string{"jobs", Names}},
		"cut off":              {head + "jobs", nil, []string{"jobs", Names}},
		"redis with a problem": {strings.Replace(head, "url", "urll", 1) + "jobs: []\n", nil, []string{"redis"}},
		"listen is no YAML":    {head + "listen: \":9747\njobs: []\n", nil, []string{"jobs", Names}},
		"redis is no YAML":     {strings.Replace(head, "redis://redis", "[", 1) + "jobs: []\n", nil, []string{"jobs", Names, "redis", "service"}},
	} {
		got, err := readText(c.text, nothingSet)
		var problems Problems
		if !errors.As(err, &problems) {
			t.Errorf("%s: got %v, want problems", name, err)
		}
		var unknown []string
		for k := range got.Unknown {
			unknown = append(unknown, k)
		}
		slices.Sort(unknown)
		var jobs []string
		for _, j := range got.Jobs {
			jobs = append(jobs, j.Name)
		}
		equal(t, name+": jobs", jobs, c.jobs)
		if equal(t, name+": unknown", unknown, c.unknown); got.Hash != "" {
			t.Errorf("%s: hash %q", name, got.Hash)
		}
		if !slices.Contains(c.unknown, "redis") && (got.Service != "billing" || got.Redis.URL != "redis://redis:6379/0") {
			t.Errorf("%s: service %q, redis %q", name, got.Service, got.Redis.URL)
		}
	}
}

// A replica that starts with such a file serves there, and not at addresses that may be another program's.
func TestAFileThatIsNoYAMLTellsItsAddressesAndClock(t *testing.T) {
	got, err := readText("service: billing\nredis: {url: redis://redis:6379/0}\nclock: local\nlisten: \":1\"\nadmin: \"\"\njobs: [\n",
		nothingSet)
	if err == nil || got.Service != "billing" || got.Clock != "local" || got.Listen != ":1" || got.Admin != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestVariablesThatDifferMakeNoOtherTable: replicas whose variables differ, such as their names, must show the same
// hash.
func TestVariablesThatDifferMakeNoOtherTable(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "good", "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("dir: /data", "dir: \"/data/${POD_NAME}\"", "timeout: 2m", "timeout: \"${LIMIT:-2m}\"",
		"0 9 * * MON-FRI", "${AT:-0 9 * * *}", "America/New_York", "${ZONE:-UTC}").Replace(string(data))
	env := func(pod string) Env {
		own := map[string]string{"POD_NAME": pod, "LIMIT": pod + "m", "AT": pod + " 8 * * *", "ZONE": "Asia/Tokyo", "TOKEN": "token" + pod}
		return func(name string) (string, bool) { v, ok := own[name]; return v, ok }
	}
	a, err := parse("table.yaml", []byte(text), env("1"), testNow)
	if err != nil {
		t.Fatal(err)
	}
	b, err := parse("table.yaml", []byte(text), env("2"), testNow)
	if err != nil {
		t.Fatal(err)
	}
	if a.Hash != b.Hash {
		t.Errorf("the hashes are %s and %s", a.Hash, b.Hash)
	}
	if a.Equal(b) {
		t.Error("what differs is not seen by a reload")
	}
	seen := map[string]bool{a.Hash: true}
	for _, change := range [][2]string{
		{"/data/${POD_NAME}", "/data/${ZONE}"}, {"${LIMIT:-2m}", "${LIMIT:-3m}"}, {"${LIMIT:-2m}", "2m"}, {"Bearer ${TOKEN}", "Basic ${TOKEN}"},
		{"${ZONE:-UTC}", "${ZONES:-UTC}"}, {"${AT:-0 9 * * *}", "0 9 * * *"},
	} {
		other, err := parse("table.yaml", []byte(strings.Replace(text, change[0], change[1], 1)), env("1"), testNow)
		if err != nil {
			t.Fatal(err)
		}
		if seen[other.Hash] || a.Equal(other) {
			t.Errorf("%s → %s makes no other table", change[0], change[1])
		}
		seen[other.Hash] = true
	}
	listens := strings.Replace(text, `listen: "127.0.0.1:9000"`, `listen: ":${PORT:-1}"`, 1)
	if other, err := parse("table.yaml", []byte(listens), env("1"), testNow); err != nil || other.Hash != a.Hash {
		t.Errorf("where it listens makes another table of it: %v", err)
	}
}

// TestAScheduleInAZoneOfAVariableCountsInTheHash: what cannot be resolved without the variable is in the hash all the
// same.
func TestAScheduleInAZoneOfAVariableCountsInTheHash(t *testing.T) {
	const text = "service: s\njobs: [{name: a, schedule: \"0 9 * * *\", timeZone: \"${ZONE}\", exec: {command: [a]}}]\n"
	utc := func(string) (string, bool) { return "UTC", true }
	a, err := parse("table.yaml", []byte(text), utc, testNow)
	if err != nil {
		t.Fatal(err)
	}
	b, err := parse("table.yaml", []byte(strings.Replace(text, "0 9", "0 8", 1)), utc, testNow)
	if err != nil || a.Hash == b.Hash {
		t.Errorf("both have %s: %v", a.Hash, err)
	}
}

// TestNoWarningGuessesWhatAVariableHolds covers variables that are not set and variables that are.
func TestNoWarningGuessesWhatAVariableHolds(t *testing.T) {
	for _, job := range []string{
		`schedule: "@daily", exec: {command: ["${TOOL}", "|"]}`,
		`schedule: "@daily", http: {url: "http://127.0.0.1/"}, retry: {limit: "${N}", on: [404]}`,
		`schedule: "@daily", http: {url: "http://127.0.0.1/"}, retry: {limit: 1, on: ["${CODE:-409}"]}`,
		`schedule: "@daily", http: {url: "http://127.0.0.1/", successCodes: ["${CODE}"]}, retry: {limit: 1, on: [409]}`,
	} {
		got, err := readText("service: s\njobs:\n  - {name: a, "+job+"}\n", nothingSet)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range got.Warnings {
			if !strings.Contains(w.Message, "is not set") {
				t.Errorf("%s: %s", job, w)
			}
		}
	}
}
