package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/solotick/solotick/config"
)

// table loads the table; problems in it are a failure of their own, since each is shown by itself.
func (a *app) table() (*config.Table, error) {
	t, err := config.Load(a.config, os.LookupEnv)
	var problems config.Problems
	switch {
	case errors.As(err, &problems):
		for _, p := range problems {
			fmt.Fprintf(a.err, "%s\n", p)
		}
		return nil, &failure{code: exitProblem, err: fmt.Errorf("%s has %s", a.config, plural(len(problems), "problem"))}
	case err != nil:
		return nil, unreadable(err)
	}
	return t, nil
}

// unreadable is a table that could not be looked at.
func unreadable(err error) *failure {
	f := &failure{code: exitCannot, err: err}
	if errors.Is(err, os.ErrNotExist) {
		f.hint = "name the table with -c, or with " + configVariable
	}
	return f
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
