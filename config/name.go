package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/solotick/solotick/config/strict"
)

var nameSyntax = regexp.MustCompile(nameForm.Pattern)

// identifier is the name of a service or job.
//
//go:noinline
func identifier(to *string) strict.Type { return strict.Checked(strict.Into(to), "", checkName) }

// checkName says what is wrong with the name of a service or job, and what to write instead.
func checkName(name string) (why, hint string) {
	switch {
	case len(name) > nameForm.Length:
		return fmt.Sprintf("must have at most %d characters", nameForm.Length), ""
	case !nameSyntax.MatchString(name):
		better := strings.Trim(regexp.MustCompile(`[^a-z0-9.]+`).ReplaceAllString(strings.ToLower(name), "-"), "-.")
		if nameSyntax.MatchString(better) {
			hint = fmt.Sprintf("write %q", better)
		}
		return "must be lower-case letters, digits, - and ., and begin and end with a letter or digit", hint
	}
	return "", ""
}
