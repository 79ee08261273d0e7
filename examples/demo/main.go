// Command demo shows in a minute what Solotick does. Three replicas of a service run on this machine beside a toy app.
// Now and then the demo kills a replica with SIGKILL. One stream of lines says which replica fired or took over which
// tick, and at the end the demo counts the app's receipts. It leaves nothing behind.
//
// This process has the embedded store, so that the store outlives every replica, as a real Redis would.
//
//	go run ./examples/demo
//	go run ./examples/demo app
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

const usage = `go run ./examples/demo [FLAGS]         three replicas, a toy app, and now and then a killed replica
go run ./examples/demo app [FLAGS]     the toy app alone, which prints who called it

The toy app answers POST /jobs/NAME for every name: with ?take=2s after two seconds, with ?code=503 with that status.
The demo's exit code is 1 if a tick was fired twice or lost.

`

func main() {
	args, name := os.Args[1:], "demo"
	if len(args) > 0 && args[0] == "app" {
		args, name = args[1:], "demo app"
	}
	f := flag.NewFlagSet(name, flag.ExitOnError)
	f.Usage = func() {
		fmt.Fprint(f.Output(), usage)
		f.PrintDefaults()
	}
	var run func() error
	if name == "demo" {
		length := f.Duration("for", 0, "end after this `duration`, such as 90s (default at Ctrl-C)")
		noKill := f.Bool("no-kill", false, "let all replicas live")
		open := f.Bool("open", false, "open the status page in the browser")
		program := f.String("solotick", "", "`program` to show (default: built from the source)")
		run = func() error { return show(*program, *length, !*noKill, *open) }
	} else {
		addr := f.String("listen", "", "listen at this `address` (default 127.0.0.1:8080, or any free port if that is taken)")
		token := f.String("token", "", "answer 401 to calls without the header Authorization: Bearer `TOKEN`")
		run = func() error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return RunApp(ctx, os.Stdout, *addr, *token)
		}
	}
	_ = f.Parse(args) // it exits
	if f.NArg() > 0 {
		f.Usage()
		os.Exit(2)
	}
	if err := run(); err != nil {
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
