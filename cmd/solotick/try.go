package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar"
	"github.com/solotick/solotick/sidecar/admin"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/view"
)

func (a *app) tryCommand() *cobra.Command {
	tick := moment{tick: true}
	c := a.outputFlag(&cobra.Command{
		Use:   "try JOB",
		Short: "Run a job of the table once, here, without Redis",
		Long: `Run a job of the table once, in this process, and show what was sent and what came back. It needs no
Redis and no replica: use it while you write the job.

The job is run as by a replica: with the same headers or environment, and the job's timeout. Its kind is manual, and its
tick is the present time, or that of --tick. There is no lock, so the job gets no fencing token, and may run while a
replica runs it. Nothing is retried or recorded, and notify sends nothing. If the job has http.async, its app reports to
this process, on a free port.

All variables of the table must be set, as for solotick run. The output hides what may be a secret: the table's headers,
body, query, arguments and variables.

The exit code is 1 unless the job succeeded.`,
		Example: `  solotick try -c table.yaml send-invoices
  solotick try -c table.yaml send-invoices --tick 2027-03-28T07:00:00Z
  solotick try -c table.yaml send-invoices -o json`,
		Args:              ofOneJob(1, 1),
		ValidArgsFunction: a.completeJobs(0),
		RunE:              func(_ *cobra.Command, args []string) error { return a.try(args[0], tick) },
	})
	c.Flags().Var(&tick, "tick", "`time` of the tick"+timeOfJobHelp+" (default: now)")
	a.replicaFlag(c)
	return c
}

// triedJSON is the output of `try -o json`, a contract: see docs/cli-json.md.
type triedJSON struct {
	Job        string   `json:"job"`
	Tick       string   `json:"tick"`
	Run        string   `json:"run"`
	Sent       []string `json:"sent"`
	Outcome    string   `json:"outcome"`
	Code       *int     `json:"code,omitempty"`
	DurationMS int64    `json:"durationMs"`
	Detail     string   `json:"detail,omitempty"`
	Output     string   `json:"output"`
}

func (a *app) try(name string, given moment) error {
	t, err := config.Load(a.config, os.LookupEnv)
	if err := a.refused(err); err != nil {
		return err
	}
	named, err := pick(t, []string{name})
	if err != nil {
		return err
	}
	job := named[0]
	if job.Claim != nil {
		return usage("let the app ask, as docs/claims.md shows",
			"the app of job %q runs it, and asks for its ticks", name)
	}
	tick, err := given.field("--tick", job, time.Now())
	if err != nil {
		return err
	}
	replica, err := a.replicaName(false)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	var background sync.WaitGroup
	defer background.Wait()
	defer stop()
	ended, over := context.WithCancel(context.Background()) // after Ctrl-C, the app reports until it has stopped
	defer over()
	result := triedJSON{Job: name, Sent: []string{}}
	out := a.text()
	tell := func(lines []string) {
		result.Sent = append(result.Sent, lines...)
		fmt.Fprintln(out, strings.Join(lines, "\n  "))
	}
	log := slog.New(&outputLines{out: out})
	own, err := reportsTo(ended, &background, job, replica)
	if err != nil {
		return err
	}
	tried := sidecar.Trial{Service: t.Service, Replica: replica, Job: job, Tick: tick.Time,
		Executor: executor(log, nil, own)(job), Tell: tell}.Try(ctx)

	result.Tick, result.Run, result.Outcome = view.Stamp(tried.Tick), tried.Run, tried.Outcome
	result.DurationMS, result.Output = tried.Took.Milliseconds(), tried.Result.Output
	if tried.Result.Code >= 0 && tried.Took > 0 {
		result.Code = &tried.Result.Code
	}
	if tried.Result.Err != nil {
		result.Detail = tried.Result.Err.Error()
	}
	return a.judge(tried.Outcome == succeeded, result, result.end(tried, job.HTTP != nil)...)
}

// reportsTo serves the reports of a job's app, until ctx ends, on a free port. It returns nil if the job's answer ends
// the run.
func reportsTo(ctx context.Context, background *sync.WaitGroup, job config.Job,
	replica string) (*callback.Runs, error) {
	if job.HTTP == nil || job.HTTP.Async == nil {
		return nil, nil
	}
	l, err := listen("127.0.0.1:0", "admin", servesReports)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	runs := callbacksAt(l)
	server := admin.CallbackServer(admin.Options{Name: replica, Callbacks: runs, Log: log})
	serve(ctx, background, l, servesReports, server, log)
	return runs, nil
}

// end tells the end of a run. The output of a command has been printed line by line.
func (r *triedJSON) end(tried sidecar.Tried, isCall bool) (lines []string) {
	if isCall && r.Output != "" {
		lines = append(lines, map[bool]string{true: "report", false: "answer"}[tried.Result.Reported])
		for line := range strings.Lines(r.Output) {
			lines = append(lines, "  "+strings.TrimRight(line, "\n"))
		}
	}
	line := r.Outcome
	if tried.Took > 0 {
		line += " after " + took(tried.Took)
	}
	switch {
	case r.Detail != "":
		line += ": " + r.Detail
	case tried.Result.Reported:
		line += ": the app ended the run as succeeded"
	case isCall && r.Code != nil:
		line += fmt.Sprintf(": the app answered %d", *r.Code)
		if *r.Code == http.StatusAccepted && r.Outcome == succeeded {
			line += ", which ends the run: with http.async the app ends it by itself"
		}
	}
	return append(lines, line)
}

// outputLines is a log that shows the lines of a command, and nothing else of them. Their attributes are those of the
// one run.
type outputLines struct {
	mu  sync.Mutex
	out io.Writer
}

// Enabled implements slog.Handler.
func (*outputLines) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l *outputLines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "line" {
			said = a.Value.String()
		}
		return true
	})
	_, err := fmt.Fprintf(l.out, "| %s\n", said)
	return err
}

// WithAttrs implements slog.Handler.
func (l *outputLines) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l *outputLines) WithGroup(string) slog.Handler { return l }
