package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzParse checks what holds for every file: it ends soon and without a panic, in a whole table or in problems that
// can be shown, and the values of variables stay secret.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/good/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte(secretive))
	f.Add([]byte("jobs:\n  -    \n"))
	f.Add([]byte(directoryHead + "-- \"a.yaml\" 11\nservice: a\n-- \"b.yaml\" 9\njobs: [5]\n"))
	f.Add([]byte("service: s\ncalendars: {c: {file: c.ics}, d: {dates: [2026-12-25, x]}}\njobs: [{name: a, schedule: [\"@daily\"], exclude: [c]}]\n"))
	for _, seed := range []string{
		"admin: \"[::1]:0\"\nmaxRunning: 3\nready: {exec: [a, b], interval: 1s}\nservice: s\njobs: []\n",
		"service: s\nready: {tcp: \":1\", url: http://unix:/a:/b}\nadmin: localhost\n",
		"service: s\nmaxRunning: 1\ndefaults: {startRetries: 99999999999, notify: {url: ${X}}}\njobs:\n" +
			"  - {name: a, schedule: \"@daily\", exec: {command: [a]}, reserved: true, notify: {url: \"http://h/?a#\"}}\n" +
			"  - {name: b, schedule: \"@daily\", http: {url: http://[::1]/}, priority: -1}\n",
	} {
		f.Add([]byte(seed))
	}
	schema := compiled(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(string(data), canary) {
			return
		}
		began := time.Now()
		table, err := parse("table.yaml", data, func(string) (string, bool) { return canary, true }, testNow)
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("took %v", took)
		}
		// Read without any variable set gives the same table, and reports no problem that the table does not have.
		unset, unsetErr := readTable("table.yaml", data, nothingSet, testNow)
		switch {
		case unset == nil:
			t.Errorf("Read gives no table: %v", unsetErr)
		case err == nil && !strings.Contains(string(data), ":-") && (unsetErr != nil || unset.Hash != table.Hash):
			t.Errorf("without variables it is %q, with them %q: %v", unset.Hash, table.Hash, unsetErr)
		}
		if err == nil {
			checkTable(t, table)
			if verdict, ok := judged(t, schema, data); verdict != nil || !ok {
				t.Errorf("the schema refuses it: %v", verdict)
			}
			return
		}
		var problems Problems
		if !errors.As(err, &problems) || len(problems) == 0 || table != nil {
			t.Fatalf("got %v and the table %v", err, table)
		}
		checkProblems(t, data, problems)
		if strings.Contains(problems.Error(), canary) {
			t.Errorf("a variable's value is shown:\n%s", problems)
		}
	})
}

// FuzzParseTimer checks what holds for every body: it gives problems that can be shown, or a whole timer that is read
// again as the same from what is kept of it.
func FuzzParseTimer(f *testing.F) {
	f.Add("report", []byte(fullTimer))
	for _, body := range secretiveBodies {
		f.Add("a", []byte(strings.ReplaceAll(body, canary, "x")))
	}
	f.Add("a", []byte("http: {url: \"http://unix:/a:/\\U0001F600\\uFFFE\\x7f\", headers: {}, successCodes: [0x64]}\nschedule: H H * * *\nretry: {limit: +1}\n"))
	const http = `"http": {"url": "http://127.0.0.1/x", "headers": {"A": "b"}, "body": "\ud83d\ude00"}`
	f.Add("Order-1", []byte(`{"at": "2026-12-24T18:00:00.1234+01:00", `+http+`, "retry": {"limit": 2}, "guarantee": "at-least-once"}`))
	f.Add("a_b.c", []byte(`{"after": "87672h", `+http+`, "timeout": "10s"}`))
	f.Add("a", []byte("{after: 0s, http: {url: 'http://127.0.0.1', headers: , successCodes: [200-299]}, retry: {}}"))
	f.Add("", []byte("at: 2036-11-21T12:00:00Z\nafter: -0.5ms\n"))
	f.Add("a", []byte(`{"after": "1s", "http": {"url": "http://127.0.0.1/x", "async": null}, "startRetries": -0}`))
	f.Add("a", []byte(`{"after": "1s", "http": {"url": "http://127.0.0.1/x", "body": "`+"\ufffe"+`", "async": null}}`))
	f.Fuzz(func(t *testing.T, id string, data []byte) {
		timer, err := ParseTimer(id, data, testNow)
		if err != nil {
			checkRefusal(t, plainJSON(data), err)
			return
		}
		j := timer.Job
		if j.Name != "timer:"+id || j.HTTP == nil || j.Exec != nil || j.AllowRemote || j.Timeout <= 0 || j.Guarantee == EveryReplica ||
			j.Notify != "" || timer.ID != id || !timer.At.Equal(timer.At.Truncate(time.Millisecond)) ||
			timer.Repeats == nil && (timer.At.Year() < 1970 || timer.At.Year() > 2036) {
			t.Errorf("not whole: %+v", timer)
		}
		asYAML := timerDecoders.New().(*timerDecoder)
		if same := asYAML.parse(id, nil, data, testNow); len(asYAML.Problems) > 0 || string(same.Source) != string(timer.Source) {
			t.Errorf("%s is read as %s, and as YAML as %s, %v", data, timer.Source, same.Source, asYAML.Problems)
		}
		again, err := ParseTimer(id, timer.Source, testNow.Add(-time.Minute))
		if err != nil || again.Job.content() != j.content() || string(again.Source) != string(timer.Source) || !json.Valid(timer.Source) ||
			timer.Repeats == nil && !again.At.Equal(timer.At) {
			t.Errorf("%s is kept as %s, read again as %+v, %v", data, timer.Source, again, err)
		}
	})
}

