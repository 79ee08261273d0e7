package strict

import (
	"regexp"
	"slices"
	"strings"
)

var keyLine = regexp.MustCompile(`^((?:[ \t]|- )*)["']?([A-Za-z][A-Za-z0-9_.-]{0,40})(["']?)[ \t]*:(?:[ \t]+|$)`)

// guess returns the parts of a line that may be shown if the file is not YAML. These are a key, and its value if no key
// of that name holds a secret and the indentation fits the key.
func (s *source) guess(n int) []stretch {
	line := string(s.line(n))
	m := keyLine.FindStringSubmatchIndex(line)
	if m == nil || !s.underKeys(n, len([]rune(line[:m[4]]))) {
		return nil
	}
	at := func(i int) int { return len([]rune(line[:i])) }
	name, rest := line[m[4]:m[5]], line[m[1]:]
	stretches := []stretch{{from: at(m[3]), to: at(m[7]), open: true}}
	known := everywhere(s.keys, name)
	secret := func(k Key) bool { return k.Show != Shown }
	if len(known) > 0 && !slices.ContainsFunc(known, secret) && !strings.ContainsAny(rest, "{}") {
		// After another ": ", or ": in JSON, the text may belong to another key.
		value, _, _ := strings.Cut(rest, ": ")
		value, _, _ = strings.Cut(value, `":`)
		value, _, _ = strings.Cut(value, " #")
		stretches = append(stretches, stretch{from: at(m[1]), to: at(m[1] + len(value)), open: true})
	}
	return stretches
}

// guessValue returns the part of a key's value that guess shows, and its column, counted from 0.
func (s *source) guessValue(n int) (at int, value string) {
	stretches := s.guess(n)
	if len(stretches) < 2 {
		return 0, ""
	}
	return stretches[1].from, strings.TrimRight(string(s.line(n)[stretches[1].from:stretches[1].to]), " \t")
}

// underKeys reports whether every line that a line is indented under has only a key, and one that has keys of its own.
func (s *source) underKeys(n, indent int) bool {
	for n--; n >= 1 && indent > 0; n-- {
		line := string(s.line(n))
		text := strings.TrimSpace(line)
		m := keyLine.FindStringSubmatchIndex(line)
		switch {
		case text == "", text[0] == '#':
			continue
		case m == nil && len(line)-len(strings.TrimLeft(line, " \t")) < indent:
			return false
		case m == nil, m[4] >= indent:
			continue
		}
		indent = m[4]
		parent := func(k Key) bool { return len(k.Keys) > 0 }
		if !slices.ContainsFunc(everywhere(s.keys, line[m[4]:m[5]]), parent) ||
			strings.ContainsAny(line[m[1]:], "{[\"'|>") {
			return false
		}
	}
	return true
}

// everywhere finds all keys of a name, at any depth.
func everywhere(keys []Key, name string) (found []Key) {
	for _, k := range keys {
		if k.Name == name {
			found = append(found, k)
		}
		found = append(found, everywhere(k.Keys, name)...)
	}
	return found
}
