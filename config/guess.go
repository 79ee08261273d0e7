package config

import (
	"regexp"
	"strings"
)

// containers are the keys whose own keys are part of the language. What stands below any other may be a secret.
var containers = map[string]bool{
	"redis": true, "sentinel": true, "cluster": true, "tls": true, "defaults": true, "jobs": true, "http": true, "exec": true, "lock": true,
	"ready": true, "resources": true,
}

var keyLine = regexp.MustCompile(`^((?:[ \t]|- )*)["']?([A-Za-z][A-Za-z0-9_.-]{0,40})["']?[ \t]*:(?:[ \t]+|$)`)

// guess finds what may be shown of a line of a file that is not YAML: a key, and its value where the key is known to
// hold no secret and stands where it belongs, as far as the indentation tells.
func (s *source) guess(n int) []token {
	line := string(s.line(n))
	m := keyLine.FindStringSubmatchIndex(line)
	if m == nil || !s.inTheOpen(n, len([]rune(line[:m[4]]))) {
		return nil
	}
	at := func(i int) int { return len([]rune(line[:i])) }
	name, rest := line[m[4]:m[5]], line[m[1]:]
	tokens := []token{{from: at(m[4]), to: at(m[5]), open: true}}
	switch show := showOf(s.keys, name); {
	case show == shownURL:
		value := strings.TrimRight(rest, " \t")
		tokens = append(tokens, token{from: at(m[1]), to: at(m[1] + len(value)),
			text: quoteLike([]rune(value), 0, safeURL(strings.Trim(value, `"'`)))})
	case show == shown && !strings.ContainsAny(rest, "{}"):
		// Another ": ", or in JSON ":, may begin what belongs to another key.
		value, _, _ := strings.Cut(rest, ": ")
		value, _, _ = strings.Cut(value, `":`)
		value, _, _ = strings.Cut(value, " #")
		tokens = append(tokens, token{from: at(m[1]), to: at(m[1] + len(value)), open: true})
	}
	return tokens
}

// guessValue is the value of a line's key, as far as guess shows it as it stands, and its column counted from 0.
func (s *source) guessValue(n int) (at int, value string) {
	tokens := s.guess(n)
	if len(tokens) < 2 || !tokens[1].open {
		return 0, ""
	}
	t := tokens[1]
	return t.from, strings.TrimRight(string(s.line(n)[t.from:t.to]), " \t")
}

// inTheOpen says whether all that a line is indented under are containers.
func (s *source) inTheOpen(n, indent int) bool {
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
		if indent = m[4]; !containers[line[m[4]:m[5]]] || strings.ContainsAny(line[m[1]:], "{[\"'|>") {
			return false
		}
	}
	return true
}

// showOf is what may be shown of a key's value wherever the key stands: the least of all places.
func showOf(keys []key, name string) visibility {
	show, found := hidden, false
	var walk func(keys []key)
	walk = func(keys []key) {
		for _, k := range keys {
			if k.name == name && (!found || k.show == hidden) {
				show, found = k.show, true
			}
			walk(k.keys)
		}
	}
	walk(keys)
	return show
}
