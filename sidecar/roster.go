package sidecar

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// roster is the jobs at work, by name. It is replaced as a whole and never changed.
type roster map[string]*job

// atWork is the table in force and the jobs at work. Reload writes it, with swapping held. All parts read the
// atomic fields.
type atWork struct {
	table    atomic.Pointer[config.Table]
	roster   atomic.Pointer[roster]
	reloaded atomic.Pointer[ReloadState]
	newTable chan struct{} // holds one element when another table is in force than the probe knows
	executor func(config.Job) execute.Executor
	observe  bool // this replica calls no job: see Options

	swapping sync.Mutex // held while jobs are swapped
	cron     cron
}

// job is the job of that name; nil when there is none.
func (a *atWork) job(name string) *job { return (*a.roster.Load())[name] }

// spec is the spec in force of the job of that name; nil if there is none.
func (a *atWork) spec(name string) *spec { return a.job(name).inForce() }

// jobs are the jobs at work.
func (a *atWork) jobs() roster { return *a.roster.Load() }

// ahead is how long before their ticks the jobs are claimed.
func (a *atWork) ahead() time.Duration { return aheadOf(len(a.jobs())) }

// Table is the table in force.
func (a *atWork) Table() *config.Table { return a.table.Load() }

// ReloadState is the result of the last reload, or of the start.
type ReloadState struct {
	At  time.Time // on this machine's clock
	Err error     // why the reload failed, so that the table before stays in force; nil = it did not fail
}

// LastReload returns the result of the last Reload.
func (a *atWork) LastReload() ReloadState { return *a.reloaded.Load() }

// newSpec makes a spec of a row of the table. The row must not change.
func (a *atWork) newSpec(c *config.Job) *spec {
	sp := &spec{Job: c, label: c.Name, series: newSeries(c), life: context.Background()}
	switch {
	case a.observe || c.Observe:
		sp.executor, sp.observed = execute.Observer{}, true
	case c.Claim != nil: // the app that asks executes it
	case service.IsTimer(c.Name):
		sp.executor = admitted{a.executor(*c), c, a.Table}
	default:
		sp.executor = a.executor(*c)
	}
	if !service.IsTimer(c.Name) { // whose spec is never replaced
		sp.life, sp.end = context.WithCancel(sp.life)
	}
	return sp
}

// admitted executes a timer. At each attempt it asks the table in force whether the call is allowed.
// The API has asked a table too, but perhaps another one, and a client that writes to Redis directly asks none.
type admitted struct {
	execute.Executor
	job   *config.Job
	table func() *config.Table
}

func (a admitted) Execute(ctx context.Context, r execute.Run) execute.Result {
	if p := a.table().Admits(a.job); p != nil {
		return execute.Result{Status: execute.Failed, Err: errors.New("not sent: " + p.Message), Code: -1}
	}
	return a.Executor.Execute(ctx, r)
}
