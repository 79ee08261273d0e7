package execute

import (
	"bytes"
	"encoding/json"
	"html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxReason = 300      // characters of a reason: what a line of the history, or an alert, has room for
	headSize  = 16 << 10 // bytes of an answer that are looked through for its reason
)

// head keeps the first headSize bytes written to it.
type head struct{ buf []byte }

// Write never fails.
func (h *head) Write(p []byte) (int, error) {
	h.buf = append(h.buf, p[:min(len(p), headSize-len(h.buf))]...)
	return len(p), nil
}

// reason is what the body of an answer tells of why a call failed, in one line: JSON as it is, the text of a page, the
// first line of anything else.
func (a answer) reason() string {
	text := strings.TrimSpace(string(a.head.buf))
	switch kind := strings.ToLower(a.header.Get("Content-Type")); {
	case strings.Contains(kind, "json"), strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
		var whole bytes.Buffer
		if json.Compact(&whole, []byte(text)) == nil {
			text = whole.String()
		}
		return brief(text)
	case strings.Contains(kind, "html"), strings.HasPrefix(text, "<"):
		return brief(html.UnescapeString(markup.ReplaceAllString(text, " ")))
	case strings.HasPrefix(text, pythonTrace):
		var last lastWords
		for line := range strings.Lines(text) {
			last.hear(line)
		}
		return last.reason()
	}
	first, _, _ := strings.Cut(text, "\n")
	return brief(first)
}

// markup is what a page has besides its text.
var markup = regexp.MustCompile(`(?is)<script\b.*?(?:</script\s*>|\z)|<style\b.*?(?:</style\s*>|\z)` +
	`|<!--.*?(?:-->|\z)|</?[a-z!?][^>]*(?:>|\z)`)

// pythonTrace begins a stack trace that ends, and does not begin, with the error.
const pythonTrace = "Traceback (most recent call last):"

// lastWords keeps the last line of a command's words that tells something: the last one that is no part of a stack trace. If
// there is none, it keeps the first line.
type lastWords struct{ text string }

func (l *lastWords) hear(line string) {
	if strings.ContainsFunc(line, isWord) && (l.text == "" || !isFrame(line)) {
		l.text = line[:min(len(line), headSize)]
	}
}

func (l *lastWords) reason() string { return brief(l.text) }

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// isFrame tells whether a line belongs to a stack trace, and is not its message.
func isFrame(line string) bool {
	return len(line) < maxFrame && frame.MatchString(strings.TrimRight(line, "\r\n"))
}

// maxFrame is longer than a frame is: each line of a command is looked at, and most of them soon.
const maxFrame = 1000

// frame has a line for each of the traces it knows. It is anchored, so that most lines are told by their beginning.
var frame = regexp.MustCompile("^(?:" + strings.Join([]string{
	`\s+(?:at|from|in) `,           // Java, JavaScript, .NET, Ruby
	`\s*\.\.\. \d+ (?:more|lines)`, // Java, JavaScript
	`Node\.js v\d`,                 // JavaScript
	`  (?:errno|code|syscall|address|port|path|dest|hostname): `,                  // JavaScript: what Node lists of an error below its trace
	`\s+File ".*", line \d+`,                                                      // Python
	`\S+:\d+:in [` + "`" + `'][^']*'$`,                                            // Ruby
	`#\d+ |  thrown in |Stack trace:$`,                                            // PHP
	`\[signal |goroutine \d+ \[|created by |\t\S+\.go:\d+|exit status \d+$`,       // Go
	`[\w./*()-]+\.[\w.*()-]+\((?:0x[\da-f]+|[{}, .?_])*\)$`,                       // Go
	`\s+\d+: (?:0x[\da-f]+|\S*::|\S+$)|stack backtrace:$|note: .*RUST_BACKTRACE=`, // Rust
	`\s+(?:\(.*\) \S+|\S+\.exs?):\d+: `,                                           // Elixir
}, "|") + ")")

// brief makes a reason of a text: one line, safe to show, and not long.
func brief(s string) string {
	s = strings.Join(strings.Fields(printable(s)), " ")
	if utf8.RuneCountInString(s) <= maxReason {
		return s
	}
	return string([]rune(s)[:maxReason-1]) + "…"
}
