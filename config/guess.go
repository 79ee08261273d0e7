package config

import (
	"regexp"
	"slices"
	"strings"
)

var keyLine = regexp.MustCompile(`^((?:[ \t]|- )*)["']?([A-Za-z][A-Za-z0-9_.-]{0,40})(["']?)[ \t]*:(?:[ \t]+|$)`)

// guess opens what can be opened in a line of a file that is not YAML: a key, and its value if no key of that name holds a
// secret and the key stands where it belongs, as far as the indentation tells.
func (s *source) guess(n int) []stretch {
	line := string(s.line(n))
	m := keyLine.FindStringSubmatchIndex(line)
	if m == nil || !s.underKeys(n, len([]rune(line[:m[4]]))) {
		return nil
	}
	at := func(i int) int { return len([]rune(line[:i])) }
	name, rest := line[m[4]:m[5]], line[m[1]:]
	spans := []stretch{{from: at(m[3]), to: at(m[7]), open: true}}
	known := everywhere(s.keys, name)
	if len(known) > 0 && !slices.ContainsFunc(known, func(k key) bool { return k.show != shown }) && !strings.ContainsAny(rest, "{}") {
		// Another ": ", or in JSON ":, may begin what belongs to another key.
		value, _, _ := strings.Cut(rest, ": ")
		value, _, _ = strings.Cut(value, `":`)
		value, _, _ = strings.Cut(value, " #")
		spans = append(spans, stretch{from: at(m[1]), to: at(m[1] + len(value)), open: true})
	}
	return spans
}

// guessValue is the value of a line's key, as far as guess shows it, and its column counted from 0.
func (s *source) guessValue(n int) (at int, value string) {
	spans := s.guess(n)
	if len(spans) < 2 {
		return 0, ""
	}
	return spans[1].from, strings.TrimRight(string(s.line(n)[spans[1].from:spans[1].to]), " \t")
}

// underKeys says whether all lines that a line is indented under hold nothing but a key that has keys of its own.
func (s *source) underKeys(n, indent int) bool {
	for n--; n >= 1 && indent > 0; n-- {
		line := string(s.line(n))
		if strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		m := keyLine.FindStringSubmatchIndex(line)
		if m == nil {
			if len(line)-len(strings.TrimLeft(line, " \t")) < indent {
				return false
			}
			continue
		}
		if m[4] >= indent {
			continue
		}
		indent = m[4]
		parent := func(k key) bool { return len(k.keys) > 0 }
		if !slices.ContainsFunc(everywhere(s.keys, line[m[4]:m[5]]), parent) || strings.ContainsAny(line[m[1]:], "{[\"'|>") {
			return false
		}
	}
	return true
}

// everywhere finds the keys of a name, wherever they stand.
func everywhere(keys []key, name string) (found []key) {
	for _, k := range keys {
		if k.name == name {
			found = append(found, k)
		}
		found = append(found, everywhere(k.keys, name)...)
	}
	return found
}
