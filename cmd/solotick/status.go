package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

// fastestWatch keeps a forgotten --watch from being a load on Redis.
const fastestWatch = 500 * time.Millisecond

func (a *app) statusCommand() *cobra.Command {
	var (
		o        output
		watch    bool
		interval time.Duration
	)
	c := &cobra.Command{
		Use:   "status",
		Short: "Show all jobs and replicas as they are now",
		Long: `Show of each job its last run, its next tick, what runs, waits or is paused now and what was skipped last; and of each
replica its version, table, clock offset and readiness. Times are Redis' own. The next ticks are those of the table that
is given here.`,
		Example: `  solotick status -c table.yaml
  solotick status -c table.yaml --watch --interval 5s
  solotick status -c table.yaml -o json`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			_, _, isTerminal := terminal(a.out)
			switch {
			case !watch && c.Flags().Changed("interval"):
				return &failure{code: exitUsage, err: errors.New("--interval is of --watch"), hint: "solotick status --watch --interval 5s"}
			case watch && (o == "json" || !isTerminal):
				return &failure{code: exitUsage, err: errors.New("--watch draws on a terminal"), hint: "solotick status -o json"}
			case interval < fastestWatch:
				return &failure{code: exitUsage, err: fmt.Errorf("--interval %s is shorter than %s", interval, fastestWatch), hint: "--interval 2s"}
			}
			ctx, stop := interruptible()
			defer stop()
			d, err := a.desk(ctx)
			if err != nil {
				return err
			}
			defer d.close()
			if watch {
				a.watch(ctx, d, interval)
				return nil
			}
			s, err := d.status(ctx)
			if err != nil {
				return cannot(err)
			}
			if o == "json" {
				return a.printJSON(s.json())
			}
			columns, _, _ := terminal(a.out)
			_, err = fmt.Fprint(a.out, s.text(columns))
			return err
		},
	}
	o.flag(c)
	c.Flags().BoolVar(&watch, "watch", false, "draw anew until it is interrupted")
	c.Flags().DurationVar(&interval, "interval", 2*time.Second, "with --watch: `duration` from one drawing to the next")
	return c
}

// status is what one look at Redis tells, beside the table.
type status struct {
	table    *config.Table
	now      time.Time
	states   map[string]lock.JobState
	replicas []lock.Replica
}

func (d *desk) status(ctx context.Context) (*status, error) {
	var names []string
	for _, j := range d.table.Jobs {
		names = append(names, j.Name)
	}
	states, err := d.States(ctx, names)
	if err != nil {
		return nil, err
	}
	now := d.now()
	replicas, err := d.Replicas(ctx)
	if err != nil {
		return nil, err
	}
	return &status{d.table, now, states, replicas}, nil
}

// next is the next tick that is not held back; zero when there is none.
func (s *status) next(j config.Job) time.Time {
	after := s.now
	if p := s.states[j.Name].Paused; p != nil {
		if p.Until.IsZero() {
			return time.Time{}
		}
		after = p.Until.Add(-time.Nanosecond)
	}
	if j.Suspend {
		return time.Time{}
	}
	return j.Schedule.Next(after)
}

func (s *status) silent(r lock.Replica) bool { return s.now.Sub(r.Seen) > lock.Silent }

// drift tells whether the replicas that are there have different tables.
func (s *status) drift() bool {
	tables := map[string]bool{}
	for _, r := range s.replicas {
		if !s.silent(r) {
			tables[r.Table] = true
		}
	}
	return len(tables) > 1
}

// skipped is a replica's last skip of a job.
type skipped struct {
	lock.Skip
	replica string
}

// skips are the last skips of a job on each replica, the newest first.
func (s *status) skips(job string) []skipped {
	var all []skipped
	for _, r := range s.replicas {
		if k, ok := r.Skips[job]; ok {
			all = append(all, skipped{k, r.Name})
		}
	}
	slices.SortFunc(all, func(a, b skipped) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.replica, b.replica)) })
	return all
}

