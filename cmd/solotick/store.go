package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/diagnosis"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// operateLimit is how long a request whose answer was lost is asked for again.
const operateLimit = 10 * time.Second

// desk is where an operator looks and acts: the table and the service's Redis, with no replica of its own.
type desk struct {
	*service.Operator
	close func()
}

// newDesk makes a desk; closes is called when the work at it is done.
func newDesk(s *service.Store, t *config.Table, closes func()) *desk {
	return &desk{&service.Operator{Store: s, Table: func() *config.Table { return t }, Limit: operateLimit}, closes}
}

// desk opens the Redis of the table or the flag, and asks it for its time: what cannot be reached at all is told at once.
func (a *app) desk(ctx context.Context) (*desk, error) {
	log, err := a.logger()
	if err != nil {
		return nil, err
	}
	t, err := a.meeting()
	if err != nil {
		return nil, err
	}
	address, err := a.redisURL(t)
	if err != nil {
		return nil, err
	}
	client, err := connect(t.Redis, address)
	if err != nil {
		return nil, err
	}
	redis.SetLogger(redisLog{log})
	store, err := service.New(client, t.Service, lock.Options{Timeout: t.Redis.Timeout, WaitReplicas: t.Redis.WaitReplicas})
	if err != nil {
		_ = client.Close()
		return nil, cannot(err)
	}
	d := newDesk(store, t, func() { _ = client.Close() })
	if err := store.Sync(ctx); err != nil {
		d.close()
		return nil, unreachable(where(t.Redis, address), err)
	}
	return d, nil
}

// at opens a desk, works at it until it is done or a signal comes, and closes it.
func (a *app) at(work func(context.Context, *desk) error) error {
	ctx, stop := interruptible()
	defer stop()
	d, err := a.desk(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	return work(ctx, d)
}

// now is Redis' time; that it is known the desk has seen to.
func (d *desk) now() time.Time {
	now, _ := d.Now()
	return now
}

// fromRedis is an error with words of Redis in it, which are not to move the cursor of a terminal, nor to add lines.
type fromRedis struct{ error }

func (e fromRedis) Error() string { return text.OneLine(e.error.Error()) }
func (e fromRedis) Unwrap() error { return e.error }

// ways has the exit code and the hint for each kind of refusal; {} stands for the job or timer. The other kinds come from
// Redis alone: the exit code is exitCannot, and Redis' error tells the hint.
var ways = map[service.Kind]struct {
	code int
	hint string
}{
	service.Invalid:      {exitUsage, ""},
	service.NoReason:     {exitUsage, `--reason "database migration"`},
	service.Future:       {exitUsage, "solotick trigger {} runs the job now"},
	service.NoJob:        {exitUsage, "solotick status shows all jobs"},
	service.EveryReplica: {exitUsage, ""},
	service.NotAdmitted:  {exitProblem, ""},
	service.InTable:      {exitProblem, ""},
	service.Fired:        {exitProblem, ""},
	service.NotMade:      {exitProblem, "solotick job list"},
	service.NoTimer:      {exitProblem, "solotick history " + service.TimerJob("{}") + " shows whether it has fired"},
	service.Partial:      {exitCannot, "name the jobs, or give the table with -c"},
	service.Unregistered: {exitCannot, "a replica registers its jobs when it starts: solotick status shows which replicas there are"},
	service.Unanswered:   {exitCannot, "it may have been done or not: solotick status shows it"},
}

// cannot is the failure of a request that is refused, or that Redis could not fulfil.
func cannot(err error) *failure {
	r := service.Of(err)
	f := &failure{code: exitCannot, err: r}
	if r.Err != nil {
		f.err = fromRedis{r}
	}
	if way, ok := ways[r.Kind]; ok {
		f.code, f.hint = way.code, cmp.Or(r.Hint, strings.ReplaceAll(way.hint, "{}", r.Subject))
	} else {
		f.hint = diagnosis.Of(r.Err).Hint
	}
	return f
}

// pick returns the names given, each once, or, with all, those of all jobs.
func (d *desk) pick(ctx context.Context, c *cobra.Command, names []string, all bool) ([]string, error) {
	if all == (len(names) > 0) {
		return nil, &failure{code: exitUsage, err: fmt.Errorf("%s takes the names of jobs or --all", c.Name()), hint: c.CommandPath() + " --help"}
	}
	return d.Pick(ctx, names...)
}

// oneJob asks for exactly one name.
func oneJob(c *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return &failure{code: exitUsage, err: fmt.Errorf("%s takes the name of one job", c.Name()), hint: c.CommandPath() + " --help"}
}

// instant reads the value of a flag that is a time.
func instant(flag, value string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, &failure{code: exitUsage, err: fmt.Errorf("--%s %q is not a time as in RFC 3339", flag, value),
			hint: fmt.Sprintf("--%s %s", flag, time.Now().UTC().Format(time.RFC3339))}
	}
	return t, nil
}

// interruptible ends with the first SIGINT or SIGTERM; the second one ends the process.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
