// Package docs_test holds the documentation against the code.
package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
)

// read is a page without its blocks of code.
func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return fenced.ReplaceAllString(string(text), "")
}

var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// anchors are the names by which GitHub links to the headings of a page.
func anchors(text string) (names []string) {
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		name := link.ReplaceAllString(strings.ToLower(h[1]), "]")
		names = append(names, strings.ReplaceAll(notInAnchors.ReplaceAllString(name, ""), " ", "-"))
	}
	return names
}

// brokenLink tells what is wrong with a link of a page; "" if it is right, or leads elsewhere.
func brokenLink(t *testing.T, page, target string) string {
	t.Helper()
	path, anchor, _ := strings.Cut(target, "#")
	if strings.Contains(path, ":") {
		return ""
	}
	file := page
	if path != "" {
		file = filepath.Join(filepath.Dir(page), path)
	}
	if _, err := os.Stat(file); err != nil {
		return "there is no such file"
	}
	if anchor != "" && strings.HasSuffix(file, ".md") && !slices.Contains(anchors(read(t, file)), anchor) {
		return "the page has no such heading"
	}
	return ""
}

func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	above, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, page := range append(pages, above...) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			n++
			if why := brokenLink(t, page, m[1]); why != "" {
				t.Errorf("%s: %s: %s", page, m[1], why)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d links were looked at", n)
	}
}

func TestABrokenLinkIsFound(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("# A `word`, and [more](x.md)\n\n```\n# Not a heading\n```\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		"page.md": "", "#a-word-and-more": "", "page.md#a-word-and-more": "", "https://example.com/x": "",
		"other.md": "there is no such file", "#not-a-heading": "the page has no such heading", "page.md#a": "the page has no such heading",
	} {
		if got := brokenLink(t, page, target); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}
