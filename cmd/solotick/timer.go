package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

func (a *app) timerCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "timer",
		Short: "Set, list and delete timers: requests sent at a given time, or by a schedule",
		Long: `A timer is a request that one of the replicas sends to the app beside it: once, at a given time, or at
each time of a schedule. Redis keeps the timer. Setting the same id again replaces the pending timer.`,
		Example: `  solotick timer set -c table.yaml invoice-4711 --after 48h --url http://127.0.0.1:8080/remind
  solotick timer set -c table.yaml user-17 --schedule '0 9 * * *' --time-zone Asia/Tokyo \
    --url http://127.0.0.1:8080/mail
  solotick timer list -c table.yaml
  solotick timer rm -c table.yaml invoice-4711
  solotick timer rm -c table.yaml --group user-17`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownVerb(c, args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.timerSetCommand(), a.timerListCommand(), a.timerRmCommand(), a.timerExportCommand(),
		a.timerImportCommand())
	return c
}

// timerFlags holds the flags of a timer, under the timer's keys in JSON.
type timerFlags struct {
	At       string `json:"at,omitempty"`
	After    string `json:"after,omitempty"`
	Schedule string `json:"schedule,omitempty"`
	TimeZone string `json:"timeZone,omitempty"`
	HTTP     struct {
		URL     string            `json:"url"`
		Method  string            `json:"method,omitempty"`
		Headers map[string]string `json:"headers,omitempty"`
		Body    string            `json:"body,omitempty"`
	} `json:"http"`
	Timeout string `json:"timeout,omitempty"`
	Retry   struct {
		Limit int `json:"limit"`
	} `json:"retry,omitzero"`
	Guarantee string `json:"guarantee,omitempty"`
}

func (a *app) timerSetCommand() *cobra.Command {
	var f timerFlags
	var headers []string
	var file string
	at, after, timeout := moment{ahead: true}, length{example: "48h"}, length{example: "5m"}
	c := a.outputFlag(&cobra.Command{
		Use:   "set ID {{--at TIME | --after DURATION | --schedule SCHEDULE} --url URL | -f FILE}",
		Short: "Send a request at a given time, or by a schedule",
		Long: `One of the replicas sends the request once, at the given time or after the given duration, or at each
time of a schedule, as in the table. Setting the same id again replaces the pending timer. The id of a timer without a
schedule that was sent within the last day is refused.

With -f the file holds the whole timer in JSON, as docs/api.md describes it. If its time has passed, the request is sent
at once.`,
		Example: `  solotick timer set -c table.yaml invoice-4711 --after 48h --url http://127.0.0.1:8080/remind
  solotick timer set -c table.yaml invoice-4711 --at 2027-03-30T08:00:00Z --url http://127.0.0.1:8080/remind \
    --header 'Content-Type: application/json' --body '{"invoice": 4711}'
  solotick timer set -c table.yaml user-17 --schedule '0 9 * * *' --time-zone Asia/Tokyo \
    --url http://127.0.0.1:8080/mail`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(c.CommandPath()+" --help", "%s takes the id of one timer", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if file != "" {
				return a.setTimerOf(c, args[0], file)
			}
			ways := 0
			for _, given := range []bool{at.given(), after.Duration > 0, f.Schedule != ""} {
				if given {
					ways++
				}
			}
			if ways != 1 {
				return usage("--after 48h", "a timer needs one of --at, --after and --schedule")
			}
			if f.HTTP.URL == "" {
				return usage("--url http://127.0.0.1:8080/path", "a timer needs --url")
			}
			var err error
			if f.HTTP.Headers, err = readHeaders(headers); err != nil {
				return err
			}
			if file, named := strings.CutPrefix(f.HTTP.Body, "@"); named {
				body, err := a.readSource(file, "body")
				if err != nil {
					return err
				}
				f.HTTP.Body = string(body)
			}
			f.After, f.Timeout = after.String(), timeout.String()
			return a.withOperator(func(ctx context.Context, op *operator) error {
				if at.given() {
					f.At = at.read(op.now(), time.UTC).First.Format(time.RFC3339Nano)
				}
				source, err := json.Marshal(f)
				if err != nil {
					return err
				}
				return a.setTimer(ctx, op, args[0], source, "")
			})
		},
	})
	flags := c.Flags()
	flags.StringVarP(&file, "file", "f", "", "`file` with the timer, instead of the other flags; - is standard input")
	flags.Var(&at, "at", "when: `time`"+timeAheadHelp+"; at once if it has passed")
	flags.Var(&after, "after", "time from now: `duration`, such as 90s or 2d")
	flags.StringVar(&f.Schedule, "schedule", "", "`schedule` by which it is sent again and again: cron or @every")
	flags.StringVar(&f.TimeZone, "time-zone", "", "`zone` of the schedule, such as Europe/Berlin (default UTC)")
	flags.StringVar(&f.HTTP.URL, "url", "", "`URL` on the replica's machine")
	flags.StringVar(&f.HTTP.Method, "method", "", "`method` of the request (default POST)")
	flags.StringArrayVar(&headers, "header", nil, "`'Name: value'` of a header; may be repeated")
	flags.StringVar(&f.HTTP.Body, "body", "", "`text` of the request; @FILE reads a file, @- standard input")
	flags.Var(&timeout, "timeout", "longest `duration` of the run (default 5m)")
	flags.IntVar(&f.Retry.Limit, "retry", 0, "retry a failed attempt this `number` of times")
	flags.StringVar(&f.Guarantee, "guarantee", "", "`guarantee`: at-most-once (default) or at-least-once")
	offer(c, "guarantee", string(config.AtMostOnce), string(config.AtLeastOnce))
	return c
}

