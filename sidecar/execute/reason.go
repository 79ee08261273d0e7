package execute

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/solotick/solotick/internal/text"
)

const (
	maxReason = 300      // characters of a reason: it has to fit into a line of the history, or an alert
	maxLine   = 16 << 10 // bytes of a line from which a reason is made
)

// LastWords keeps the last line of a command's words that is not part of a stack trace. If there is none, it keeps
// the first line.
type LastWords struct{ text string }

// AddLine adds the next line.
func (l *LastWords) AddLine(line string) {
	if strings.ContainsFunc(line, isWord) && (l.text == "" || !isFrame(line)) {
		l.text = line[:min(len(line), maxLine)]
	}
}

// Reason is the line that was kept, as Brief has it.
func (l *LastWords) Reason() string { return Brief(l.text) }

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// isFrame reports whether a line belongs to a stack trace, and is not its message.
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
	`  (?:errno|code|syscall|address|port|path|dest|hostname): `,                  // JavaScript, below a trace
	`\s+File ".*", line \d+`,                                                      // Python
	`\S+:\d+:in [` + "`" + `'][^']*'$`,                                            // Ruby
	`#\d+ |  thrown in |Stack trace:$`,                                            // PHP
	`\[signal |goroutine \d+ \[|created by |\t\S+\.go:\d+|exit status \d+$`,       // Go
	`[\w./*()-]+\.[\w.*()-]+\((?:0x[\da-f]+|[{}, .?_])*\)$`,                       // Go
	`\s+\d+: (?:0x[\da-f]+|\S*::|\S+$)|stack backtrace:$|note: .*RUST_BACKTRACE=`, // Rust
	`\s+(?:\(.*\) \S+|\S+\.exs?):\d+: `,                                           // Elixir
}, "|") + ")")

// Brief makes a reason of a text: one line, safe to show, and not long.
func Brief(s string) string {
	return text.Cut(strings.Join(strings.Fields(Printable(s)), " "), maxReason)
}
