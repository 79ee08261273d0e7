package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/internal/toy"
)

func (a *app) toyAppCommand() *cobra.Command {
	var addr, token string
	c := &cobra.Command{
		Use:   "toy-app",
		Short: "Run a toy app that answers jobs and prints who called it",
		Long: `Run the app that is missing while you try out a table: it answers POST /jobs/NAME for every name, and
prints a line for each call. GET /readyz answers 200. The caller can ask for more: with /jobs/NAME?take=2s the work
lasts two seconds, and with /jobs/NAME?code=503 it ends with that status.`,
		Example: `  solotick toy-app
  solotick toy-app --listen 127.0.0.1:8081`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			if err := toy.Run(ctx, a.out, addr, token); err != nil {
				return &failure{code: exitCannot, err: err, hint: "solotick toy-app --listen 127.0.0.1:0"}
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&addr, "listen", "", "listen at this `address` (default 127.0.0.1:8080, else any free port)")
	f.StringVar(&token, "token", "", "answer 401 to calls without the header Authorization: Bearer `TOKEN`")
	return c
}
