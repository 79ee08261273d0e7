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
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/admin/view"
)

// answerLimit is how much longer than its timeout a drain is waited for: the replica answers in time.
const answerLimit = 5 * time.Second

func (a *app) drainCommand() *cobra.Command {
	var (
		o       output
		admin   string
		timeout time.Duration
	)
	c := &cobra.Command{
		Use:   "drain",
		Short: "Have the replica beside take no more ticks, and wait for its runs",
		Long: `Have the replica on this machine take no more ticks, for good, and wait until its runs have ended, which the table's
shutdownGrace bounds. Other replicas take the ticks. It asks the replica itself, at the table's admin address: this is
for a preStop hook, before the app beside it ends. With --admin the table is not read: a replica whose table was broken, or
got another address, after it started can be drained too.

The exit code is 0 when the replica has drained, and 3 when the timeout passes first; then the drain goes on.`,
		Example: `  solotick drain -c table.yaml
  solotick drain -c table.yaml --timeout 20s
  solotick drain --admin 127.0.0.1:9748`,
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
			return a.drain(ctx, admin, timeout, o)
		},
	}
	o.flag(c)
	c.Flags().StringVar(&admin, "admin", "", "`address` of the replica's admin API (default: the table's)")
	c.Flags().DurationVar(&timeout, "timeout", 0, "wait for this `duration` at most (default: until it has drained)")
	return c
}

func (a *app) drain(ctx context.Context, admin string, timeout time.Duration, o output) error {
	if admin == "" {
		t, err := a.read()
		if f := new(failure); errors.As(err, &f) {
			f.hint = strings.TrimPrefix(f.hint+"; --admin 127.0.0.1:9748 drains without a table", "; ")
		}
		if err != nil {
			return err
		}
		if why := t.Unknown["admin"]; why != "" {
			return &failure{code: exitCannot, err: fmt.Errorf("%s: admin is not known: %s", a.config, why),
				hint: "--admin 127.0.0.1:9748 drains without a table"}
		}
		if t.Admin == "" {
			return &failure{code: exitCannot, err: errors.New("the table has no admin address: the replica takes no requests"), hint: `admin: "127.0.0.1:9748"`}
		}
		admin = t.Admin
	}
	target := "/v1/drain"
	if timeout > 0 {
		target += "?timeout=" + timeout.String()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout+answerLimit)
		defer cancel()
	}
	got, err := askReplica(ctx, admin, target)
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
		return &failure{code: exitCannot, err: fmt.Errorf("runs of %s have not ended after %s; the drain goes on", text.OneLine(got.Replica), took)}
	}
	if o != "json" {
		fmt.Fprintf(a.out, "drained %s after %s\n", text.OneLine(got.Replica), took)
	}
	return nil
}

// maxAnswer bounds what is read of a replica's answer, in bytes.
const maxAnswer = 64 << 10

// askReplica asks the replica to drain. A redirect is an answer like any other, and no proxy is used: the replica is on this
// machine.
func askReplica(ctx context.Context, addr, target string) (*view.Drained, error) {
	nobody := &failure{code: exitCannot, err: fmt.Errorf("no replica answers at %s", addr),
		hint: "it does while it runs; --admin names another address than the table's"}
	if _, _, err := net.SplitHostPort(addr); err != nil { // net/http would ask port 80
		return nil, nobody
	}
	body, err := post(ctx, "http://"+addr+target)
	var got view.Drained
	if err == nil {
		err = json.Unmarshal(body, &got)
	}
	failed, ok := errors.AsType[*net.OpError](err)
	switch {
	case ok && failed.Op == "dial":
		return nil, nobody
	case ctx.Err() != nil:
		return nil, &failure{code: exitCannot, err: errors.New("not waiting any longer; the drain goes on")}
	case err != nil:
		return nil, &failure{code: exitCannot, err: fmt.Errorf("asking the replica to drain: %w", err)}
	}
	return &got, nil
}

// post sends a request without a body and reads the answer.
func post(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "solotick/"+buildVersion())
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return nil, failed.Err // without the address, which is said already
	} else if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusAccepted {
		return nil, errors.New(resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
}
