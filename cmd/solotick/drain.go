package main

import (
	"bytes"
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

	"github.com/solotick/solotick/internal/identity"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/view"
)

// answerLimit is how much longer than --timeout the command waits for the replica's answer.
const answerLimit = 5 * time.Second

func (a *app) drainCommand() *cobra.Command {
	admin, timeout := "", length{example: "20s"}
	c := a.outputFlag(&cobra.Command{
		Use:   "drain",
		Short: "Make the replica on this machine take no more ticks, and wait for its runs",
		Long: `Make the replica on this machine take no more ticks, for good, and wait until its runs have ended. The
table's shutdownGrace limits the wait. Other replicas take the ticks.

Use it in a preStop hook, before the app beside the replica ends. The command asks the replica at the table's admin
address. With --admin it does not read the table, which may have been changed or broken since the replica started.

The exit code is 0 if the replica has drained, and 3 if the timeout passes first. The drain goes on after a timeout.`,
		Example: `  solotick drain -c table.yaml
  solotick drain -c table.yaml --timeout 20s
  solotick drain --admin 127.0.0.1:9748`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := interruptible()
			defer stop()
			return a.drain(ctx, admin, timeout.Duration)
		},
	})
	c.Flags().StringVar(&admin, "admin", "", "`address` of the replica's admin API (default: the table's)")
	c.Flags().Var(&timeout, "timeout", "wait for this `duration` at most (default: until it has drained)")
	return c
}

func (a *app) drain(ctx context.Context, admin string, timeout time.Duration) error {
	admin, err := a.adminAddress(admin)
	if err != nil {
		return err
	}
	target := "/v1/drain"
	if timeout > 0 {
		target += "?timeout=" + timeout.String()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout+answerLimit)
		defer cancel()
	}
	var got view.Drained
	err = post(ctx, admin, target, "", nil, &got)
	switch _, noReplica := errors.AsType[*failure](err); {
	case noReplica:
		return err
	case ctx.Err() != nil:
		return cannot("", "no longer waiting; the drain goes on")
	case err != nil:
		return cannot("", "asking the replica to drain: %w", err)
	}
	name, took := text.OneLine(got.Replica), time.Duration(got.TookMS)*time.Millisecond
	if got.Drained {
		return a.answer(got, fmt.Sprintf("drained %s after %s", name, took))
	}
	if err := a.answer(got); err != nil {
		return err
	}
	return cannot("", "runs of %s have not ended after %s; the drain goes on", name, took)
}

// adminAddress returns the admin address of the replica on this machine: the one that is given, or else the table's.
func (a *app) adminAddress(given string) (string, error) {
	const withoutTable = "--admin 127.0.0.1:9748 needs no table"
	if given != "" {
		return given, nil
	}
	t, err := a.readTable()
	if err = a.refused(err); err != nil {
		if f := new(failure); errors.As(err, &f) {
			f.hint = strings.TrimPrefix(f.hint+"; "+withoutTable, "; ")
		}
		return "", err
	}
	if why := t.Unknown["admin"]; why != "" {
		return "", cannot(withoutTable, "%s: admin is not known: %s", shownFile(a.config), why)
	}
	if t.Admin == "" {
		return "", cannot(`admin: "127.0.0.1:9748"`, "the table has no admin address: the replica accepts no requests")
	}
	return t.Admin, nil
}

// maxAnswer bounds how much of a replica's answer is read, in bytes.
const maxAnswer = 64 << 10

// refused is an answer of the API that is no success.
type refused struct {
	status       int
	Message      string `json:"error"`
	Hint, Reason string
}

func (r *refused) Error() string { return r.Message }

// final reports whether the same request will get the same answer.
func (r *refused) final() bool { return r.status < http.StatusInternalServerError }

// post sends a request to the replica at addr, and reads the answer. Only a report on a run has a token. post follows
// no redirect and uses no proxy: the replica is on this machine. The error is a *failure if no replica is there, and
// *refused if its answer is no success.
func post(ctx context.Context, addr, target, token string, body []byte, got any) error {
	noReplica := cannot("is it running? --admin names an address other than the table's",
		"no replica answers at %s", addr)
	if _, _, err := net.SplitHostPort(addr); err != nil { // net/http would ask port 80
		return noReplica
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "solotick/"+buildVersion())
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: identity.FollowNone,
	}
	resp, err := client.Do(req)
	if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Op == "dial" {
		return noReplica
	} else if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err // without the address: the caller's message has it
	} else if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusAccepted {
		r := &refused{status: resp.StatusCode, Message: resp.Status}
		_ = json.Unmarshal(answer, r) // another program may answer anything
		return r
	}
	if err == nil {
		err = json.Unmarshal(answer, got)
	}
	return err
}
