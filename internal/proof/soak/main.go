// Soak runs replicas on a real Redis for a while, and judges from the outside whether each tick was fired exactly once.
//
// The program holds the app that the jobs call, and writes down every call. The ticks that should have been are computed
// here, by arithmetic that shares nothing with the product. A tick counts as fired, as overlapped (a run of its job was
// under way, as the app saw it), or as lost. The exit code is 1 for a tick that was requested twice or lost, a run beside
// another one of its job, a token that did not grow, or a fire that a replica counted wrongly.
//
// What it cannot show: what happens when something breaks. Nothing is killed here but the clocks.
//
//	go run ./internal/proof/soak -for 10m
//	go run ./internal/proof/soak -for 10m -skew 0,2.5s,-2.5s -clock local
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == callArg {
		if err := call(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		return
	}
	o := options{}
	skew := flag.String("skew", "0,0,0", "by how much the wall clock of each replica is ahead; as many replicas as values")
	flag.StringVar(&o.clock, "clock", "redis", "the table's clock: redis or local")
	flag.DurationVar(&o.length, "for", 10*time.Minute, "how long the replicas run")
	flag.DurationVar(&o.margin, "margin", 5*time.Second, "at either end, how long ticks do not count")
	flag.DurationVar(&o.edge, "edge", 250*time.Millisecond, "how far from a tick a run may lie and still excuse it")
	flag.StringVar(&o.keep, "keep", "", "directory for tables and logs, which are deleted otherwise if all went well")
	flag.Parse()
	for _, s := range strings.Split(*skew, ",") {
		d, err := time.ParseDuration(strings.TrimSpace(s))
		if err != nil || flag.NArg() > 0 {
			fmt.Fprintln(os.Stderr, "error: -skew is a list of durations, and there are no arguments: -skew 0,2.5s,-2.5s")
			os.Exit(2)
		}
		o.skew = append(o.skew, d)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := soak(ctx, o, os.Stdout); {
	case errors.Is(err, errBroken):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(3)
	}
}
