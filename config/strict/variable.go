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

// substitute returns the value with its variables filled in, whether it had any, and one error for each that is
// missing. As in a shell, the default also replaces a variable that is set but empty. A default ends at the first }, so
// it cannot hold another reference.
func substitute(value string, env Env) (result string, opaque bool, errs []error) {
	var b strings.Builder
	for {
		at := strings.Index(value, "${")
		switch {
		case at < 0:
			b.WriteString(value)
			return b.String(), opaque, errs
		case at > 0 && value[at-1] == '$':
			b.WriteString(value[:at-1] + "${")
			value = value[at+2:]
			continue
		}
		m := reference.FindStringSubmatch(value[at:])
		if m == nil || strings.Contains(m[2], "${") {
			return "", true, []error{errMalformed}
		}
		b.WriteString(value[:at])
		value = value[at+len(m[0]):]
		opaque = true
		got, ok := "", false
		if env != nil {
			got, ok = env(m[1])
		}
		switch fallback, optional := strings.CutPrefix(m[2], ":-"); {
		case optional && got == "":
			b.WriteString(fallback)
		case !ok:
			if err := error(MissingError{m[1]}); len(errs) < maxProblems && !slices.Contains(errs, err) {
				errs = append(errs, err)
			}
		default:
			b.WriteString(got)
		}
	}
}
