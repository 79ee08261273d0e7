package call

import (
	"bytes"
	"encoding/json"
	"html"
	"regexp"
	"strings"

	"github.com/solotick/solotick/sidecar/execute"
)

// headSize is how many bytes of an answer are looked through for its reason.
const headSize = 16 << 10

// head keeps the first headSize bytes written to it.
type head struct{ buf []byte }

// Write never fails.
func (h *head) Write(p []byte) (int, error) {
	h.buf = append(h.buf, p[:min(len(p), headSize-len(h.buf))]...)
	return len(p), nil
}

// reason makes one line of an answer's body that tells why the call failed: JSON as it is, the text of a page, the
// first line of anything else.
func (a answer) reason() string {
	text := strings.TrimSpace(string(a.head.buf))
	switch kind := strings.ToLower(a.header.Get("Content-Type")); {
	case strings.Contains(kind, "json"), strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
		var whole bytes.Buffer
		if json.Compact(&whole, []byte(text)) == nil {
			text = whole.String()
		}
		return execute.Brief(text)
	case strings.Contains(kind, "html"), strings.HasPrefix(text, "<"):
		return execute.Brief(html.UnescapeString(markup.ReplaceAllString(text, " ")))
	case strings.HasPrefix(text, pythonTrace):
		var last execute.LastWords
		for line := range strings.Lines(text) {
			last.AddLine(line)
		}
		return last.Reason()
	}
	first, _, _ := strings.Cut(text, "\n")
	return execute.Brief(first)
}

// markup matches all of a page that is not its text.
var markup = regexp.MustCompile(`(?is)<script\b.*?(?:</script\s*>|\z)|<style\b.*?(?:</style\s*>|\z)` +
	`|<!--.*?(?:-->|\z)|</?[a-z!?][^>]*(?:>|\z)`)

// pythonTrace begins a stack trace that ends, and does not begin, with the error.
const pythonTrace = "Traceback (most recent call last):"
