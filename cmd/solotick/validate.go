package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/view"
)

func (a *app) validateCommand() *cobra.Command {
	return a.outputFlag(&cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check the table and show all problems",
		Long: `Check the table in FILE, or the one of -c, and show all problems; - is standard input. No secrets are
needed: an environment variable that is not set is a warning here, and an error for solotick run.`,
		Example: `  solotick validate -c table.yaml
  solotick validate table.yaml -o json
  generate-table | solotick validate -`,
		Args:              atMostOneFile,
		ValidArgsFunction: completeFile("yaml", "yml"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				if c.Flag("config").Changed {
					return usage(c.CommandPath()+" "+args[0], "--config and FILE both name the file")
				}
				a.config = args[0]
			}
			if a.output == "json" {
				return a.validateJSON()
			}
			t, err := a.readTable()
			if err := a.refused(err); err != nil {
				return err
			}
			for _, w := range t.Warnings {
				fmt.Fprintf(a.err, "warning: %s\n", w)
			}
			_, err = fmt.Fprintf(a.out, "%s: ok: service %s, %s\n",
				shownFile(a.config), t.Service, plural(len(t.Jobs), "job"))
			return err
		},
	})
}

// problemJSON is one problem or warning in the output of `validate -o json`, a contract: see docs/cli-json.md.
type problemJSON struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func (a *app) validateJSON() error {
	t, err := a.readTable()
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return unreadable(err)
	}
	var warnings []config.Problem
	if err == nil {
		warnings = t.Warnings
	}
	return a.judge(err == nil, struct {
		Valid    bool          `json:"valid"`
		Problems []problemJSON `json:"problems"`
		Warnings []problemJSON `json:"warnings"`
	}{err == nil, problemsJSON(problems), problemsJSON(warnings)})
}

func problemsJSON(problems []config.Problem) []problemJSON {
	return view.Each(problems, func(p config.Problem) problemJSON {
		return problemJSON{p.File, p.Line, p.Column, p.Message, p.Hint}
	})
}

func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// answer prints what -o asks for: v in JSON, or the lines of text, if there are any.
func (a *app) answer(v any, text ...string) error {
	if a.output == "json" {
		return a.printJSON(v)
	}
	if len(text) > 0 {
		fmt.Fprintln(a.out, strings.Join(text, "\n"))
	}
	return nil
}

// judge prints an answer, which says by itself what is bad. The exit code tells it, too.
func (a *app) judge(good bool, v any, text ...string) error {
	err := a.answer(v, text...)
	if err == nil && !good {
		err = &failure{code: exitProblem}
	}
	return err
}

// text is for the lines that a verb prints before its answer: with -o json it leaves them out.
func (a *app) text() io.Writer {
	if a.output == "json" {
		return io.Discard
	}
	return a.out
}
