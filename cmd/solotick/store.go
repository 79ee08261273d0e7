package main

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/diagnosis"
	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/service"
)

// operateLimit is how long a request whose answer was lost is repeated.
const operateLimit = 10 * time.Second

// operator reads and changes a service for a command: it has the table and the service's Redis, and is no replica.
type operator struct {
	*service.Operator
	at    string // the place of Redis in words
	close func()
}

// newOperator makes an operator for the Redis of the table or the flag, and sends nothing yet. Its requests have the
// author of the flags.
func (a *app) newOperator(ctx context.Context) (*operator, error) {
	log, err := a.logger()
	if err != nil {
		return nil, err
	}
	t, err := a.serviceTable()
	if err != nil {
		return nil, err
	}
	address, err := a.redisURL(t)
	if err != nil {
		return nil, err
	}
	o := a.operate
	o.Timeout, o.WaitReplicas, o.History = max(t.Redis.Timeout, o.Timeout), t.Redis.WaitReplicas, t.Redis.History
	t.Redis.Timeout = o.Timeout
	nowhere := slog.New(slog.DiscardHandler) // the error of the request says why
	client, err := connect(ctx, t.Redis, address, rds.PasswordLimit, nowhere)
	if err != nil {
		return nil, err
	}
	redis.SetLogger(redisLog{log})
	store, err := service.New(client, t.Service, o)
	if err != nil {
		_ = client.Close()
		return nil, operatorFailure(err)
	}
	table := func() *config.Table { return t }
	requests := &service.Operator{Store: store.As(a.author), Table: table, Limit: operateLimit}
	return &operator{requests, where(t.Redis, address), func() { _ = client.Close() }}, nil
}

// withUnasked calls work with an operator and a context that ends at a signal, and then closes the operator.
func (a *app) withUnasked(work func(context.Context, *operator) error) error {
	ctx, stop := interruptible()
	defer stop()
	op, err := a.newOperator(ctx)
	if err != nil {
		return err
	}
	defer op.close()
	return work(ctx, op)
}

// withOperator is withUnasked for work that needs Redis. It first asks Redis for its time: so a Redis that cannot be
// reached is reported at once.
func (a *app) withOperator(work func(context.Context, *operator) error) error {
	return a.withUnasked(func(ctx context.Context, op *operator) error {
		if err := op.Store.Sync(ctx); err != nil {
			d := diagnosis.Of(err)
			return cannot(d.Hint, "Redis (%s) %s: %s", op.at, d.Says, d.Reason)
		}
		return work(ctx, op)
	})
}

// onRedis makes the RunE of a command that works with Redis.
func (a *app) onRedis(work func(context.Context, *operator, []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		return a.withOperator(func(ctx context.Context, op *operator) error { return work(ctx, op, args) })
	}
}

// onJobs makes the RunE of a command for the given jobs, each once, or for all jobs with --all.
func (a *app) onJobs(work func(context.Context, *operator, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, names []string) error {
		if a.all {
			a.author.All = uuid.NewString()
		}
		return a.withOperator(func(ctx context.Context, op *operator) error {
			if a.all == (len(names) > 0) {
				return usage(c.CommandPath()+" --help", "%s takes the names of jobs or --all", c.Name())
			}
			jobs, err := op.Pick(ctx, names...)
			if err != nil {
				return err
			}
			return work(ctx, op, jobs)
		})
	}
}

// now returns Redis' time; withOperator has synced, so it is always known.
func (op *operator) now() time.Time {
	now, _ := op.Now()
	return now
}

// fromRedis is an error that may quote Redis. Error removes control characters and line breaks.
type fromRedis struct{ error }

func (e fromRedis) Error() string { return text.OneLine(e.error.Error()) }
func (e fromRedis) Unwrap() error { return e.error }

// remedies has the exit code and the hint for each kind of refusal; {} stands for the job or timer. Other kinds are
// errors of Redis: their exit code is exitCannot, and package diagnosis knows their hint.
var remedies = map[service.Kind]struct {
	code int
	hint string
}{
	service.Invalid:      {exitUsage, ""},
	service.NoReason:     {exitUsage, `--reason "database migration"`},
	service.Future:       {exitUsage, "solotick trigger {} runs the job now"},
	service.NoRun:        {exitProblem, "solotick history {} shows how its runs ended"},
	service.NoFailure:    {exitProblem, "solotick rerun {} --tick TIME runs a given tick again"},
	service.NoJob:        {exitUsage, "solotick status shows all jobs"},
	service.EveryReplica: {exitUsage, ""},
	service.OtherWay:     {exitUsage, "the app asks for its ticks"},
	service.NotAdmitted:  {exitProblem, ""},
	service.Taken:        {exitProblem, ""},
	service.NoTimer:      {exitProblem, "solotick history " + service.TimerJob("{}") + " shows whether it has fired"},
	service.Partial:      {exitCannot, "name the jobs, or give the table with -c"},
	service.Unregistered: {exitCannot, "a replica registers its jobs as it starts: solotick status shows the replicas"},
	service.Unanswered:   {exitCannot, "it may have been done or not: check with solotick status"},
}

// operatorFailure is the failure of an operator's request: it was refused, or Redis failed.
func operatorFailure(err error) *failure {
	r := service.RefusalOf(err)
	f := &failure{code: exitCannot, err: r}
	if r.Err != nil {
		f.err = fromRedis{r}
	}
	if remedy, ok := remedies[r.Kind]; ok {
		f.code, f.hint = remedy.code, cmp.Or(r.Hint, strings.ReplaceAll(remedy.hint, "{}", r.Subject))
	} else {
		f.hint = diagnosis.Of(r.Err).Hint
	}
	return f
}

// ofOneJob accepts so many arguments, the first of which is the name of a job.
func ofOneJob(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usage(c.CommandPath()+" --help", "%s takes the name of one job", c.Name())
		}
		return nil
	}
}

// interruptible returns a context that ends at the first SIGINT or SIGTERM. The second signal ends the process.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
