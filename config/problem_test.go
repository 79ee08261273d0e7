package config

import (
	"strings"
	"testing"

	"github.com/solotick/solotick/config/strict"
)

func TestCaretStandsUnderWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ name, table, want string }{
		{"wide characters before it", "service: s\njobs: [] # ä\n\"ä\": 1\n", "     3 | ***\n       | ^~~"},
		{"tabs before it", "service:\t\tBad\njobs: []\n", "     1 | service:→→Bad\n       |           ^~~"},
		{"escapes before it",
			"service: s\njobs: [{name: \"\u200b\", x: 1}]\n",
			`     2 | jobs: [{name: "\u200b", x: ***` + "\n" + "       |                         ^"},
		{"a mask before it", "service: s\nredis: {url: \"redis://:long-password@redis\", timeout: 1}\njobs: []\n",
			"     2 | redis: {url: *** …\n       |                  ^"},
		{"a mask of its own", "service: s\nredis: {timeout: 1s, url: \"redis://:long-password@\"}\njobs: []\n",
			"     2 | redis: {timeout: 1s, url: ***\n       |                           ^~~"},
		{"a mask far before it", "service: s\nredis: {url: \"redis://:" + strings.Repeat("x", 200) + "@redis\", timeout: 1}\njobs: []\n",
			"     2 | redis: {url: *** …\n       |                  ^"},
		{"an anchor before it", "service: &s S\njobs: []\n", "     1 | service: &s S\n       |          ^~~~"},
		{"a quote in it", "service: 'it''s'\njobs: []\n", "     1 | service: 'it''s'\n       |          ^~~~~~~"},
		{"an escape in it", "service: \"\\\"s\\\\\"\njobs: []\n", `     1 | service: "\"s\\"` + "\n       |          ^~~~~~~"},
		{"several lines", "service: one\n  two\njobs: []\n", "     1 | service: one\n       |          ^~~"},
		{"a block", "service: |\n  two words\njobs: []\n", "     1 | service: |\n       |          ^"},
	} {
		got := problemsOf(t, c.table).Error()
		if !strings.Contains(got+"\n", c.want+"\n") {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestLongLinesAreCutAroundTheCaret(t *testing.T) {
	long := strings.Repeat("x", 500)
	got := problemsOf(t, "service: s\njobs: [] # "+long+"\nredis: {url: redis://"+long+", username: a, timeout: 1, clock: 2}\n")
	for _, p := range got {
		if n := len([]rune(p.Source)); n > strict.WindowWidth+2 {
			t.Errorf("%d characters are shown: %s", n, p)
		}
	}
	if text := got[0].String(); !strings.Contains(text, "…") || !strings.HasSuffix(strings.Split(text, "\n")[2], "^") {
		t.Errorf("got\n%s", text)
	}
}

func TestFileNamesAreSafeToShow(t *testing.T) {
	_, err := Parse("a\x1b[31m\n.yaml", []byte("x"), nil)
	if got := err.Error(); strings.Contains(got, "\x1b") || !strings.HasPrefix(got, `a\x1b[31m\n.yaml:1:1: `) {
		t.Errorf("got %q", got)
	}
}

func TestManyProblemsAreAllReportedOnce(t *testing.T) {
	var b strings.Builder
	b.WriteString("service: S\nx: &x {timeout: 5}\ndefaults: *x\njobs:\n")
	for range 20 {
		b.WriteString("  - {name: a, schedule: \"@daily\", exec: {command: [a]}, lock: *x}\n")
	}
	got := problemsOf(t, b.String())
	seen := map[string]bool{}
	for _, p := range got {
		if text := p.String(); seen[text] {
			t.Errorf("twice: %s", text)
		} else {
			seen[text] = true
		}
	}
	if want := 1 + 1 + 1 + 19 + 1; len(got) != want { // service, x, timeout, 19 names, the key under lock
		t.Errorf("%d problems, want %d:\n%s", len(got), want, got)
	}
}
