// Command solotick-import makes a table for Solotick from crontabs, from Kubernetes CronJobs, or from an iCalendar
// file. It compares the ticks of such files, and of tables.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/internal/convert"
	"github.com/solotick/solotick/internal/text"
)

// Exit codes, as those of solotick.
const (
	exitProblem = 1 // a file is not what can be converted, or ticks differ
	exitUsage   = 2 // the command line is wrong
	exitCannot  = 3 // a file cannot be read
)

// most bounds how much of one file is read. It exceeds the limit of package convert, which then says that the file is
// too large.
const most = 17 << 20

// version is set by the linker for releases: -X main.version=v0.1.0.
var version = "dev"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run runs one command line and returns the exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	c := command()
	c.SetArgs(args)
	c.SetIn(in)
	c.SetOut(out)
	c.SetErr(errOut)
	err := c.Execute()
	if err == nil {
		return 0
	}
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{err, exitUsage, "solotick-import --help"} // errors of cobra are about usage
	}
	if f.error != nil {
		fmt.Fprintf(errOut, "error: %s\n", text.OneLine(f.Error()))
	}
	if f.hint != "" {
		fmt.Fprintf(errOut, "hint: %s\n", text.OneLine(f.hint))
	}
	return f.code
}

// failure is an error with its exit code and, if there is one, a hint.
type failure struct {
	error // nil if the output has already said everything
	code  int
	hint  string
}

func usage(hint, format string, args ...any) error {
	return &failure{fmt.Errorf(format, args...), exitUsage, hint}
}

func command() *cobra.Command {
	var (
		o    convert.Options
		from string
	)
	c := &cobra.Command{
		Use:   "solotick-import FILE...",
		Short: "Convert a crontab or Kubernetes CronJobs into a table",
		Long: `Convert crontabs, or manifests with Kubernetes CronJobs, into a table, and print it. - is standard input.

A job keeps its times, its command, its variables, and that its runs may overlap. If a setting has no place in a table,
a comment that begins with "import:" stands at its job. If a job cannot be converted, its block is commented out, with
the reason. A summary goes to standard error. The exit code is 0 even if jobs are commented out, and 1 if a file is
neither a crontab nor a manifest.`,
		Example: `  crontab -l | solotick-import - --time-zone Europe/Berlin > table.yaml
  solotick-import /etc/crontab --service web
  kubectl get cronjob -o yaml | solotick-import - --service billing > table.yaml`,
		Args:          cobra.ArbitraryArgs,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usage("solotick-import /etc/crontab",
					"solotick-import takes the names of files, or - for standard input")
			case from != "" && from != string(convert.Crontab) && from != string(convert.Kubernetes):
				return usage("--from crontab", "--from %q is neither crontab nor kubernetes", from)
			}
			o.From = convert.Format(from)
			return printed(c, args, func(files []convert.Input) ([]byte, error) {
				r, err := convert.Convert(files, o)
				if err != nil {
					return nil, err
				}
				summarize(c, r)
				return r.Table, nil
			})
		},
	}
	f := c.Flags()
	f.StringVar(&from, "from", "", "`format` of the files: crontab or kubernetes (guessed)")
	f.StringVar(&o.Service, "service", "", "`name` of the service whose jobs they are")
	f.StringVar(&o.Redis, "redis", "", "`URL` of the Redis that the replicas share")
	crontabFlags(c, &o)
	c.CompletionOptions.DisableDefaultCmd = true
	c.AddCommand(diffCommand(), &cobra.Command{
		Use:     "calendar FILE",
		Short:   "Print the days of an iCalendar file as a calendar for the table",
		Example: "  solotick-import calendar nrw.ics",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("solotick-import calendar nrw.ics", "calendar takes one file")
			}
			return printed(c, args, func(files []convert.Input) ([]byte, error) { return convert.Calendar(files[0]) })
		},
	})
	return c
}

// crontabFlags adds the flags that say how a crontab is read.
func crontabFlags(c *cobra.Command, o *convert.Options) {
	var userColumn bool
	f := c.Flags()
	f.StringVar(&o.TimeZone, "time-zone", "", "time `zone` of schedules that name none, as Europe/Berlin")
	f.BoolVar(&userColumn, "user-column", false,
		"lines of a crontab name a user before the command, as in /etc/crontab (guessed)")
	c.PreRunE = func(*cobra.Command, []string) error {
		if _, err := time.LoadLocation(o.TimeZone); err != nil || o.TimeZone == "Local" {
			return usage("--time-zone Europe/Berlin",
				"--time-zone %q is not a time zone known on this machine", o.TimeZone)
		}
		if f.Changed("user-column") {
			o.UserColumn = &userColumn
		}
		return nil
	}
}

func summarize(c *cobra.Command, r *convert.Result) {
	for _, line := range r.Summary() {
		fmt.Fprintln(c.ErrOrStderr(), line)
	}
}

// unreadable is the failure of a conversion.
func unreadable(err error) error {
	if wrong, ok := errors.AsType[*convert.Error](err); ok {
		return &failure{err, exitProblem, wrong.Hint}
	}
	return &failure{err, exitCannot, ""}
}

// printed prints what is made from the files.
func printed(c *cobra.Command, names []string, from func([]convert.Input) ([]byte, error)) error {
	var files []convert.Input
	for _, name := range names {
		f, err := read(c.InOrStdin(), name)
		if err != nil {
			return &failure{fmt.Errorf("reading the file to import: %w", err), exitCannot, ""}
		}
		files = append(files, f)
	}
	made, err := from(files)
	if err != nil {
		return unreadable(err)
	}
	return write(c, made)
}

func write(c *cobra.Command, made []byte) error {
	if _, err := c.OutOrStdout().Write(made); err != nil {
		return &failure{fmt.Errorf("the output could not be written: %w", err), exitCannot, ""}
	}
	return nil
}

// read reads the file, or standard input for "-".
func read(in io.Reader, name string) (convert.Input, error) {
	if name == "-" {
		name = "stdin"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return convert.Input{}, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, most))
	return convert.Input{Name: name, Data: data}, err
}
