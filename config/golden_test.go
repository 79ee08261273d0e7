package config

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/solotick/solotick/config/strict"
)

var update = flag.Bool("update", false, "rewrite the expected output")

// testNow is when the tests take place.
var testNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// canary must never be in any output.
const canary = "KANARIENVOGEL"

// testEnv is the environment of the tests.
func testEnv(name string) (string, bool) {
	value, ok := map[string]string{"PORT": "8080", "TOKEN": canary, "CANARY": canary, "EMPTY": ""}[name]
	return value, ok
}

// TestEveryBadTableSaysWhatIsWrong compares the problems of each bad table with reviewed ones.
func TestEveryBadTableSaysWhatIsWrong(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 50 {
		t.Fatalf("only %d bad tables: is the test run in the wrong folder?", len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, data)
		})
	}
}

// TestTableLargerThanTheLimitIsRefused keeps its two megabytes out of the repository.
func TestTableLargerThanTheLimitIsRefused(t *testing.T) {
	line := []byte("# a line of a comment that makes the file far too large\n")
	golden(t, "two-megabytes", append([]byte("service: billing\njobs: []\n"), bytes.Repeat(line, 2<<20/len(line))...))
}

// TestBodyLargerThanTheLimitIsRefused keeps the body out of the repository.
func TestBodyLargerThanTheLimitIsRefused(t *testing.T) {
	const table = "service: s\njobs:\n  - name: a\n    schedule: \"@daily\"\n" +
		"    http:\n      url: http://127.0.0.1\n      body: "
	parsed(t, table+strings.Repeat("x", maxBody))
	golden(t, "body-too-large", []byte(table+strings.Repeat("x", maxBody+1)))
}

// golden checks the problems of a bad table against its expected output.
func golden(t *testing.T, name string, data []byte) {
	t.Helper()
	_, err := parse(name+".yaml", data, testEnv, testNow)
	var problems Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got %v, want problems", err)
	}
	got := shortLists(problems.Error() + "\n")
	checkProblems(t, data, problems)
	for _, word := range []string{"!!", "yaml:", "go-yaml", "unmarshal", "libyaml", "config.", "strict.", "time:", "%!"} {
		if strings.Contains(strings.ReplaceAll(got, "\n", " "), " "+word) {
			t.Errorf("%q speaks of the insides:\n%s", word, got)
		}
	}
	if strings.Contains(got, canary) || strings.Contains(got, "s3cret") || strings.Contains(got, "hunter2") {
		t.Errorf("a secret is shown:\n%s", got)
	}
	file := filepath.Join("testdata/bad", name+".out")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// shortLists names the long lists of allowed keys, which must be complete. So a new key changes no golden file but its
// own.
func shortLists(text string) string {
	for of, keys := range map[string][]strict.Key{"the table": blank.Root, "jobs": keysOf("jobs"), "defaults": keysOf("defaults")} {
		var names []string
		for _, k := range keys {
			names = append(names, k.Name)
		}
		text = strings.ReplaceAll(text, "allowed here: "+strings.Join(names, ", ")+"\n", "allowed here: (all keys of "+of+")\n")
	}
	return text
}

// checkProblems checks what holds for the problems of any table.
func checkProblems(t *testing.T, data []byte, problems []Problem) {
	t.Helper()
	lines := bytes.Count(data, []byte("\n")) + 1
	for i, p := range problems {
		if p.Line < 0 || p.Line > lines || p.Line > 0 && p.Column < 1 || p.Line == 0 && p.Column != 0 {
			t.Errorf("%q is at %d:%d of %d lines", p.Message, p.Line, p.Column, lines)
		}
		if i > 0 && (p.Line < problems[i-1].Line || p.Line == problems[i-1].Line && p.Column < problems[i-1].Column) {
			t.Errorf("%q stands behind a later one", p.Message)
		}
		if s := p.String(); strict.Printable(s) != strings.ReplaceAll(s, "\n", `\n`) {
			t.Errorf("%q would act on a terminal", s)
		}
		if len(p.Source) > 0 && (p.Caret < 0 || p.Width < 1 || p.Caret > utf8.RuneCountInString(p.Source)) {
			t.Errorf("%q: caret at %d, %d wide", p.Source, p.Caret, p.Width)
		}
	}
}
