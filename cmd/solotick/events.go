package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// maxActs bounds -n: about as many acts as Redis keeps.
const maxActs = 1000

func (a *app) eventsCommand() *cobra.Command {
	var n int
	c := a.outputFlag(&cobra.Command{
		Use:   "events [JOB]",
		Short: "Show who paused, triggered or cancelled what, and why",
		Long: `Show the newest requests by hand that had an effect, for one job or for all jobs, the newest first: who
made them, when and why. Redis keeps about a thousand. Runs of the schedule are in "solotick history".`,
		Example: `  solotick events -c table.yaml
  solotick events -c table.yaml send-invoices -n 50
  solotick events -c table.yaml -o json`,
		Args:              ofOneJob(0, 1),
		ValidArgsFunction: a.completeJobs(1),
		RunE: a.onRedis(func(ctx context.Context, op *operator, args []string) error {
			job := strings.Join(args, "")
			acts, err := op.Acts(ctx, job, n)
			if err != nil {
				return err
			}
			g := a.grid([]int{1, 3}, "TIME", "BY", "WHAT", "JOB", "")
			for _, act := range acts {
				what, whose := act.What, act.Jobs[0]
				if act.All != "" {
					what += " --all"
					if job == "" {
						whose = "(" + plural(len(act.Jobs), "job") + ")"
					}
				}
				g.add(formatTime(act.At.Truncate(time.Second)), cmp.Or(act.By, "-"), what, whose, actWords(act))
				if act.Reason != "" {
					g.note(act.Reason)
				}
			}
			return a.answer(view.NewEvents(acts), g.lines()...)
		}),
	})
	countFlag(c, &n, 20, maxActs, "at most `number` requests")
	return c
}

// actWords says what a request was about, besides its job.
func actWords(act service.Act) string {
	switch {
	case act.What == "pause":
		return untilWords(act.Until)
	case act.What == "cancel" && act.Count > 0:
		return plural(act.Count, "tick") + " that waited"
	case act.What == "cancel":
		return "run " + strings.Join(act.Runs, ", ")
	case act.Count > 0 && act.What != "rerun":
		return plural(act.Count, "tick") + " from " + formatTime(act.Tick)
	case !act.Tick.IsZero():
		return "tick " + formatTime(act.Tick)
	}
	return ""
}
