package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solotick/solotick/sidecar/service"
)

// Exit codes.
const (
	exitProblem = 1 // a problem was found, or a job failed
	exitUsage   = 2
	exitCannot  = 3 // it could not be done
)

// failure is an error with its exit code and, where there is one, the way out.
type failure struct {
	code int
	err  error // nil when all was said already
	hint string
}

func (f *failure) Error() string {
	if f.err == nil {
		return ""
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// tell says what there is to say, and gives the exit code.
func (f *failure) tell(out io.Writer) int {
	if f.err != nil {
		fmt.Fprintf(out, "error: %s\n", f.err)
	}
	if f.hint != "" {
		fmt.Fprintf(out, "hint: %s\n", f.hint)
	}
	return f.code
}

// failed makes a failure of any error that came out of a command line. The errors that are not ours are about usage.
func failed(root *cobra.Command, err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	var r *service.Refusal
	if errors.As(err, &r) {
		return cannot(r)
	}
	f = &failure{code: exitUsage, err: err, hint: "solotick --help"}
	var verb string
	if _, scanErr := fmt.Sscanf(err.Error(), "unknown command %q", &verb); scanErr == nil {
		return unknownVerb(root, verb)
	}
	return f
}

// verbName is what a verb may be called. Anything else is not repeated: it may be a URL with a password whose flag was
// forgotten.
var verbName = regexp.MustCompile(`^[A-Za-z-]+$`)

// unknownVerb names the verbs of c that may have been meant.
func unknownVerb(c *cobra.Command, verb string) *failure {
	path := c.CommandPath()
	f := &failure{code: exitUsage, err: fmt.Errorf("%s takes the name of a command", path), hint: path + " --help"}
	if !verbName.MatchString(verb) {
		return f
	}
	f.err = fmt.Errorf("unknown command %q", verb)
	// Cobra sets no distance while its own suggestions are off. Two slips make rm of ls, so short names have fewer; and of set
	// and get only one is a single slip away from sett.
	for slips := range min(2, len(verb)/2) {
		c.SuggestionsMinimumDistance = slips + 1
		if near := c.SuggestionsFor(verb); len(near) > 0 {
			f.hint = path + " " + strings.Join(near, ", or "+path+" ")
			break
		}
	}
	return f
}

// badFlag says what a flag takes, in words of the command line instead of Go's.
func badFlag(c *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		kinds := map[string]string{"int": "a whole number", "bool": "true or false"}
		if kind, ok := kinds[invalid.GetFlag().Value.Type()]; ok {
			err = fmt.Errorf("--%s takes %s, not %q", invalid.GetFlag().Name, kind, invalid.GetValue())
		}
	}
	return &failure{code: exitUsage, err: err, hint: c.CommandPath() + " --help"}
}

// noArguments does not repeat what was given: it may be a URL with a password whose flag was forgotten.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &failure{code: exitUsage, err: fmt.Errorf("%s takes no arguments, only flags", c.Name()), hint: c.CommandPath() + " --help"}
}
