package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/view"
)

func (a *app) jobCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "job",
		Short: "Apply, list and delete dynamic jobs",
		Long: `A dynamic job is a job that is not in the table, but kept in Redis. All replicas have it within a second.
A dynamic job can only send requests to the replica's own machine. Commands, requests to other hosts, and notify need a
job in the table.`,
		Example: `  solotick job apply -c table.yaml -f remind.yaml
  solotick job list -c table.yaml
  solotick job rm -c table.yaml remind-customers`,
		Args: subcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.jobApplyCommand(), a.jobListCommand(), a.jobRmCommand())
	return c
}

func (a *app) jobApplyCommand() *cobra.Command {
	var file string
	c := a.outputFlag(&cobra.Command{
		Use:   "apply {FILE | -f FILE}",
		Short: "Create or change a dynamic job",
		Long: `Create or change a dynamic job. The file holds one job with its name and the same keys as in the table,
in YAML or JSON; - is standard input. ${…} in the file is plain text, not a variable.`,
		Example: `  solotick job apply -c table.yaml remind.yaml
  solotick job apply -c table.yaml -f - <remind.yaml`,
		Args:              atMostOneFile,
		ValidArgsFunction: completeFile("yaml", "yml", "json"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := fileArgument(c, args, "file", &file); err != nil {
				return err
			}
			j, err := a.readJob(file)
			if err != nil {
				return err
			}
			return a.withOperator(func(ctx context.Context, op *operator) error {
				return a.applyJob(ctx, op, j)
			})
		},
	})
	a.authorFlags(c, "events")
	c.Flags().StringVarP(&file, "file", "f", "", "`file` with the job; - is standard input")
	return c
}

// readJob reads one job with its name.
func (a *app) readJob(file string) (*config.Job, error) {
	if file == "" {
		return nil, usage("solotick job apply job.yaml, or - for standard input", "the file with the job is missing")
	}
	data, err := a.readSource(file, "job")
	if err != nil {
		return nil, err
	}
	var named struct {
		Name string `yaml:"name"`
	}
	if err := yaml.Unmarshal(data, &named); err == nil && named.Name == "" {
		return nil, problem("name: send-reminders", "%s: the job has no name", shownFile(file))
	}
	j, err := config.ParseJob(named.Name, data)
	if problems, ok := errors.AsType[config.Problems](err); ok {
		if named.Name == "" { // the file cannot be read, and the other problems say why
			problems = slices.DeleteFunc(problems, func(p config.Problem) bool { return p.Line == 0 })
		}
		return nil, a.inFile(file, problems)
	}
	return j, err
}

// content returns the text of a flag, or that of the file after @.
func (a *app) content(given, what string) ([]byte, error) {
	if file, named := strings.CutPrefix(given, "@"); named {
		return a.readSource(file, what)
	}
	return []byte(given), nil
}

// readSource reads a file with a job or timer; - is standard input.
func (a *app) readSource(file, what string) ([]byte, error) {
	if file == standardInput && a.config == standardInput {
		return nil, usage("-c table.yaml", "the table and the %s cannot both be standard input", what)
	}
	in := io.Reader(os.Stdin)
	if file != standardInput {
		f, err := os.Open(file)
		if err != nil {
			return nil, cannot("", "reading the %s: %w", what, err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, config.MaxSource+1))
	if err != nil {
		return nil, cannot("", "reading the %s: %w", what, err)
	}
	if len(data) > config.MaxSource {
		return nil, problem("", "%s is larger than %d KiB", shownFile(file), config.MaxSource>>10)
	}
	return data, nil
}

// inFile shows the problems of a job or timer in a file, each with its line and column.
func (a *app) inFile(file string, problems config.Problems) error {
	for _, p := range problems {
		p.File = shownFile(file)
		fmt.Fprintf(a.err, "%s\n", p)
	}
	return problem("", "%s has %s", shownFile(file), plural(len(problems), "problem"))
}

// variable matches what would be a variable in a table.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)

func (a *app) applyJob(ctx context.Context, op *operator, j *config.Job) error {
	created, err := op.SetJob(ctx, j)
	if err != nil {
		return err
	}
	if v := variable.FindSubmatch(j.Source); v != nil { // without its default, which may be a secret
		fmt.Fprintf(a.err, "note: ${%s} is plain text in a dynamic job, not a variable\n", v[1])
	}
	a.warnIfNoReplica(ctx, op)
	said := map[bool]string{true: "created", false: "applied"}[created]
	return a.answer(view.SetJob{Job: j.Name, Created: created}, said+" "+j.Name)
}

func (a *app) jobListCommand() *cobra.Command {
	return a.outputFlag(&cobra.Command{
		Use:     "list",
		Short:   "Show the dynamic jobs",
		Example: `  solotick job list -c table.yaml`,
		Args:    noArguments,
		RunE:    a.onRedis(a.listJobs),
	})
}

// madeJobJSON is one row of `job list -o json`, a contract: see docs/cli-json.md.
type madeJobJSON struct {
	Job      string `json:"job"`
	Schedule string `json:"schedule"`
	TimeZone string `json:"timeZone"`
	Next     string `json:"next,omitempty"`

	Definition json.RawMessage `json:"definition"`
}

func (a *app) listJobs(ctx context.Context, op *operator, _ []string) error {
	all, err := op.Jobs(ctx)
	if err != nil {
		return err
	}
	rows := []madeJobJSON{}
	g := a.grid([]int{0}, "JOB", "SCHEDULE", "ZONE", "NEXT")
	for _, j := range all {
		if !j.Dynamic {
			continue
		}
		next := j.Schedule.Next(op.now())
		rows = append(rows, madeJobJSON{j.Name, j.Schedule.String(), j.TimeZone, view.Stamp(next), view.Definition(j)})
		shown := "-"
		if !next.IsZero() {
			shown = "in " + formatDuration(next.Sub(op.now()))
		}
		g.add(j.Name, j.Schedule.String(), j.TimeZone, shown)
	}
	return a.answer(rows, g.lines()...)
}

func (a *app) jobRmCommand() *cobra.Command {
	c := a.outputFlag(&cobra.Command{
		Use:     "rm NAME",
		Short:   "Delete a dynamic job",
		Long:    `Delete a dynamic job. Its runs that are under way go on to their end.`,
		Example: `  solotick job rm -c table.yaml remind-customers`,
		Args:    oneJob,
		RunE: a.onRedis(func(ctx context.Context, op *operator, args []string) error {
			if err := op.DeleteJob(ctx, args[0]); err != nil {
				return err
			}
			return a.answer(view.DeletedJob{Job: args[0], Deleted: true}, "deleted "+args[0])
		}),
	})
	a.authorFlags(c, "events")
	return c
}
