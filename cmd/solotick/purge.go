package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) purgeCommand() *cobra.Command {
	var yes, force bool
	c := a.outputFlag(&cobra.Command{
		Use:   "purge --yes",
		Short: "Remove all that Redis keeps of a service",
		Long: `Remove all keys of a service from Redis, for good: claims, locks, history, pauses and timers. Without
--yes, only count them.

Purge refuses while a replica of the service lives. End the replicas first: with --force, a live replica loses its locks
in the middle of its runs, and forgets which ticks were fired. A purge that was cut short can be repeated.

The Redis user needs the commands SCAN and UNLINK, which a replica does not need. In a Cluster, only the server that has
the service's hash slot is scanned.`,
		Example: `  solotick purge --service billing --redis redis://redis:6379/0
  solotick purge --service billing --redis redis://redis:6379/0 --yes
  solotick purge -c table.yaml --yes -o json`,
		Args: noArguments,
		RunE: a.onRedis(func(ctx context.Context, op *operator, _ []string) error {
			return a.purge(ctx, op, yes, force)
		}),
	})
	c.Flags().BoolVar(&yes, "yes", false, "remove the keys, and do not only count them")
	c.Flags().BoolVar(&force, "force", false, "remove them even while replicas of the service live")
	return c
}

// purgeJSON is the output of `purge -o json`, a contract: see docs/cli-json.md.
type purgeJSON struct {
	Service string `json:"service"`
	Keys    int    `json:"keys"`
	Removed int    `json:"removed"`
}

func (a *app) purge(ctx context.Context, op *operator, yes, force bool) error {
	p := purgeJSON{Service: op.Table().Service}
	var err error
	if p.Keys, err = op.Purgeable(ctx, force); err != nil {
		return err
	}
	if p.Keys > 0 && !yes {
		return usage("--yes removes all of them, for good",
			"service %s has %s in Redis, and purge removes nothing without --yes", p.Service, plural(p.Keys, "key"))
	}
	if p.Keys == 0 {
		fmt.Fprintf(a.text(), "service %s has no keys in Redis\n", p.Service)
	} else {
		fmt.Fprintf(a.text(), "removing %s of service %s\n", plural(p.Keys, "key"), p.Service)
		var left int
		if p.Removed, left, err = op.Purge(ctx); err != nil {
			return err
		}
		fmt.Fprintf(a.text(), "removed %s\n", plural(p.Removed, "key"))
		if left > 0 {
			fmt.Fprintf(a.err, "note: meanwhile, a replica or an app has written %s\n", plural(left, "key"))
		}
	}
	return a.answer(p)
}