// readHeaders splits each 'Name: value'. The check of the timer reports bad names and values.
func readHeaders(lines []string) (map[string]string, error) {
	headers := map[string]string{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if _, twice := headers[name]; !ok || twice {
			return nil, usage(`--header 'Content-Type: application/json'`,
				"--header takes 'Name: value', each name once")
		}
		headers[name] = strings.TrimSpace(value)
	}
	return headers, nil
}

// setTimerOf sets the timer in a file.
func (a *app) setTimerOf(c *cobra.Command, id, file string) error {
	for _, other := range []string{"at", "after", "schedule", "time-zone", "url", "method", "header", "body", "timeout",
		"retry", "guarantee"} {
		if c.Flags().Changed(other) {
			return usage("leave one of them out", "--file and --%s cannot be used together", other)
		}
	}
	source, err := a.readSource(file, "timer")
	if err != nil {
		return err
	}
	return a.withOperator(func(ctx context.Context, op *operator) error {
		return a.setTimer(ctx, op, id, source, file)
	})
}

// setTimer sets a timer, and shows what is wrong with it. Lines and columns mean something only in a file; file is ""
// if the timer is made of flags.
func (a *app) setTimer(ctx context.Context, op *operator, id string, source []byte, file string) error {
	t, made, err := op.SetTimer(ctx, id, source)
	if err != nil {
		r := service.RefusalOf(err)
		switch {
		case len(r.Problems) == 0:
			return err
		case file != "" && r.Kind == service.Invalid:
			for _, p := range r.Problems {
				p.File = shownFile(file)
				fmt.Fprintf(a.err, "%s\n", p)
			}
			return problem("", "%s has %s", shownFile(file), plural(len(r.Problems), "problem"))
		}
		return usage(r.Problems[0].Hint, "%s", said(r))
	}
	a.warnIfNoReplica(ctx, op)
	then := ""
	if t.Repeats != nil {
		then = ", and then by its schedule"
	}
	return a.answer(view.NewTimer(t.ID, t.At),
		fmt.Sprintf("%s %s: at %s, in %s%s", made, t.ID, formatTime(t.At), untilDue(op.now(), t.At), then))
}