// statusJSON is the output of `status -o json`; it and its parts are a contract: see docs/cli-json.md.
type statusJSON struct {
	Service  string        `json:"service"`
	Time     string        `json:"time"`
	Table    string        `json:"table"`
	Drift    bool          `json:"drift"`
	Jobs     []jobJSON     `json:"jobs"`
	Replicas []replicaJSON `json:"replicas"`
}

type jobJSON struct {
	Job        string        `json:"job"`
	Guarantee  string        `json:"guarantee"`
	Registered bool          `json:"registered"`
	Suspended  bool          `json:"suspended"`
	Next       string        `json:"next,omitempty"`
	Last       *entryJSON    `json:"last,omitempty"`
	Running    []runJSON     `json:"running"`
	Waiting    []waitingJSON `json:"waiting"`
	Paused     *pauseJSON    `json:"paused,omitempty"`
	Skips      []skipJSON    `json:"skips"`
}

type runJSON struct {
	Tick     string `json:"tick"`
	Run      string `json:"run"`
	Replica  string `json:"replica"`
	Kind     string `json:"kind"`
	Attempt  int    `json:"attempt"`
	Since    string `json:"since"`
	LeaseEnd string `json:"leaseEnd"`
}

type waitingJSON struct {
	Tick    string `json:"tick"`
	Kind    string `json:"kind"`
	Attempt int    `json:"attempt"`
}

type pauseJSON struct {
	Reason string `json:"reason"`
	At     string `json:"at"`
	Until  string `json:"until,omitempty"`
}

type skipJSON struct {
	Replica string `json:"replica"`
	Tick    string `json:"tick"`
	Reason  string `json:"reason"`
	At      string `json:"at"`
}

type replicaJSON struct {
	Replica  string  `json:"replica"`
	Version  string  `json:"version"`
	Table    string  `json:"table"`
	OffsetMS float64 `json:"offsetMs"`
	Ready    bool    `json:"ready"`
	NotReady string  `json:"notReady,omitempty"`
	Silent   bool    `json:"silent"`
	Seen     string  `json:"seen"`
}

func (s *status) json() statusJSON {
	out := statusJSON{s.table.Service, stamp(s.now), s.table.Hash, s.drift(), []jobJSON{}, []replicaJSON{}}
	for _, j := range s.table.Jobs {
		out.Jobs = append(out.Jobs, s.jobJSON(j))
	}
	for _, r := range s.replicas {
		silent := s.silent(r)
		out.Replicas = append(out.Replicas, replicaJSON{r.Name, r.Version, r.Table, float64(r.Offset.Microseconds()) / 1000,
			r.Ready == "" && !silent, r.Ready, silent, stamp(r.Seen)})
	}
	return out
}

func (s *status) jobJSON(j config.Job) jobJSON {
	state, known := s.states[j.Name]
	out := jobJSON{Job: j.Name, Guarantee: string(j.Guarantee), Registered: known, Suspended: j.Suspend, Next: stamp(s.next(j)),
		Running: []runJSON{}, Waiting: []waitingJSON{}, Skips: []skipJSON{}}
	if state.Last != nil {
		last := newEntryJSON(*state.Last)
		out.Last = &last
	}
	for _, r := range state.Running {
		out.Running = append(out.Running, runJSON{stamp(r.Tick), r.Run, r.Replica, r.Kind, r.Attempt, stamp(r.Since), stamp(r.LeaseEnd)})
	}
	for _, w := range state.Waiting {
		out.Waiting = append(out.Waiting, waitingJSON{stamp(w.Tick), w.Kind, w.Attempt})
	}
	if p := state.Paused; p != nil {
		out.Paused = &pauseJSON{p.Reason, stamp(p.At), stamp(p.Until)}
	}
	for _, k := range s.skips(j.Name) {
		out.Skips = append(out.Skips, skipJSON{k.replica, stamp(k.Tick), k.Reason, stamp(k.At)})
	}
	return out
}
