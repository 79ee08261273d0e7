package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// The variables that stand in for flags.
const (
	configVariable  = "SOLOTICK_CONFIG"
	redisVariable   = "SOLOTICK_REDIS_URL"
	replicaVariable = "SOLOTICK_REPLICA"
	environVariable = "SOLOTICK_ENVIRONMENT"
	byVariable      = "SOLOTICK_BY"
)

// app is one invocation: its outputs, and the flags that several verbs share.
type app struct {
	out, err  io.Writer
	config    string
	redis     string
	output    string         // text or json
	service   string         // in place of a table
	author    service.Author // written by the check of its flags, and by onJobs before Redis is asked
	all       bool           // of --all: the command is for all jobs
	wait      waitFlags
	replica   string // this and the rest are of run alone
	addresses addresses
	anyway    bool   // start with a broken table
	broken    string // what is wrong with the table, for status; "" = nothing
	state     stateDir
	logFormat string
	logLevel  string
	operate   lock.Options // the clock of the verbs, and their least timeout; zero except in tests
}

// commandLine runs one command line and returns the exit code.
func (a *app) commandLine(args []string) int {
	written, errOut := &stickyWriter{Writer: a.out}, a.err
	a.out = written
	root := a.root()
	root.SetArgs(args)
	root.SetOut(written)
	root.SetErr(errOut)
	code := 0
	if err := root.Execute(); err != nil && !errors.Is(err, written.err) {
		f := failed(root, err)
		if log := a.jsonLog(); log != nil {
			var hint slog.Attr // the log leaves an empty one out
			if f.hint != "" {
				hint = slog.String("hint", f.hint)
			}
			log.Error(f.Error(), hint)
			code = f.code
		} else {
			code = f.tell(errOut)
		}
	}
	if written.err != nil { // the output is incomplete, whatever the verb's own result is
		code = cannot("", "the output could not be written: %w", written.err).tell(errOut)
	}
	return code
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "solotick",
		Short: "Cron beside every replica, each tick fired by exactly one",
		Long: `Solotick runs beside every replica of a service, reads one YAML cron table, and makes sure that each tick
of each job is fired by exactly one replica.`,
		Example: `  solotick run -c table.yaml
  solotick validate -c table.yaml
  solotick next -c table.yaml -n 3`,
		Version:            buildVersion(),
		SilenceErrors:      true,
		SilenceUsage:       true,
		DisableSuggestions: true, // unknownVerb has its own
	}
	root.PersistentPreRun = func(c *cobra.Command, _ []string) { a.warnOfPassword(c) }
	root.CompletionOptions.DisableDefaultCmd = true // completionCommand replaces it
	root.SetFlagErrorFunc(badFlag)
	root.SetHelpCommand(helpCommand())
	// Each verb has the flags that it uses, and no others.
	root.AddCommand(a.versionCommand(), a.completionCommand(), a.schemaCommand(), a.toyAppCommand(),
		a.tableFlag(a.tryCommand()), a.tableFlag(a.validateCommand()), a.tableFlag(a.nextCommand()),
		a.tableFlag(a.drainCommand()), a.tableFlag(a.claimCommand()), a.tableFlag(a.redisFlag(a.runCommand())),
		a.tableFlag(a.redisFlag(a.backfillCommand())))
	// These work without a table.
	for _, c := range []*cobra.Command{a.statusCommand(), a.whyCommand(), a.historyCommand(), a.eventsCommand(),
		a.triggerCommand(), a.rerunCommand(), a.cancelCommand(), a.pauseCommand(), a.resumeCommand(),
		a.timerCommand(), a.doctorCommand()} {
		c.PersistentFlags().StringVar(&a.service, "service", "",
			"`name` of the service, instead of a table; needs --redis")
		root.AddCommand(a.tableFlag(a.redisFlag(c)))
	}
	completeNoFiles(root)
	return root
}

