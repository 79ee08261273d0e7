package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/admin/view"
)

// answerLimit is how much longer than its timeout a drain is waited for: the replica answers in time.
const answerLimit = 5 * time.Second

func (a *app) drainCommand() *cobra.Command {
	var (
		o       output
		timeout time.Duration
	)
	c := &cobra.Command{
		Use:   "drain",
		Short: "Have the replica beside take no more ticks, and wait for its runs",
		Long: `Have the replica on this machine take no more ticks, for good, and wait until its runs have ended, which the table's
shutdownGrace bounds. Other replicas take the ticks. It asks the replica itself, at the table's admin address: this is
for a preStop hook, before the app beside it ends.

The exit code is 0 when the replica has drained, and 3 when the timeout passes first; then the drain goes on.`,
		Example: `  solotick drain -c table.yaml
  solotick drain -c table.yaml --timeout 20s`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if c.Flags().Changed("timeout") && timeout <= 0 {
				return &failure{code: exitUsage, err: fmt.Errorf("--timeout %s is no time at all", timeout), hint: "--timeout 20s"}
			}
			ctx, stop := interruptible()
			defer stop()
			return a.drain(ctx, timeout, o)
		},
	}
	o.flag(c)
	c.Flags().DurationVar(&timeout, "timeout", 0, "wait for this `duration` at most (default: until it has drained)")
	return c
}

func (a *app) drain(ctx context.Context, timeout time.Duration, o output) error {
	t, err := a.table()
	if err != nil {
		return err
	}
	if t.Admin == "" {
		return &failure{code: exitCannot, err: errors.New("the table has no admin address: the replica takes no requests"), hint: `admin: "127.0.0.1:9748"`}
	}
	target := url.URL{Scheme: "http", Host: t.Admin, Path: "/v1/drain"}
	if timeout > 0 {
		target.RawQuery = url.Values{"timeout": {timeout.String()}}.Encode()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout+answerLimit)
		defer cancel()
	}
	got, err := askReplica(ctx, target.String())
	if err != nil {
		return err
	}
	if o == "json" {
		if err := a.printJSON(got); err != nil {
			return err
		}
	}
	took := time.Duration(got.TookMS) * time.Millisecond
	if !got.Drained {
		return &failure{code: exitCannot, err: fmt.Errorf("runs of %s have not ended after %s; the drain goes on", lock.OneLine(got.Replica), took)}
	}
	if o != "json" {
		fmt.Fprintf(a.out, "drained %s after %s\n", lock.OneLine(got.Replica), took)
	}
	return nil
}

// maxAnswer bounds what is read of a replica's answer, in bytes.
const maxAnswer = 64 << 10

// askReplica asks the replica to drain.
func askReplica(ctx context.Context, target string) (*view.Drained, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	var dial *net.OpError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial":
		return nil, &failure{code: exitCannot, err: fmt.Errorf("no replica answers at %s", r.URL.Host), hint: "it does while it runs, with the admin address of this table"}
	case ctx.Err() != nil:
		return nil, &failure{code: exitCannot, err: errors.New("not waiting any longer; the drain goes on")}
	case err != nil:
		return nil, &failure{code: exitCannot, err: fmt.Errorf("asking the replica to drain: %w", err)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusAccepted {
		err = errors.New(resp.Status)
	}
	var got view.Drained
	if err == nil {
		err = json.Unmarshal(body, &got)
	}
	if err != nil {
		return nil, &failure{code: exitCannot, err: fmt.Errorf("asking the replica to drain: its answer: %w", err)}
	}
	return &got, nil
}
