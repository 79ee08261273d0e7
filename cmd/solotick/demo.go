package main

import (
	"context"
	"errors"
	"fmt"
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
		length       time.Duration
		noKill, open bool
	)
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show it: three replicas, a toy app, and a replica that is killed now and then",
		Long: `Show what Solotick does, on this machine alone and without a Redis: three replicas share a table of a few jobs that call a
toy app; now and then one of them is killed with SIGKILL, and another one takes its run over. One stream of lines says who
fired what. At the end the app's own receipts are counted: ticks, doubles, losses, takeovers. Nothing of it is left then.

The exit code is 1 when a tick was fired twice or lost.`,
		Example: `  solotick demo
  solotick demo --open
  solotick demo --for 30s --no-kill`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("for") && length <= 0 {
				return &failure{code: exitUsage, err: fmt.Errorf("--for %s is no time that a demo could take", length), hint: "--for 30s"}
			}
			return a.demo(length, !noKill, open)
		},
	}
	f := c.Flags()
	f.DurationVar(&length, "for", 0, "end after this `time` (default at Ctrl-C)")
	f.BoolVar(&noKill, "no-kill", false, "let all replicas live")
	f.BoolVar(&open, "open", false, "open the status page in the browser")
	return c
}

// demo runs until the time is over or a signal comes; a second signal does not wait for anything.
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
	// The end of a reader such as head would end this process and leave its directory; like this, the write fails. The
	// signal itself says nothing: it also comes when a replica that was killed is written to.
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

// openPage opens the page where there is something to open it with. Where there is not, its address stands on the screen.
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
