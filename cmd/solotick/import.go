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

// maxImport bounds what is read of one file; the import says more clearly that it is too much.
const maxImport = 17 << 20

func (a *app) importCommand() *cobra.Command {
	var (
		o          convert.Options
		from       string
		userColumn bool
	)
	c := &cobra.Command{
		Use:   "import FILE...",
		Short: "Make a table of a crontab or of Kubernetes CronJobs",
		Long: `Make a table of crontabs, or of manifests with Kubernetes CronJobs, and print it. A FILE of - is standard input.

What a job meant is kept: its times, its command and variables, that runs may overlap. What has no place in a table stands
as a comment that begins with "import:" at the job that it belongs to; a job that cannot be carried over is commented out,
with the reason. Standard error gets a summary. The exit code is 0 also then, and 1 when a file cannot be read as either.`,
		Example: `  crontab -l | solotick import - --time-zone Europe/Berlin > table.yaml
  solotick import /etc/crontab --service web
  kubectl get cronjob -o yaml | solotick import - --service billing > table.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &failure{code: exitUsage, err: errors.New("import takes the names of files, or - for standard input"),
					hint: "solotick import /etc/crontab"}
			}
			switch o.From = convert.Format(from); o.From {
			case "", convert.Crontab, convert.Kubernetes:
			default:
				return &failure{code: exitUsage, err: fmt.Errorf("--from %q is neither crontab nor kubernetes", from), hint: "--from crontab"}
			}
			if _, err := time.LoadLocation(o.TimeZone); err != nil || o.TimeZone == "Local" {
				return &failure{code: exitUsage, err: fmt.Errorf("--time-zone %q is no time zone that is known here", o.TimeZone),
					hint: "--time-zone Europe/Berlin"}
			}
			if c.Flags().Changed("user-column") {
				o.UserColumn = &userColumn
			}
			if c.Flags().Changed("redis") { // the variable may hold a password, which has no place in a file
				o.Redis = a.redis
			}
			return a.convert(c.InOrStdin(), args, o)
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

// convert prints the table that the files make.
func (a *app) convert(stdin io.Reader, names []string, o convert.Options) error {
	var files []convert.Input
	for _, name := range names {
		f, err := readImport(stdin, name)
		if err != nil {
			return &failure{code: exitCannot, err: fmt.Errorf("reading what to import: %w", err)}
		}
		files = append(files, f)
	}
	r, err := convert.Convert(files, o)
	var unreadable *convert.Error
	switch {
	case errors.As(err, &unreadable):
		return &failure{code: exitProblem, err: err, hint: unreadable.Hint}
	case err != nil:
		return &failure{code: exitCannot, err: err}
	}
	for _, line := range r.Summary() {
		fmt.Fprintln(a.err, line)
	}
	_, err = a.out.Write(r.Table)
	return err
}

func readImport(stdin io.Reader, name string) (convert.Input, error) {
	if name == "-" {
		data, err := io.ReadAll(io.LimitReader(stdin, maxImport))
		return convert.Input{Name: "stdin", Data: data}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return convert.Input{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxImport))
	return convert.Input{Name: name, Data: data}, err
}
