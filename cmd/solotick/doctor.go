package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/service"
)

func (a *app) doctorCommand() *cobra.Command {
	return a.outputFlag(&cobra.Command{
		Use:   "doctor",
		Short: "Look at Redis as the replicas rely on it, and say what is wrong",
		Long: `Look at the Redis of a service as its replicas rely on it: the connection, the rights of its user, round
trips, the clock, eviction, memory, persistence, replicas and keys. Each line says what was seen; beneath a problem or a
warning stand what it means and what to do.

The doctor uses the user of the replicas, so that it finds what they lack. It writes four keys of its own, which vanish
after a second, and changes nothing else.

The exit code is 1 if there is a problem, also if Redis cannot be reached. Warnings alone leave it at 0.`,
		Example: `  solotick doctor -c table.yaml
  solotick doctor --service billing --redis redis://redis:6379/0
  solotick doctor -o json`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return a.withUnasked(a.doctor) },
	})
}

// doctorJSON is the output of `doctor -o json`, a contract: see docs/cli-json.md.
type doctorJSON struct {
	Service  string            `json:"service"`
	Redis    string            `json:"redis"`
	Problems int               `json:"problems"`
	Warnings int               `json:"warnings"`
	Findings []service.Finding `json:"findings"`
}

func (a *app) doctor(ctx context.Context, op *operator) error {
	d := doctorJSON{Service: op.Table().Service, Redis: op.at, Findings: op.Store.Examine(ctx)}
	for _, f := range d.Findings {
		switch f.Level {
		case service.Problem:
			d.Problems++
		case service.Warning:
			d.Warnings++
		}
	}
	return a.judge(d.Problems == 0, d, a.doctorLines(&d)...)
}

func (a *app) doctorLines(d *doctorJSON) []string {
	width, isTerminal := terminal(a.out)
	if width > 0 {
		width = max(width, 45) // room for words beside level and check
	}
	lines := []string{fmt.Sprintf("Redis (%s), service %s", d.Redis, d.Service)}
	for _, f := range d.Findings {
		c, level := colour(""), string(f.Level)
		switch f.Level {
		case service.Problem:
			c, level = red, "PROBLEM"
		case service.Warning:
			c = yellow
		}
		if !isTerminal {
			c = ""
		}
		first := fmt.Sprintf("%-9s %-12s ", level, f.Check)
		for _, line := range hang(first, text.OneLine(f.Saw), width) {
			lines = append(lines, c.paint(line))
		}
		for _, said := range []string{f.Means, f.Do} {
			if said != "" {
				lines = append(lines, hang(strings.Repeat(" ", len(first)+2), text.OneLine(said), width)...)
			}
		}
	}
	if d.Problems+d.Warnings == 0 {
		return append(lines, "nothing is wrong")
	}
	return append(lines, plural(d.Problems, "problem")+", "+plural(d.Warnings, "warning"))
}
