package lock

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A pattern that begins with any number of characters and is not anchored is tried anew at each character: the time of a
// script would grow with the square of what it reads.
func TestPatternsOfScriptsBeginSomewhere(t *testing.T) {
	scripts, err := filepath.Glob("../*/*.lua")
	more, err2 := filepath.Glob("../*/*/*.lua")
	if scripts = append(scripts, more...); err != nil || err2 != nil || len(scripts) < 13 {
		t.Fatalf("%q, %v, %v", scripts, err, err2)
	}
	free := regexp.MustCompile(`['"]\(*(\.|%[A-Z])[*+-]`)
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range free.FindAllIndex(text, -1) {
			t.Errorf("%s: %.40q", name, text[m[0]:])
		}
	}
}

// docs/protocol.md leads to each script and each trace, explains each answer to a claim and each way to settle a run,
// and its figures are those of the constants.
func TestTheProtocolPageIsComplete(t *testing.T) {
	text, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	var wanted []string

	for dir, least := range map[string]int{"lock": 7, "sidecar/service": 4} {
		scripts, err := filepath.Glob("../" + dir + "/*.lua")
		if err != nil || len(scripts) < least {
			t.Fatalf("the scripts are not where they are looked for: %q, %v", scripts, err)
		}
		for _, s := range scripts {
			wanted = append(wanted, "("+s+")")
		}
	}
	shown, err := filepath.Glob("testdata/traces/*.txt")
	if err != nil || len(shown) < 10 {
		t.Fatalf("the traces are not where they are looked for: %q, %v", shown, err)
	}
	for _, trace := range shown {
		wanted = append(wanted, "(../lock/"+trace+")")
	}
	for _, code := range codesIn(t, "answer.go", `Code = "([A-Z]+)"`, 15) {
		wanted = append(wanted, "\n| `"+code+"` | ")
	}
	for _, verb := range codesIn(t, "settle.lua", `(?m)^--   ([a-z]+)  `, 5) {
		wanted = append(wanted, "\n| `"+verb+"` | ")
	}
	words := map[any]string{time.Second: "1 second", 3: "three", "7": "seven"}
	expires := regexp.MustCompile(`'none' and (\d+) or (\d+)\)`).FindStringSubmatch(registerScript.Source)
	for _, s := range []struct {
		form   string
		figure any
	}{
		{"time at which the answered request was sent + ttl − %s", Margin},
		{"is repeated %s times at most because its replica died", takeovers},
		{"no replica registers for %s days expires", expires[2]},
		{"one of `none` after %s", expires[1]},
	} {
		if word, ok := words[s.figure]; ok {
			s.figure = word
		}
		wanted = append(wanted, fmt.Sprintf(s.form, s.figure))
	}

	inOneLine := strings.Join(strings.Fields(page), " ") // wherever its lines are broken
	for _, want := range wanted {
		if !strings.Contains(page, want) && !strings.Contains(inOneLine, want) {
			t.Errorf("docs/protocol.md does not say %q", want)
		}
	}
}

// codesIn finds the words that a source file defines, at least so many.
func codesIn(t *testing.T, file, pattern string, least int) []string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(source), -1) {
		words = append(words, m[1])
	}
	if len(words) < least {
		t.Fatalf("%s has only %q", file, words)
	}
	return words
}
