package convert

import (
	"regexp"
	"strings"
)

// entry is one line of a crontab that runs something.
type entry struct {
	schedule string // unchanged: five fields or a word that begins with @
	user     string // "" in a user's own crontab
	command  string // unchanged, with its %
}

// assignment is a line that sets a variable: cron reads it before it looks for a schedule.
var assignment = regexp.MustCompile(`^\s*("[^"]*"|'[^']*'|[^\s="'#]+)\s*=\s*(.*?)\s*$`)

// variableOf reads a line that sets a variable. Cron expands nothing in it.
func variableOf(line string) (variable, bool) {
	m := assignment.FindStringSubmatch(line)
	if m == nil {
		return variable{}, false
	}
	return variable{unquoted(m[1]), unquoted(m[2])}, true
}

func unquoted(s string) string {
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// entryOf splits a line. ok is false when it has too few words for an entry.
func entryOf(line string, userColumn bool) (e entry, ok bool) {
	rest := strings.TrimLeft(line, " \t")
	fields := 5
	if strings.HasPrefix(rest, "@") {
		fields = 1
	}
	var words []string
	for range fields {
		var w string
		if w, rest = word(rest); w == "" {
			return entry{}, false
		}
		words = append(words, w)
	}
	if strings.HasPrefix(words[0], "@every") && len(words[0]) == len("@every") {
		var period string
		if period, rest = word(rest); period == "" {
			return entry{}, false
		}
		words = append(words, period)
	}
	e.schedule = strings.Join(words, " ")
	if userColumn {
		e.user, rest = word(rest)
	}
	for { // flags of OpenBSD and FreeBSD before a command
		flag, after := word(rest)
		if !bsdFlags.MatchString(flag) {
			break
		}
		rest = after
	}
	e.command = rest
	return e, strings.TrimSpace(rest) != ""
}

var bsdFlags = regexp.MustCompile(`^-[nqs]+$`)

// word cuts the first word off.
func word(s string) (first, rest string) {
	end := strings.IndexAny(s, " \t")
	if end < 0 {
		return s, ""
	}
	return s[:end], strings.TrimLeft(s[end:], " \t")
}

// split applies cron's rule for %. The first % without a backslash before it ends the command. The rest is its standard
// input, with a line break for each further %. As in every cron since Vixie's, the two parts treat backslashes a little
// differently.
func split(text string) (command, stdin string, hasStdin bool) {
	var b strings.Builder
	escaped := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case escaped && c == '%':
			s := b.String()
			b.Reset()
			b.WriteString(s[:len(s)-1] + "%")
			escaped = false
		case !escaped && c == '%':
			return b.String(), input(text[i+1:]), true
		default:
			b.WriteByte(c)
			escaped = c == '\\' && !escaped
		}
	}
	return b.String(), "", false
}

// input returns the text that cron writes to the command's standard input. It always ends with a line break.
func input(text string) string {
	var b strings.Builder
	escaped := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case escaped && c != '%':
			b.WriteByte('\\')
		case !escaped && c == '%':
			c = '\n'
		}
		if escaped = c == '\\'; !escaped {
			b.WriteByte(c)
		}
	}
	if escaped {
		b.WriteByte('\\')
	}
	if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
		b.WriteByte('\n')
	}
	return b.String()
}