// completeNoFiles keeps shells from offering files as arguments of a verb that names no completion.
func completeNoFiles(c *cobra.Command) {
	for _, verb := range c.Commands() {
		if completeNoFiles(verb); verb.ValidArgsFunction == nil && verb.ValidArgs == nil {
			verb.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
}

// tableFlag adds -c to a verb that reads the table, and to its own verbs.
func (a *app) tableFlag(c *cobra.Command) *cobra.Command {
	said := "`file` with the table, or a directory of such files"
	if c.Name() != "run" {
		said += "; - is standard input"
	}
	c.PersistentFlags().StringVarP(&a.config, "config", "c",
		cmp.Or(os.Getenv(configVariable), "/etc/solotick/table.yaml"), said+" (env SOLOTICK_CONFIG)")
	return c
}

// replicaFlag adds --replica to a verb that runs jobs.
func (a *app) replicaFlag(c *cobra.Command) {
	c.Flags().StringVar(&a.replica, "replica", os.Getenv(replicaVariable),
		"`name` of this replica (env SOLOTICK_REPLICA, else POD_NAME, else the host name)")
}

// redisFlag adds --redis to a verb that connects to Redis, and to its own verbs.
func (a *app) redisFlag(c *cobra.Command) *cobra.Command {
	c.PersistentFlags().StringVar(&a.redis, "redis", os.Getenv(redisVariable),
		"`URL` of Redis, instead of the table's (env SOLOTICK_REDIS_URL)")
	c.PersistentFlags().Lookup("redis").DefValue = "" // help shows defaults, and this one may hold a password
	return c
}

// helpCommand makes `solotick help VERB`.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Show how a command is used",
		Example: `  solotick help run`,
		RunE: func(c *cobra.Command, args []string) error {
			of, _, err := c.Root().Find(args)
			if err != nil || of == c.Root() && len(args) > 0 {
				return unknownVerb(c.Root(), args[0])
			}
			of.InitDefaultHelpFlag()
			of.InitDefaultVersionFlag()
			return of.Help()
		},
	}
}

// offer lets shells complete the values of a flag. It fails only for a flag that does not exist, which every test would
// show.
func offer(c *cobra.Command, flag string, values ...string) {
	completed := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	if err := c.RegisterFlagCompletionFunc(flag, completed); err != nil {
		panic(err)
	}
}

// logger returns the logger that the flags describe. It writes to standard error.
func (a *app) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil || strings.ContainsAny(a.logLevel, "+-") {
		return nil, usage("--log-level info", "--log-level %q is none of debug, info, warn, error", a.logLevel)
	}
	switch a.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level, ReplaceAttr: secondsInText})), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.err, &slog.HandlerOptions{Level: level, ReplaceAttr: secondsInJSON})), nil
	}
	return nil, usage("--log-format json", "--log-format %q is neither text nor json", a.logFormat)
}

// jsonLog is the log if its lines are JSON: then all that run says is. Otherwise it is nil.
func (a *app) jsonLog() *slog.Logger {
	if log, err := a.logger(); err == nil && a.logFormat == "json" {
		return log
	}
	return nil
}

// secondsInText writes every duration in seconds with the unit: delay=0.0048s, grace=25s. So queries on the log can
// compare them.
func secondsInText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(strconv.FormatFloat(a.Value.Duration().Seconds(), 'f', -1, 64) + "s")
	}
	return a
}

// secondsInJSON writes a duration as a number whose key has the unit: "delaySeconds":0.0048.
func secondsInJSON(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.Float64(a.Key+"Seconds", a.Value.Duration().Seconds())
	}
	return a
}

// outputFlag adds -o to a verb that can print JSON.
func (a *app) outputFlag(c *cobra.Command) *cobra.Command {
	c.Flags().StringVarP(&a.output, "output", "o", "text", "`format` of the output: text or json")
	offer(c, "output", "text", "json")
	checks(c, func() error {
		if a.output != "text" && a.output != "json" {
			return usage("-o json", "--output %q is neither text nor json", a.output)
		}
		return nil
	})
	return c
}

// countFlag adds -n to a verb: how many rows it shows, from 1 to most.
func countFlag(c *cobra.Command, n *int, usual, most int, help string) {
	c.Flags().IntVarP(n, "count", "n", usual, help)
	checks(c, func() error {
		if *n < 1 || *n > most {
			return usage(fmt.Sprintf("-n %d", usual), "--count %d is not between 1 and %d", *n, most)
		}
		return nil
	})
}

// checks has a command check its flags before it runs.
func checks(c *cobra.Command, check func() error) {
	earlier := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if earlier != nil {
			if err := earlier(c, args); err != nil {
				return err
			}
		}
		return check()
	}
}

// stickyWriter is standard output. It keeps the first write error, because most verbs, and help, do not check for one.
type stickyWriter struct {
	io.Writer
	err error
}

func (o *stickyWriter) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	o.err = cmp.Or(o.err, err)
	return n, err
}
