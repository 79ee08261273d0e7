package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/service"
)

// Exit codes. Only the command line decides for exitUsage: its flags, their values, and the jobs that it names. Timers
// come and go, so that one of them is not there is a problem that was found.
const (
	exitProblem = 1 // a problem was found in a table or timer; a run failed; there is nothing to act on
	exitUsage   = 2 // the command line is wrong, or names no job
	exitCannot  = 3 // a file or an address cannot be used, Redis does not answer, the time is over
)

// failure is an error with its exit code and, if there is one, a hint.
type failure struct {
	code int
	err  error // nil if the output has already said everything
	hint string
}

func (f *failure) Error() string {
	if f.err == nil {
		return ""
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// usage is the failure of a wrong command line.
func usage(hint, format string, args ...any) *failure {
	return &failure{exitUsage, fmt.Errorf(format, args...), hint}
}

// problem is the failure of what was found wrong.
func problem(hint, format string, args ...any) *failure {
	return &failure{exitProblem, fmt.Errorf(format, args...), hint}
}

// cannot is the failure of what could not be done.
func cannot(hint, format string, args ...any) *failure {
	return &failure{exitCannot, fmt.Errorf(format, args...), hint}
}

// tell prints the error and the hint, and returns the exit code.
func (f *failure) tell(out io.Writer) int {
	if f.err != nil {
		fmt.Fprintf(out, "error: %s\n", text.OneLine(f.err.Error())) // it may quote what somebody wrote to Redis
	}
	if f.hint != "" {
		fmt.Fprintf(out, "hint: %s\n", text.OneLine(f.hint))
	}
	return f.code
}

// failed turns any error of a command line into a failure. Errors of other packages come from cobra and are about
// usage.
func failed(root *cobra.Command, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if r, ok := errors.AsType[*service.Refusal](err); ok {
		return operatorFailure(r)
	}
	var verb string
	if _, scanErr := fmt.Sscanf(err.Error(), "unknown command %q", &verb); scanErr == nil {
		return unknownVerb(root, verb)
	}
	return &failure{code: exitUsage, err: err, hint: "solotick --help"}
}

// verbName matches names of verbs. The error repeats nothing else: it may be a URL with a password whose flag was
// forgotten.
var verbName = regexp.MustCompile(`^[A-Za-z-]+$`)

// otherVerbs has what people try in place of a verb, and is no misspelling of it.
var otherVerbs = map[string]string{"test": "try", "check": "validate", "lint": "validate", "retry": "rerun",
	"kill": "cancel", "init": "schema --example", "new": "schema --example"}

// unknownVerb is the failure of a verb that c does not have. Its hint names similar verbs.
func unknownVerb(c *cobra.Command, verb string) *failure {
	path := c.CommandPath()
	f := usage(path+" --help", "%s takes the name of a command", path)
	if !verbName.MatchString(verb) {
		return f
	}
	f.err = fmt.Errorf("unknown command %q", verb)
	if other := otherVerbs[verb]; other != "" && !c.HasParent() {
		f.hint = path + " " + other
		return f
	}
	// Cobra sets no distance while its own suggestions are off. Two typing errors turn ls into rm, so short names allow
	// fewer. One is tried before two: sett is one error away from set, and two from get.
	for slips := range min(2, len(verb)/2) {
		c.SuggestionsMinimumDistance = slips + 1
		if near := c.SuggestionsFor(verb); len(near) > 0 {
			f.hint = path + " " + strings.Join(near, ", or "+path+" ")
			break
		}
	}
	return f
}

// badFlag says what kind of value a flag takes, without Go's type names.
func badFlag(c *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag := invalid.GetFlag()
		if bad, ok := errors.AsType[*badValue](err); ok {
			return usage("--"+flag.Name+" "+bad.forms, "--%s %w", flag.Name, bad)
		}
		kinds := map[string]string{"int": "a whole number", "bool": "true or false"}
		if kind, ok := kinds[flag.Value.Type()]; ok {
			err = fmt.Errorf("--%s takes %s, not %q", flag.Name, kind, invalid.GetValue())
		}
	}
	return &failure{code: exitUsage, err: err, hint: c.CommandPath() + " --help"}
}

// tableName matches an argument that is meant as the file of a table. A job can have such a name too.
var tableName = regexp.MustCompile(`^[A-Za-z0-9._/-]+\.ya?ml$`)

// noArguments refuses arguments without repeating them: one may be a URL with a password whose flag was forgotten.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	f := usage(c.CommandPath()+" --help", "%s takes no arguments, only flags", c.Name())
	if len(args) == 1 && tableName.MatchString(args[0]) && c.Flag("config") != nil {
		f.hint = c.CommandPath() + " -c " + args[0]
	}
	return f
}
