package strict

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Env looks a variable up, like os.LookupEnv. Only cmd knows the real environment.
type Env func(name string) (string, bool)

// reference is a variable as it stands in a value: ${NAME} or ${NAME:-default}.
var reference = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)

var errMalformed = errors.New("malformed ${…}")

// MissingError names a variable that is not set.
type MissingError struct{ Name string }

func (e MissingError) Error() string {
	return fmt.Sprintf("the environment variable %s is not set", e.Name)
}

// piece is a part of a value: literal text, or a reference with its default.
type piece struct {
	literal  string // text, with $${ already turned into ${
	name     string // the variable; "" = literal text
	fallback string
	optional bool // has a default
}

// pieces splits a value at its references. As in a shell, the default also replaces a variable that is set but empty. A
// default ends at the first }, so it cannot hold another reference.
func pieces(value string) ([]piece, error) {
	var out []piece
	var literal strings.Builder
	end := func() {
		if literal.Len() > 0 {
			out = append(out, piece{literal: literal.String()})
			literal.Reset()
		}
	}
	for value != "" {
		at := strings.Index(value, "${")
		if at < 0 {
			literal.WriteString(value)
			break
		}
		if at > 0 && value[at-1] == '$' {
			literal.WriteString(value[:at-1] + "${")
			value = value[at+2:]
			continue
		}
		literal.WriteString(value[:at])
		end()
		m := reference.FindStringSubmatch(value[at:])
		if m == nil || strings.Contains(m[2], "${") {
			return nil, errMalformed
		}
		out = append(out, piece{name: m[1], fallback: strings.TrimPrefix(m[2], ":-"), optional: m[2] != ""})
		value = value[at+len(m[0]):]
	}
	end()
	return out, nil
}

// substitute returns the value with its variables filled in, whether it had any, and one error for each that is
// missing.
func substitute(value string, env Env) (result string, opaque bool, errs []error) {
	if !strings.Contains(value, "${") {
		return value, false, nil
	}
	parts, err := pieces(value)
	if err != nil {
		return "", true, []error{err}
	}
	var b strings.Builder
	for _, p := range parts {
		if p.name == "" {
			b.WriteString(p.literal)
			continue
		}
		opaque = true
		got, ok := "", false
		if env != nil {
			got, ok = env(p.name)
		}
		switch {
		case p.optional && got == "":
			b.WriteString(p.fallback)
		case !ok:
			if err := error(MissingError{p.name}); len(errs) < maxProblems && !slices.Contains(errs, err) {
				errs = append(errs, err)
			}
		default:
			b.WriteString(got)
		}
	}
	return b.String(), opaque, errs
}
