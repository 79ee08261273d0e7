package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/internal/convert"
)

// maxImport bounds how much of one file is read. It exceeds the limit of package convert, which then says that the file
// is too large.
const maxImport = 17 << 20

func (a *app) importCommand() *cobra.Command {
	var (
		o          convert.Options
		from       string
		userColumn bool
	)
	c := &cobra.Command{
		Use:   "import [calendar] FILE...",
		Short: "Convert a crontab or Kubernetes CronJobs into a table",
		Long: `Convert crontabs, or manifests with Kubernetes CronJobs, into a table, and print it. A FILE of - is standard input.

A job keeps its times, its command, its variables, and that its runs may overlap. If a setting has no place in a table, a
comment that begins with "import:" stands at its job. If a job cannot be converted, its block is commented out, with the
reason. A summary goes to standard error. The exit code is 0 even if jobs are commented out, and 1 if a file is neither a
crontab nor a manifest.

"import calendar FILE" prints the days of an iCalendar file as a calendar for the table.`,
		Example: `  crontab -l | solotick import - --time-zone Europe/Berlin > table.yaml
  solotick import /etc/crontab --service web
  kubectl get cronjob -o yaml | solotick import - --service billing > table.yaml
  solotick import calendar nrw.ics`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &failure{code: exitUsage, err: errors.New("import takes the names of files, or - for standard input"),
					hint: "solotick import /etc/crontab"}
			}
			if args[0] == "calendar" {
				if len(args) != 2 {
					return &failure{code: exitUsage, err: errors.New("import calendar takes one file"), hint: "solotick import calendar nrw.ics"}
				}
				return a.convert(c.InOrStdin(), args[1:], func(files []convert.Input) ([]byte, error) { return convert.Calendar(files[0]) })
			}
			switch o.From = convert.Format(from); o.From {
			case "", convert.Crontab, convert.Kubernetes:
			default:
				return &failure{code: exitUsage, err: fmt.Errorf("--from %q is neither crontab nor kubernetes", from), hint: "--from crontab"}
			}
			if _, err := time.LoadLocation(o.TimeZone); err != nil || o.TimeZone == "Local" {
				return &failure{code: exitUsage, err: fmt.Errorf("--time-zone %q is not a time zone known on this machine", o.TimeZone),
					hint: "--time-zone Europe/Berlin"}
			}
			if c.Flags().Changed("user-column") {
				o.UserColumn = &userColumn
			}
			if c.Flags().Changed("redis") { // not from the variable: it may hold a password, which must not get into a file
				o.Redis = a.redis
			}
			return a.convert(c.InOrStdin(), args, func(files []convert.Input) ([]byte, error) {
				r, err := convert.Convert(files, o)
				if err != nil {
					return nil, err
				}
				for _, line := range r.Summary() {
					fmt.Fprintln(a.err, line)
				}
				return r.Table, nil
			})
		},
	}
	f := c.Flags()
	f.StringVar(&from, "from", "", "`format` of the files: crontab or kubernetes (guessed)")
	f.StringVar(&o.Service, "service", "", "`name` of the service whose jobs they are")
	f.StringVar(&o.TimeZone, "time-zone", "", "time `zone` of schedules that name none, as Europe/Berlin")
	f.BoolVar(&userColumn, "user-column", false, "lines of a crontab name a user before the command, as in /etc/crontab (guessed)")
	offer(c, "from", string(convert.Crontab), string(convert.Kubernetes))
	return c
}

// convert prints what is made from the files.
func (a *app) convert(stdin io.Reader, names []string, from func([]convert.Input) ([]byte, error)) error {
	var files []convert.Input
	for _, name := range names {
		f, err := readImport(stdin, name)
		if err != nil {
			return &failure{code: exitCannot, err: fmt.Errorf("reading the file to import: %w", err)}
		}
		files = append(files, f)
	}
	made, err := from(files)
	var unreadable *convert.Error
	switch {
	case errors.As(err, &unreadable):
		return &failure{code: exitProblem, err: err, hint: unreadable.Hint}
	case err != nil:
		return &failure{code: exitCannot, err: err}
	}
	_, err = a.out.Write(made)
	return err
}

func readImport(stdin io.Reader, name string) (convert.Input, error) {
	if name == standardInput {
		data, err := io.ReadAll(io.LimitReader(stdin, maxImport))
		return convert.Input{Name: shownFile(standardInput), Data: data}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return convert.Input{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxImport))
	return convert.Input{Name: name, Data: data}, err
}
