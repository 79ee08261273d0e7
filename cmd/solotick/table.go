package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
)

// withoutTable is the hint if there is no table, or none that can be read.
const withoutTable = "--service NAME --redis redis://HOST:6379/0 works without a table"

// standardInput is the file name that stands for standard input, as in -c - and -f -.
const standardInput = "-"

// readTable reads the table that -c names, for commands that run no jobs and so need no secrets: an unset variable is
// only a warning.
func (a *app) readTable() (*config.Table, error) {
	if a.config == standardInput {
		return config.ReadFrom(shownFile(standardInput), os.Stdin, os.LookupEnv)
	}
	return config.Read(a.config, os.LookupEnv)
}

// shownFile is the name of a file in messages.
func shownFile(name string) string {
	if name == standardInput {
		return "stdin"
	}
	return name
}

// refused is the failure of a table that has problems or cannot be read. It prints the problems.
func (a *app) refused(err error) error {
	var problems config.Problems
	switch {
	case errors.As(err, &problems):
		if log := a.jsonLog(); log != nil {
			problems.Log(log)
		} else {
			fmt.Fprintln(a.err, problems)
		}
		return problem("", "%s has %s", shownFile(a.config), plural(len(problems), "problem"))
	case err != nil:
		return unreadable(err)
	}
	return nil
}

// warnUnset prints one line with the unset variables that solotick run needs.
func (a *app) warnUnset(t *config.Table) {
	if names := strings.Join(t.Unset, ", "); names != "" {
		said := "variables %s are not set: solotick run needs them"
		if len(t.Unset) == 1 {
			said = "variable %s is not set: solotick run needs it"
		}
		fmt.Fprintf(a.err, "warning: %s: the environment "+said+"\n", shownFile(a.config), names)
	}
}

// serviceTable returns a table whose service and redis are known: the table itself, or what --service and --redis name.
// Operators need only these two, so a table that run refuses is good enough for them as long as both can be read.
func (a *app) serviceTable() (*config.Table, error) {
	if a.service != "" {
		if a.redis == "" {
			return nil, usage(withoutTable, "--service replaces the table, so it needs --redis")
		}
		t, err := config.NoTable(a.service)
		if err != nil {
			return nil, usage("--service billing", "--service: %w", err)
		}
		return t, nil
	}
	t, err := a.readTable()
	used := "the rest of it"
	if err != nil { // a replica beside this command goes on with the last good one
		if good, _ := stateDir(os.Getenv(stateVariable)).last(a.config); good != nil {
			t, used = good, "the last good table"
		}
	}
	if t == nil {
		f := unreadable(err)
		f.hint = strings.TrimPrefix(f.hint+"; "+withoutTable, "; ")
		return nil, f
	}
	key, why := a.unknown(t)
	switch {
	case key != "" && err != nil:
		f, _ := errors.AsType[*failure](a.refused(err))
		f.hint = withoutTable
		return nil, f
	case key != "":
		return nil, cannot(withoutTable, "%s: %s is not known: %s", shownFile(a.config), key, why)
	case err != nil:
		var problems config.Problems
		if a.broken = shownFile(a.config) + " cannot be read"; errors.As(err, &problems) {
			a.broken = fmt.Sprintf("%s has %s", shownFile(a.config), plural(len(problems), "problem"))
		}
		fmt.Fprintf(a.err, "warning: %s: this command uses %s; solotick validate -c %s shows the problems\n",
			a.broken, used, a.config)
	}
	a.warnUnset(t)
	return t, nil
}

// unknown returns the first key under service and redis that could not be read, and why; "" if all are known.
func (a *app) unknown(t *config.Table) (key, why string) {
	if t.Service == "" {
		return "service", cmp.Or(t.Unknown["service"], "it is missing")
	}
	for _, key := range slices.Sorted(maps.Keys(t.Unknown)) {
		address := strings.HasPrefix(key, "redis.url") || strings.HasPrefix(key, "redis.sentinel") ||
			strings.HasPrefix(key, "redis.cluster")
		if (key == "redis" || strings.HasPrefix(key, "redis.")) && !(address && a.redis != "") {
			return key, t.Unknown[key]
		}
	}
	return "", ""
}

// unreadable is the failure of a table that cannot be read.
func unreadable(err error) *failure {
	f := &failure{code: exitCannot, err: err}
	if errors.Is(err, os.ErrNotExist) {
		f.hint = "name the table with -c, or with " + configVariable
	}
	return f
}

// atMostOneFile accepts the name of one file in place of a flag. It repeats no URL: one may hold a password whose flag
// was forgotten.
func atMostOneFile(c *cobra.Command, args []string) error {
	if len(args) > 1 || len(args) == 1 && strings.Contains(args[0], "://") {
		return usage(c.CommandPath()+" --help", "%s takes the name of one file", c.CommandPath())
	}
	return nil
}