// checkRefusal checks the error about a body.
func checkRefusal(t *testing.T, data []byte, err error) {
	t.Helper()
	var problems Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("got %v", err)
	}
	checkProblems(t, data, problems)
}

// checkTable checks what callers rely on.
func checkTable(t *testing.T, table *Table) {
	t.Helper()
	if table.Service == "" || len(table.Hash) != 12 || table.Redis.Timeout <= 0 {
		t.Errorf("not whole: %+v", table)
	}
	if r := table.Ready; r != nil && (r.Interval <= 0 || r.Timeout <= 0 || r.URL == "" && r.TCP == "" && len(r.Exec) == 0) {
		t.Errorf("not whole: %+v", r)
	}
	names := map[string]bool{}
	for _, j := range table.Jobs {
		if j.Name == "" || names[j.Name] || j.Schedule == nil || (j.HTTP == nil) == (j.Exec == nil) ||
			len(j.Fingerprint) != 16 || j.Timeout <= 0 || j.Lock.TTL <= LockMargin || j.Lock.SafetyDelay < 0 || j.Jitter < 0 || j.StartingDeadline < 0 {
			t.Errorf("not whole: %+v", j)
		}
		if j.HTTP != nil && (j.HTTP.URL == "" || j.HTTP.Method == "" || len(j.HTTP.SuccessCodes) == 0) {
			t.Errorf("not whole: %+v", *j.HTTP)
		}
		if j.Exec != nil && (len(j.Exec.Command) == 0 || j.Exec.Command[0] == "") {
			t.Errorf("not whole: %+v", *j.Exec)
		}
		if len(j.Content) != 16 {
			t.Errorf("not whole: %+v", j)
		}
		names[j.Name] = true
	}
}

// TestHostileFilesEndSoon gives megabytes of what makes parsers of YAML slow or large.
func TestHostileFilesEndSoon(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: it computes for long")
	}
	fill := func(begin, unit string) string {
		return begin + strings.Repeat(unit, (maxSize-16-len(begin))/len(unit))
	}
	for name, text := range map[string]string{
		"brackets":       fill("", "["),
		"nested keys":    fill("", "? "),
		"nested lists":   fill("", "- "),
		"flow mapping":   fill("{", "a:,"),
		"flow list":      fill("jobs: [", "a,") + "]",
		"empty jobs":     fill("jobs:\n", "-\n"),
		"unknown keys":   fill("{", "a,") + "}",
		"one long line":  fill("service: ", "x"),
		"a long number":  fill("service: 0.", "1"),
		"comments":       fill("", "#\n"),
		"absent jobs":    "jobs:\n" + strings.Repeat("-\n", 120_000),
		"anchors":        fill("jobs:\n", "- &a *a\n"),
		"aliases":        fill("x: &a [1]\njobs:\n", "- *a\n"),
		"references":     fill("service: ", "${A}"),
		"open reference": fill("service: \"", "$${") + "\"",
		"documents":      fill("", "---\n"),
		"wide text":      fill("service: ", "\u202e"),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			problems := problemsOf(t, text)
			// A second or two, but on a busy machine; what is quadratic takes a quarter of an hour.
			if took := time.Since(began); took > 2*time.Minute {
				t.Errorf("took %v", took)
			}
			if size := len(problems.Error()); size > 1<<20 {
				t.Errorf("%d problems, %d bytes of them", len(problems), size)
			}
		})
	}
}