// said is all that a refusal says, on one line.
func said(r *service.Refusal) string {
	texts := view.Each(r.Problems, func(p config.Problem) string { return p.Message })
	return text.OneLine(cmp.Or(strings.Join(texts, "; "), r.Message))
}

func (a *app) timerListCommand() *cobra.Command {
	var n int
	var group string
	c := a.outputFlag(&cobra.Command{
		Use:     "list",
		Short:   "Show the timers that come due next",
		Example: `  solotick timer list -c table.yaml -n 100`,
		Args:    noArguments,
		RunE: a.onRedis(func(ctx context.Context, op *operator, _ []string) error {
			waiting, err := op.Timers(ctx, group, n)
			if err != nil {
				return err
			}
			g := a.grid([]int{2}, "DUE", "IN", "TIMER", "SCHEDULE")
			for _, t := range waiting {
				g.add(formatTime(t.At.Truncate(time.Second)), formatDuration(t.At.Sub(op.now())), t.ID,
					zoned(cmp.Or(t.Schedule, "-"), t.TimeZone))
			}
			return a.answer(view.NewTimers(waiting), g.lines()...)
		}),
	})
	countFlag(c, &n, 20, maxHistory, "at most `number` timers")
	groupFlag(c, &group)
	return c
}

// groupFlag adds the flag for a group of timers.
func groupFlag(c *cobra.Command, group *string) {
	c.Flags().StringVar(group, "group", "", "timers whose ids begin with this `text` and a dot")
}

func (a *app) timerRmCommand() *cobra.Command {
	var group string
	c := a.outputFlag(&cobra.Command{
		Use:   "rm {ID | --group GROUP}",
		Short: "Delete a pending timer, or a group of them",
		Long: `Delete a pending timer, or with --group all whose ids begin with its name and a dot. A timer that is set
meanwhile may stay.`,
		Example: `  solotick timer rm -c table.yaml invoice-4711
  solotick timer rm -c table.yaml --group user-17`,
		Args: func(c *cobra.Command, args []string) error {
			if given := c.Flags().Changed("group"); given == (len(args) == 0) && len(args) < 2 {
				return nil
			}
			return usage(c.CommandPath()+" --help", "%s takes the id of one timer or --group", c.CommandPath())
		},
		RunE: a.onRedis(func(ctx context.Context, op *operator, args []string) error {
			if len(args) == 0 {
				n, err := op.DeleteTimers(ctx, group)
				if err != nil {
					return err
				}
				return a.answer(view.DeletedTimers{Group: group, Deleted: n}, "deleted "+plural(n, "timer"))
			}
			if err := op.DeleteTimer(ctx, args[0]); err != nil {
				return err
			}
			return a.answer(view.DeletedTimer{ID: args[0], Deleted: true}, "deleted "+args[0])
		}),
	})
	groupFlag(c, &group)
	return c
}

// readSource reads a file with a timer or its body; - is standard input.
func (a *app) readSource(file, what string) ([]byte, error) {
	in, err := a.openSource(file, what)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, config.MaxSource+1))
	if err != nil {
		return nil, cannot("", "reading the %s: %w", what, err)
	}
	if len(data) > config.MaxSource {
		return nil, problem("", "%s is larger than %d KiB", shownFile(file), config.MaxSource>>10)
	}
	return data, nil
}

// openSource opens a file; - is standard input.
func (a *app) openSource(file, what string) (io.ReadCloser, error) {
	switch {
	case file == standardInput && a.config == standardInput:
		return nil, usage("-c table.yaml", "the table and the %s cannot both be standard input", what)
	case file == standardInput:
		return os.Stdin, nil
	}
	in, err := os.Open(file)
	if err != nil {
		err = cannot("", "reading the %s: %w", what, err)
	}
	return in, err
}
