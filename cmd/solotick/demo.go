package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	var (
		span         = length{example: "30s"}
		noKill, open bool
	)
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run a demo: three replicas, a toy app, and now and then a killed replica",
		Long: `Show what Solotick does, on this machine alone and without a Redis: three replicas share a table of a few jobs that call a
toy app. Now and then the demo kills one of them with SIGKILL, and another one takes over its run. One stream of lines says
which replica fired which tick. At the end the demo counts the calls that the app received: ticks, doubles, losses,
takeovers. It leaves nothing behind.

The exit code is 1 if a tick was fired twice or lost.`,
		Example: `  solotick demo
  solotick demo --open
  solotick demo --for 30s --no-kill`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			return a.demo(span.Duration, !noKill, open)
		},
	}
	f := c.Flags()
	f.Var(&span, "for", "end after this `duration`, such as 90s (default at Ctrl-C)")
	f.BoolVar(&noKill, "no-kill", false, "let all replicas live")
	f.BoolVar(&open, "open", false, "open the status page in the browser")
	c.AddCommand(a.demoAppCommand())
	return c
}

// demo runs until the time is over or a signal arrives. A second signal ends it at once.
func (a *app) demo(length time.Duration, kill, open bool) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hard, now := context.WithCancel(context.Background())
	defer now()
	if length > 0 {
		ctx, cancel = context.WithTimeout(ctx, length)
		defer cancel()
	}
	got := make(chan os.Signal, 2)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(got)
	// When a reader such as head ends, SIGPIPE would end this process before it removes its directory. With the signal
	// caught, the write fails instead. The signal itself says nothing: the demo also gets it when it writes to a killed
	// replica.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	go func() {
		for range got {
			if ctx.Err() != nil {
				now()
			}
			cancel()
		}
	}()

	_, _, isTerminal := terminal(a.out)
	o := demo.Options{Out: a.out, Colour: isTerminal && os.Getenv("NO_COLOR") == "", Kill: kill}
	if open {
		o.Opened = openPage
	}
	t, err := demo.Run(ctx, hard, o)
	switch {
	case err != nil:
		return &failure{code: exitCannot, err: err}
	case !t.Kept():
		return &failure{code: exitProblem, err: errors.New("a tick was fired twice or lost")}
	}
	return nil
}

// openPage opens the page if this machine has a program for it. The stream shows the page's address in any case.
func openPage(url string) {
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	cmd := exec.Command(opener, url)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}
