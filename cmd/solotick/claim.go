package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/execute/command"
	"github.com/solotick/solotick/sidecar/view"
)

const (
	claimWait   = 65 * time.Second // a replica answers within a minute
	claimAgain  = 10 * time.Second // a replica may still be starting
	finishAgain = 5 * time.Second
	killAfter   = 10 * time.Second // from a signal that is passed on to SIGKILL
)

func (a *app) claimCommand() *cobra.Command {
	var admin, tick string
	var wait bool
	c := &cobra.Command{
		Use:   "claim JOB [flags] -- COMMAND [ARG]...",
		Short: "Run a command if the replica on this machine gets the tick: for crontabs",
		Long: `Ask the replica on this machine for a tick of a job that has claim, and run the command if the replica
gets it. So every machine can have the same line in its crontab, and one of them runs the command. With --wait, ask
again while another run of the job goes on or the job is paused: so one machine at a time holds a lease.

The command also gets SOLOTICK_JOB, SOLOTICK_TICK, SOLOTICK_RUN, SOLOTICK_FENCING_TOKEN and SOLOTICK_SINCE. If the
replica loses the run, the command and its process group get SIGTERM, and SIGKILL before another run may begin. SIGTERM,
SIGINT and SIGHUP are passed on, and SIGKILL follows after 10 seconds.

The exit code is that of the command: 128 and the number of the signal that killed it, 127 if it is not found, 126 if it
cannot be started. It is 0 if the tick is not for this replica. Only a terminal is told why.`,
		Example: `  solotick claim report -- /app/report.sh --all
  solotick claim report --admin 127.0.0.1:9748 --tick 2027-03-28T07:00:00Z -- /app/report.sh
  solotick claim consumer --wait -- /app/consume.sh`,
		Args: func(c *cobra.Command, args []string) error {
			if c.ArgsLenAtDash() != 1 || len(args) < 2 {
				return usage("solotick claim JOB -- COMMAND", "claim takes the name of one job, --, and a command")
			}
			return nil
		},
		ValidArgsFunction:     a.completeJobs(1),
		DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.claim(admin, args[0], tick, wait, args[1:])
		},
	}
	c.Flags().StringVar(&admin, "admin", "", "`address` of the replica's admin API (default: the table's)")
	c.Flags().StringVar(&tick, "tick", "now", "`time` of the tick, as RFC 3339; now is the tick next to it")
	c.Flags().BoolVar(&wait, "wait", false, "ask again while another run goes on or the job is paused, for a lease")
	return c
}

// claimed is a tick that the replica has got for this process.
type claimed struct {
	view.Granted
	admin            string
	wait             bool      // until the replica gets it
	sent             time.Time // of the last request. Written by ask
	heartbeat, grace time.Duration
	end              atomic.Pointer[time.Time] // of the command. Written by beat
}

func (a *app) claim(admin, job, tick string, wait bool, args []string) error {
	admin, err := a.adminAddress(admin)
	if err != nil {
		return err
	}
	c, again := &claimed{admin: admin, wait: wait}, claimAgain
	if wait {
		again = longest
	}
	err = c.ask(context.Background(), claimWait, again,
		"/v1/jobs/"+url.PathEscape(job)+"/ticks/"+url.PathEscape(tick), nil, &c.Granted)
	if err == nil {
		return c.run(args)
	}
	f, noReplica := errors.AsType[*failure](err)
	if !noReplica {
		f = cannot("", "asking for a tick of job %q: %w", job, err)
	}
	if r, ok := errors.AsType[*refused](err); ok {
		if r.status == http.StatusConflict && r.Reason != "" {
			if _, ok := terminal(a.err); ok { // cron would mail it
				fmt.Fprintf(a.err, "note: %s\n", text.OneLine(r.Message))
			}
			return nil
		}
		if f.hint = r.Hint; r.final() {
			f.code = exitUsage
		}
	}
	return f
}

// ask sends a request, and for a time again if no answer comes, or none that is final.
func (c *claimed) ask(ctx context.Context, wait, again time.Duration, path string, body []byte, got any) error {
	for until := time.Now().Add(again); ; {
		c.sent = time.Now()
		bounded, cancel := context.WithTimeout(ctx, wait)
		err := post(bounded, c.admin, path, c.Token, body, got)
		cancel()
		r, answered := errors.AsType[*refused](err)
		final := answered && r.final() && !(c.wait && (r.Reason == "overlap" || r.Reason == "paused"))
		if err == nil || final || !time.Now().Before(until) || !beat.Sleep(ctx, min(time.Second, again/10)) {
			return err
		}
	}
}

