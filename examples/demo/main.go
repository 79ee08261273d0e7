// Command demo shows in a minute what Solotick does. Three replicas of a service run on this machine beside a toy app.
// Now and then the demo kills a replica with SIGKILL. One stream of lines says which replica fired or took over which
// tick, and at the end the demo counts the app's receipts. It leaves nothing behind.
//
// This process has the embedded store, so that the store outlives every replica, as a real Redis would.
//
//	go run ./examples/demo
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(),
			"go run ./examples/demo: three replicas, a toy app, and now and then a killed replica.\n"+
				"The exit code is 1 if a tick was fired twice or lost.")
		flag.PrintDefaults()
	}
	length := flag.Duration("for", 0, "end after this `duration`, such as 90s (default at Ctrl-C)")
	noKill := flag.Bool("no-kill", false, "let all replicas live")
	open := flag.Bool("open", false, "open the status page in the browser")
	program := flag.String("solotick", "", "`program` to show (default: built from the source)")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := show(*program, *length, !*noKill, *open); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// show runs the demo until the time is over or a signal arrives. A second signal ends it at once.
func show(program string, length time.Duration, kill, open bool) error {
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

	info, err := os.Stdout.Stat()
	colour := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == ""
	o := Options{Program: program, Out: os.Stdout, Colour: colour, Kill: kill}
	if open {
		o.Opened = openPage
	}
	t, err := Run(ctx, hard, o)
	if err == nil && !t.Kept() {
		err = fmt.Errorf("a tick was fired twice or lost")
	}
	return err
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
