package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// failed makes a failure of any error that came out of a command line. The errors that are not ours are about usage.
func failed(root *cobra.Command, err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	f = &failure{code: exitUsage, err: err, hint: "solotick --help"}
	var verb string
	if _, scanErr := fmt.Sscanf(err.Error(), "unknown command %q", &verb); scanErr == nil {
		return unknownVerb(root, verb)
	}
	return f
}

func unknownVerb(root *cobra.Command, verb string) *failure {
	f := &failure{code: exitUsage, err: fmt.Errorf("unknown command %q", verb), hint: "solotick --help"}
	if near := root.SuggestionsFor(verb); len(near) > 0 {
		f.hint = "solotick " + strings.Join(near, ", or solotick ")
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