// beat sends a heartbeat, again until that time if it gets no answer. The command may then work for longer.
func (c *claimed) beat(ctx context.Context, until time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	err := c.ask(ctx, c.heartbeat/3, time.Until(until), "/v1/runs/"+c.Run+"/heartbeat", nil, &struct{}{})
	if err != nil {
		return fmt.Errorf("sending a heartbeat: %w", err)
	}
	c.end.Store(new(c.sent.Add(c.heartbeat - c.grace/8))) // the kill takes a moment, too
	return nil
}

// run runs the command once a heartbeat was answered, and reports its end. An earlier signal ends this process, and the
// replica hears no more of the run.
func (c *claimed) run(args []string) error {
	c.heartbeat = time.Duration(c.HeartbeatMS) * time.Millisecond
	c.grace = min(2*time.Second, c.heartbeat/3)
	if err := c.beat(context.Background(), time.Now().Add(c.heartbeat)); err != nil {
		return cannot("", "the run was lost before it began: %w", err)
	}
	leased, lose := context.WithCancelCause(context.Background())
	ctx, stop := context.WithCancelCause(leased)
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if !signal.Ignored(s) { // by nohup, for example
			signal.Notify(signals, s)
		}
	}
	var background sync.WaitGroup
	background.Go(func() {
		select {
		case s := <-signals:
			stop(command.Signal(s.(syscall.Signal)))
		case <-leased.Done():
		}
	})
	background.Go(func() {
		for beat.Sleep(leased, time.Until(c.sent.Add(c.heartbeat/3))) {
			if err := c.beat(leased, c.sent.Add(c.heartbeat-c.grace)); err != nil {
				lose(fmt.Errorf("the run was lost: %w", err))
			}
		}
	})
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "SOLOTICK_JOB="+c.Job, "SOLOTICK_TICK="+c.Tick, execute.RunVariable+"="+c.Run,
		"SOLOTICK_FENCING_TOKEN="+strconv.FormatInt(c.FencingToken, 10))
	if c.Since != "" {
		cmd.Env = append(cmd.Env, "SOLOTICK_SINCE="+c.Since)
	}
	cmd.SysProcAttr = command.GroupLeader()
	if front, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err == nil && front == unix.Getpgrp() {
		// The command has to read from the terminal. Ctrl-Z would stop it alone, and the shell would not know.
		signal.Ignore(syscall.SIGTTOU, syscall.SIGTSTP)
		cmd.SysProcAttr.Foreground = true
		defer func() { _ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, front) }()
	}
	told := sync.OnceValue(time.Now)
	canceled, err := command.Run(ctx, cmd, func() time.Duration {
		left := time.Until(*c.end.Load()) + time.Since(told())
		if _, passed := errors.AsType[command.Signal](context.Cause(ctx)); passed {
			left = min(left, killAfter)
		}
		return left
	})
	lost := context.Cause(leased)
	lose(nil)
	background.Wait()
	f := &failure{code: 126, err: err}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		f.code = 127
	}
	outcome, detail := "failed", f.Error()
	if state := cmd.ProcessState; state != nil {
		ws := state.Sys().(syscall.WaitStatus)
		f.code, detail = ws.ExitStatus(), fmt.Sprintf("exit code %d", ws.ExitStatus())
		switch {
		case f.code == 0:
			outcome, detail = "succeeded", ""
		case ws.Signaled():
			f.code, detail = 128+int(ws.Signal()), "killed by "+unix.SignalName(ws.Signal())
		}
		if canceled && f.code != 0 {
			outcome = "interrupted"
		}
	}
	report, err := json.Marshal(map[string]string{"outcome": outcome, "detail": detail})
	if err == nil {
		err = c.ask(context.Background(), finishAgain, finishAgain, "/v1/runs/"+c.Run+"/finish", report, &struct{}{})
	}
	switch {
	case canceled && lost != nil:
		f.err = lost
	case f.err == nil && err != nil:
		f.err = fmt.Errorf("reporting the end of the run: %w", err)
	case f.err == nil && f.code == 0:
		return nil
	}
	return f
}
