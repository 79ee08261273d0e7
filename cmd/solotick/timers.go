package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/service"
)

func (a *app) timerExportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Write all pending timers as JSON lines",
		Long: `Write each pending timer as a line of JSON: its id, and its keys as docs/api.md describes them. The lines
can hold secrets, and a timer can come twice. The Redis user needs the command SCAN, which a replica does not need.`,
		Example: `  solotick timer export -c table.yaml > timers.jsonl`,
		Args:    noArguments,
		RunE: a.onRedis(func(ctx context.Context, op *operator, _ []string) error {
			err := op.Store.EachTimer(ctx, func(id string, source []byte) error {
				_, err := fmt.Fprintf(a.out, "{\"id\":%q,%s\n", id, source[min(1, len(source)):])
				return err
			})
			if err == nil {
				return nil
			}
			return operatorFailure(err)
		}),
	}
}

func (a *app) timerImportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import [FILE]",
		Short: "Set the timers of a file with JSON lines",
		Long: `Set the timer of each line of the file, or of standard input: its id and its keys in JSON. It replaces a
pending timer of the same id, and changes nothing if that is the same. Refused lines are shown, and the others set.`,
		Example: `  solotick timer import -c table.yaml timers.jsonl
  solotick timer export -c old.yaml | solotick timer import -c table.yaml`,
		Args:              atMostOneFile,
		ValidArgsFunction: completeFile("jsonl"),
		RunE: a.onRedis(func(ctx context.Context, op *operator, args []string) error {
			return a.importTimers(ctx, op, append(args, standardInput)[0])
		}),
	}
}

// importTimers sets the timers of a file, and ends early if Redis does not answer or is full.
func (a *app) importTimers(ctx context.Context, op *operator, file string) error {
	in, err := a.openSource(file, "timers")
	if err != nil {
		return err
	}
	defer in.Close()
	counts, read, lines := map[service.Change]int{}, 0, bufio.NewScanner(in)
	lines.Buffer(nil, config.MaxSource+1024) // the largest timer and its id
	for full := true; full && err == nil; {
		var batch []json.RawMessage
		for len(batch) < service.MaxTimerBatch && lines.Scan() {
			batch = append(batch, json.RawMessage(lines.Text()))
		}
		for i, t := range op.SetTimers(ctx, batch) {
			if counts[t.Made]++; t.Err == nil {
				continue
			}
			fmt.Fprintf(a.err, "%s:%d: %s\n", shownFile(file), read+i+1, said(service.RefusalOf(t.Err)))
			if f := operatorFailure(t.Err); f.code == exitCannot {
				err = f
			}
		}
		read, full = read+len(batch), len(batch) == service.MaxTimerBatch
	}
	fmt.Fprintf(a.out, "%d set, %d replaced, %d unchanged, %d refused\n", counts[service.TimerSet],
		counts[service.TimerReplaced], counts[service.TimerUnchanged], counts[""])
	switch unread := lines.Err(); {
	case unread != nil:
		return cannot("", "reading the timers: %s:%d: %w", shownFile(file), read+1, unread)
	case err == nil && counts[""] > 0:
		return problem("", "not all timers of %s are set", shownFile(file))
	}
	return err
}
