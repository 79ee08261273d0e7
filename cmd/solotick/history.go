package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config/strict"
	"github.com/solotick/solotick/sidecar"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

const (
	// maxHistory bounds -n.
	maxHistory = 20_000
	// handoversPerTick is how many handovers a tick usually has at most. They have no rows of their own, so the command
	// reads that many more entries.
	handoversPerTick = 20
)

func (a *app) historyCommand() *cobra.Command {
	var n int
	var q service.Search
	var since, until moment
	c := a.outputFlag(&cobra.Command{
		Use: "history [JOB]...",
		// The names that other tools have for it.
		SuggestFor: []string{"logs", "log", "runs"},
		Short:      "Show the newest runs and how they ended",
		Long: `Show the newest runs of all jobs, or of the named jobs, and how they ended, the newest first. Missed
ticks have rows too, and so have others that no replica fired, with --outcome overlapped or --outcome paused. Redis
keeps about 200 entries of each job, and 50 of its runs that failed; redis.history in the table sets that. JOB may be a
job that is no longer in the table.

--since and --until are about the time at which a run ended. With --since, all runs since then are shown, unless -n
limits them.`,
		Example: `  solotick history -c table.yaml
  solotick history -c table.yaml send-invoices -n 50
  solotick history -c table.yaml --since 09:00 --outcome timed_out --outcome failed
  solotick history -c table.yaml --failed -o json`,
		ValidArgsFunction: a.completeJobs(0),
		RunE: func(c *cobra.Command, args []string) error {
			if since.given() && !c.Flags().Changed("count") {
				n = maxHistory
			}
			if err := areOutcomes(q.Outcomes); err != nil {
				return err
			}
			q.Jobs = args
			return a.withOperator(func(ctx context.Context, op *operator) error {
				now := op.now()
				q.Since, q.Until = since.or(time.Time{}, now), until.or(time.Time{}, now)
				if until.given() && !q.Since.Before(q.Until) {
					return usage("", "--since %s is not before --until %s", since.text, until.text)
				}
				return a.history(ctx, op, q, n)
			})
		},
	})
	f := c.Flags()
	countFlag(c, &n, 20, maxHistory, "at most `number` runs")
	f.BoolVar(&q.Failed, "failed", false, "only runs that failed")
	f.Var(&since, "since", "only runs that ended at this `time` or later"+timeHelp)
	f.Var(&until, "until", "only runs that ended before this `time`; in the same forms")
	f.StringSliceVar(&q.Outcomes, "outcome", nil, "only runs with this `outcome`; may be repeated")
	f.StringSliceVar(&q.Replicas, "replica", nil, "only runs on the replica of this `name`; may be repeated")
	offer(c, "outcome", sidecar.Recorded()...)
	return c
}

// areOutcomes refuses words that the history never has as an outcome.
func areOutcomes(words []string) error {
	known := sidecar.Recorded()
	for _, word := range words {
		if slices.Contains(known, word) {
			continue
		}
		hint := "--outcome " + strict.Nearest(word, known)
		if hint == "--outcome " {
			hint = "the outcomes are " + strings.Join(known, ", ")
		}
		return usage(hint, "--outcome %q is no outcome", word)
	}
	return nil
}

func (a *app) history(ctx context.Context, op *operator, q service.Search, n int) error {
	q.Limit = n
	if !q.Failed && a.output != "json" {
		q.Limit = min(handoversPerTick*n, maxHistory)
	}
	entries, err := op.Search(ctx, q)
	if err != nil {
		return err
	}
	if a.output == "json" {
		return a.printJSON(view.NewEntries(entries))
	}
	g := a.grid([]int{1, 6}, "TICK", "JOB", "KIND", "OUTCOME", "TOOK", "ENDED", "REPLICA")
	shown := view.Fold(entries, n)
	for _, e := range shown {
		g.add(formatTime(e.Tick), e.Job, kindWords(e.Kind, e.Attempt), e.Outcome, took(e.Took),
			ago(op.now(), e.Ended), e.Replica)
		if e.Count > 1 {
			g.note(fmt.Sprintf("%d ticks, the first at %s", e.Count, formatTime(e.First)))
		}
		if e.Detail != "" {
			g.note(e.Detail)
		}
		if words := e.HandedWords(); words != "" {
			g.note(words)
		}
	}
	rows := g.lines()
	if len(shown) < n {
		for _, job := range q.Jobs {
			from, err := op.Store.HistoryBegins(ctx, job)
			if err != nil {
				return service.RefusalOf(err)
			}
			if from.After(q.Since) {
				rows = append(rows, fmt.Sprintf("Of %s, Redis has all since %s, and of the time before at most "+
					"failures (redis.history in the table).", job, formatTime(from)))
			}
		}
	}
	_, err = fmt.Fprintln(a.out, strings.Join(rows, "\n"))
	return err
}

// kindWords returns a run's kind, followed by the attempt if it is not the first.
func kindWords(kind string, attempt int) string {
	if attempt > 1 {
		return fmt.Sprintf("%s, try %d", kind, attempt)
	}
	return kind
}
