package config

import (
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
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(string(data), canary) {
			return
		}
		began := time.Now()
		table, err := parse("table.yaml", data, func(string) (string, bool) { return canary, true }, testNow)
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("took %v", took)
		}
		if err == nil {
			checkTable(t, table)
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

// checkTable checks what callers rely on.
func checkTable(t *testing.T, table *Table) {
	t.Helper()
	if table.Service == "" || len(table.Hash) != 12 || table.Redis.Timeout <= 0 {
		t.Errorf("not whole: %+v", table)
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
		names[j.Name] = true
	}
}

// TestHostileFilesEndSoon gives megabytes of what makes parsers of YAML slow or large.
func TestHostileFilesEndSoon(t *testing.T) {
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
