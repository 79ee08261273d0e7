package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/execute/command"
)

// executor is a job in the world: it takes fake time, and ends as the dice say.
type executor struct {
	replica *replica
	job     *Job
}

// run is one attempt that was started.
type run struct {
	execute.Run
	replica *replica
	start   time.Duration
	over    time.Duration // when its context ended, or it did; 0: not yet
	cause   error         // why its context ended before it did
	gone    time.Duration // when its work ended, or was killed; 0: not yet
	end     time.Duration // when its replica was told; 0: never, as its replica died
	status  execute.Status
	code    int // of its result

	reported bool // by its app
	asked    bool // it was given to an app that had asked
	lease    bool // and the job is a lease
	stands   bool // and its replica stood still

	accepted time.Duration // when its replica knew that the app ends it by a report; 0: never
}

var errRefused = errors.New("connection refused")

// Execute does what the job's nature says for this tick.
func (e *executor) Execute(ctx context.Context, r execute.Run) execute.Result {
	p := e.replica
	p.stall.wait()
	dice := func(what uint64) []uint64 {
		return []uint64{what, text(r.Job), uint64(r.Tick.UnixMilli()), p.key, uint64(r.Attempt), text(r.Kind)}
	}
	if now := p.world.now(); p.dice.chance(e.job.Refuses, dice(forStart)...) ||
		isDown(p.world.plan.AppsDown, p.place, now, now) {
		p.world.refuses(r, now)
		return execute.Result{Status: execute.NotStarted, Err: errRefused, Code: -1}
	}
	// A stalled process gets no further than here: what it found on a clock that stood is asked again when it goes on.
	for again := r.Await != nil; again && ctx.Err() == nil; {
		r.Await(ctx)
		again = p.stall.wait()
	}
	if ctx.Err() != nil || p.isDead() {
		return canceled(ctx)
	}
	r.Started()
	if p.isDead() {
		return canceled(ctx)
	}
	p.works(1)
	defer p.works(-1)
	n := p.world.started(p, r)
	var res execute.Result
	if e.job.Async != nil {
		res = e.accept(ctx, n, r)
	} else {
		d := p.dice.between(e.job.Takes[0], e.job.Takes[1]+1, forWork, text(r.Job), uint64(r.Tick.UnixMilli()))
		res = e.work(ctx, n, r, d)
	}
	p.stall.wait()
	p.world.ended(n, res)
	return res
}

// work lasts for d, and ends before when the context does, unless the job does not care.
func (e *executor) work(ctx context.Context, n int, r execute.Run, d time.Duration) execute.Result {
	p := e.replica
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return e.result(r.Kind)
	case <-p.ended:
		return canceled(ctx)
	case <-ctx.Done():
	}
	p.stall.wait()
	p.world.canceled(n, context.Cause(ctx))
	if e.job.Ignores {
		e.kill(r, t.C)
	}
	return canceled(ctx)
}

// kill waits until a command that ignores its end has ended, or is killed: when the grace is over, which the real
// executor tells.
func (e *executor) kill(r execute.Run, over <-chan time.Time) {
	for told := time.Now(); ; {
		left := command.Options{}.Grace(r) - time.Since(told)
		if left <= 0 {
			return
		}
		select {
		case <-over:
			return
		case <-e.replica.ended:
			return
		case <-time.After(min(left, 200*time.Millisecond)):
			e.replica.stall.wait()
		}
	}
}

// failsAlone is how a job ends that fails, and succeeds if somebody has it run again.
const failsAlone = "fails unless it is run again"

func (e *executor) result(kind string) execute.Result {
	switch ends := e.job.Ends; {
	case ends == "fails", ends == failsAlone && kind != "backfill":
		return execute.Result{Status: execute.Failed, Err: errors.New("answered 500"), Code: 500}
	case ends == "declines":
		return execute.Result{Status: execute.Declined, Err: errors.New("answered 409"), Code: 409}
	}
	return execute.Result{Status: execute.Succeeded, Code: 200}
}

func canceled(ctx context.Context) execute.Result {
	return execute.Result{Status: execute.Canceled, Err: fmt.Errorf("calling: %w", context.Cause(ctx)), Code: -1}
}
