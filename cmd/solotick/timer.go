package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/admin/view"
	"github.com/solotick/solotick/sidecar/service"
)

func (a *app) timerCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "timer",
		Short: "Set, list and remove durable one-shot timers",
		Long: `A timer is a request that one of the replicas sends once, at a given time, to the app beside it. It is kept in Redis.
Setting the same id again replaces the pending timer.`,
		Example: `  solotick timer set -c table.yaml invoice-4711 --after 48h --url http://127.0.0.1:8080/remind
  solotick timer list -c table.yaml
  solotick timer rm -c table.yaml invoice-4711`,
		Args: subcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.timerSetCommand(), a.timerGetCommand(), a.timerListCommand(), a.timerRmCommand())
	return c
}

// timerFlags are what a timer is made of, as its keys are called in JSON.
type timerFlags struct {
	At        string     `json:"at,omitempty"`
	After     string     `json:"after,omitempty"`
	HTTP      timerCalls `json:"http"`
	Timeout   string     `json:"timeout,omitempty"`
	Guarantee string     `json:"guarantee,omitempty"`
}

type timerCalls struct {
	URL     string            `json:"url"`
	Method  string            `json:"method,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
}

func (a *app) timerSetCommand() *cobra.Command {
	var (
		o       output
		f       timerFlags
		headers []string
		file    string
	)
	c := &cobra.Command{
		Use:   "set ID {{--at TIME | --after DURATION} --url URL | -f FILE}",
		Short: "Send a request once, at a given time",
		Long: `One of the replicas sends the request once, at the given time or after the given duration. Setting the same id again replaces
the pending timer. An id that was sent within the last day is refused.

With -f the file holds the whole timer, as timer get shows it and docs/api.md describes it. If its time has passed, it is sent
at once.`,
		Example: `  solotick timer set -c table.yaml invoice-4711 --after 48h --url http://127.0.0.1:8080/remind
  solotick timer set -c table.yaml invoice-4711 --at 2027-03-30T08:00:00Z --url http://127.0.0.1:8080/remind \
    --header 'Content-Type: application/json' --body '{"invoice": 4711}'`,
		Args:              oneID,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if file != "" {
				return a.setTimerOf(c, args[0], file, o)
			}
			if (f.At == "") == (f.After == "") {
				return &failure{code: exitUsage, err: errors.New("a timer needs --at or --after, and one of them"), hint: "--after 48h"}
			}
			if f.HTTP.URL == "" {
				return &failure{code: exitUsage, err: errors.New("a timer needs --url"), hint: "--url http://127.0.0.1:8080/path"}
			}
			var err error
			if f.HTTP.Headers, err = readHeaders(headers); err != nil {
				return err
			}
			return a.at(func(ctx context.Context, d *desk) error { return a.setTimer(ctx, d, args[0], f, o) })
		},
	}
	o.flag(c)
	flags := c.Flags()
	flags.StringVarP(&file, "file", "f", "", "`file` with the timer, instead of the other flags; - is standard input")
	flags.StringVar(&f.At, "at", "", "when: `time`, RFC 3339; at once if it has passed")
	flags.StringVar(&f.After, "after", "", "time from now: `duration` as 90s or 48h")
	flags.StringVar(&f.HTTP.URL, "url", "", "`URL` on the replica's machine")
	flags.StringVar(&f.HTTP.Method, "method", "", "`method` of the request (default POST)")
	flags.StringArrayVar(&headers, "header", nil, "`'Name: value'`, as often as there are headers")
	flags.StringVar(&f.HTTP.Body, "body", "", "`text` of the request")
	flags.StringVar(&f.Timeout, "timeout", "", "limit of the run: `duration` (default 5m)")
	flags.StringVar(&f.Guarantee, "guarantee", "", "`guarantee`: at-most-once (default) or at-least-once")
	offer(c, "guarantee", string(config.AtMostOnce), string(config.AtLeastOnce))
	return c
}

// readHeaders reads 'Name: value'. What is wrong with a name or value is said when the timer is checked.
func readHeaders(lines []string) (map[string]string, error) {
	headers := map[string]string{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if _, twice := headers[name]; !ok || twice {
			return nil, &failure{code: exitUsage, err: errors.New("--header is 'Name: value', each name once"), hint: `--header 'Content-Type: application/json'`}
		}
		headers[name] = strings.TrimSpace(value)
	}
	return headers, nil
}

func (a *app) setTimer(ctx context.Context, d *desk, id string, f timerFlags, o output) error {
	source, err := json.Marshal(f)
	if err != nil {
		return err
	}
	t, created, err := d.SetTimer(ctx, id, source)
	if err != nil {
		return inFlags(err)
	}
	return a.printSet(ctx, d, t, created, o)
}

// setTimerOf sets the timer that is in a file.
func (a *app) setTimerOf(c *cobra.Command, id, file string, o output) error {
	for _, other := range []string{"at", "after", "url", "method", "header", "body", "timeout", "guarantee"} {
		if c.Flags().Changed(other) {
			return &failure{code: exitUsage, err: fmt.Errorf("--file and --%s cannot be used together", other), hint: "leave one of them out"}
		}
	}
	data, err := readSource(file, "timer")
	if err != nil {
		return err
	}
	return a.at(func(ctx context.Context, d *desk) error {
		t, created, err := d.SetTimer(ctx, id, data)
		var r *service.Refusal
		switch {
		case errors.As(err, &r) && r.Kind == service.Invalid && len(r.Problems) > 0:
			return a.inFile(file, r.Problems)
		case err != nil:
			return inFlags(err)
		}
		return a.printSet(ctx, d, t, created, o)
	})
}

// printSet shows a timer that was set.
func (a *app) printSet(ctx context.Context, d *desk, t *config.Timer, created bool, o output) error {
	a.warnIfAlone(ctx, d)
	if o == "json" {
		return a.printJSON(view.NewTimer(t.ID, t.At))
	}
	said := map[bool]string{true: "set", false: "set anew"}[created]
	_, err := fmt.Fprintf(a.out, "%s %s: at %s UTC, in %s\n", said, t.ID, moment(t.At), span(t.At.Sub(d.now())))
	return err
}

// inFlags is what is wrong with what was made of flags. Where in it tells nobody anything.
func inFlags(err error) error {
	problems := service.Of(err).Problems
	if len(problems) == 0 {
		return err
	}
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.Message)
	}
	return &failure{code: exitUsage, err: errors.New(strings.Join(texts, "; ")), hint: problems[0].Hint}
}

func (a *app) timerGetCommand() *cobra.Command {
	var o output
	c := &cobra.Command{
		Use:   "get ID",
		Short: "Show a pending timer as it was set",
		Long: `Show a pending timer as it was set, in JSON that timer set -f accepts. The request's headers and body are included, with any
secrets in them.`,
		Example: `  solotick timer get -c table.yaml invoice-4711 >timer.json
  solotick timer set -c table.yaml invoice-4711 -f timer.json`,
		Args:              oneID,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return a.at(func(ctx context.Context, d *desk) error { return a.getTimer(ctx, d, args[0]) })
		},
	}
	o.flag(c)
	return c
}

func (a *app) getTimer(ctx context.Context, d *desk, id string) error {
	source, _, err := d.Timer(ctx, id)
	if err != nil {
		return err
	}
	return a.printJSON(json.RawMessage(source))
}

func (a *app) timerListCommand() *cobra.Command {
	var (
		o output
		n int
	)
	c := &cobra.Command{
		Use:               "list",
		Short:             "Show the timers that come due next",
		Example:           `  solotick timer list -c table.yaml -n 100`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if n < 1 || n > maxHistory {
				return &failure{code: exitUsage, err: fmt.Errorf("--count %d is not between 1 and %d", n, maxHistory), hint: "-n 20"}
			}
			return a.at(func(ctx context.Context, d *desk) error { return a.listTimers(ctx, d, n, o) })
		},
	}
	o.flag(c)
	c.Flags().IntVarP(&n, "count", "n", 20, "at most `number` timers")
	return c
}

func (a *app) listTimers(ctx context.Context, d *desk, n int, o output) error {
	waiting, err := d.Store.Timers(ctx, n)
	if err != nil {
		return cannot(err)
	}
	if o == "json" {
		return a.printJSON(view.NewTimers(waiting))
	}
	columns, _, _ := terminal(a.out)
	g := grid{width: columns, names: []int{2}}
	g.add("DUE (UTC)", "IN", "TIMER")
	for _, t := range waiting {
		g.add(moment(t.At.Truncate(time.Second)), span(t.At.Sub(d.now())), t.ID)
	}
	_, err = fmt.Fprintln(a.out, strings.Join(g.lines(), "\n"))
	return err
}

func (a *app) timerRmCommand() *cobra.Command {
	var o output
	c := &cobra.Command{
		Use:               "rm ID",
		Short:             "Take a timer back that waits",
		Example:           `  solotick timer rm -c table.yaml invoice-4711`,
		Args:              oneID,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return a.at(func(ctx context.Context, d *desk) error { return a.rmTimer(ctx, d, args[0], o) })
		},
	}
	o.flag(c)
	return c
}

func (a *app) rmTimer(ctx context.Context, d *desk, id string, o output) error {
	if err := d.DeleteTimer(ctx, id); err != nil {
		return err
	}
	if o == "json" {
		return a.printJSON(view.DeletedTimer{ID: id, Deleted: true})
	}
	_, err := fmt.Fprintf(a.out, "removed %s\n", id)
	return err
}

// oneID asks for exactly one id.
func oneID(c *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return &failure{code: exitUsage, err: fmt.Errorf("%s takes the id of one timer", c.CommandPath()), hint: c.CommandPath() + " --help"}
}

// subcommand asks for one of the verbs below.
func subcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownVerb(c, args[0])
}
