package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/execute"
)

// asyncRuns is the class of seeds in which apps end runs by reports.
const asyncRuns = "async"

// async: apps accept runs, and end them by reports. Their replicas crash, stand still, are cut off, drain and are
// restarted in place meanwhile, and runs are cancelled and replaced.
func (p *Plan) async(r *rand.Rand) {
	p.willing(r)
	p.Faults, p.Orders = nil, nil
	p.MaxRunning = pick(r, 0, 0, 0, 1, 2)
	for i := range p.Jobs {
		if j := &p.Jobs[i]; i == 0 || r.IntN(3) > 0 { // the others are as ever
			j.reports(r)
		}
		p.Jobs[i].Priority = pick(r, 0, 0, 5)
	}
	kinds := []string{"crash", "crash", crashInPlace, crashInPlace, crashInPlace,
		"stall", "stall", "cut", "cut", "cut", "void", "lossy", "late", "stop", "drain", "redis refuses", "redis void",
		"redis lossy", "redis restarts", redisStalls}
	for at := 8 * time.Second; at < 34*time.Second; at += 3*time.Second + upTo(r, 9*time.Second) {
		f := Fault{At: at, Kind: pick(r, kinds...), Replica: -1, For: 500*time.Millisecond + upTo(r, 8*time.Second)}
		switch {
		case f.Kind == crashInPlace:
			f.For = 50*time.Millisecond + upTo(r, time.Second)
		case (f.Kind == "cut" || f.Kind == "void" || f.Kind == "stall") && r.IntN(3) > 0: // for longer than a lease
			f.For = p.ttlOfAsync() + upTo(r, 4*time.Second)
		}
		p.Faults = append(p.Faults, f)
	}
	for range pick(r, 0, 1, 3) {
		p.Orders = append(p.Orders, Order{At: 8*time.Second + upTo(r, 25*time.Second),
			Kind: pick(r, "cancel", "cancel", "trigger"), Job: p.Jobs[0].Name})
	}
	p.Lasts += 8 * time.Second
}

// reports makes a job such that its app ends its runs by reports.
func (j *Job) reports(r *rand.Rand) {
	beat := time.Duration(pick(r, 1000, 1000, 1500, 2000, 3000, 4000)) * time.Millisecond
	j.Async = &config.Async{Heartbeat: beat, Timeout: time.Duration(pick(r, 3, 6, 30, 30)) * time.Second}
	j.Period = time.Duration(pick(r, 2, 3, 5, 7)) * time.Second
	j.TTL = 2*beat + time.Duration(pick(r, 2, 2, 3, 5))*time.Second
	j.Policy, j.Limit = pick(r, "Forbid", "Forbid", "Queue", "Replace", "Allow"), 0
	if j.Policy == "Allow" {
		j.Limit = pick(r, 0, 1, 2, 2)
	}
	j.Guarantee = pick(r, "at-most-once", "at-least-once", "at-least-once")
	j.Timeout, j.Deadline, j.Jitter = time.Duration(pick(r, 2, 3, 5))*time.Second, 0, min(j.Jitter, j.Period/4)
	j.Takes = pick(r, [2]time.Duration{0, beat}, [2]time.Duration{beat, 4 * beat},
		[2]time.Duration{j.Period / 2, 2 * j.Period})
	j.Ends = pick(r, "", "", "", "fails")
	j.Retries = pick(r, 0, 0, 1, 2)
}

// does is the key of a job's row that says what is run.
func (j *Job) does() string {
	switch {
	case j.Async == nil:
		return "exec: {command: [x]}"
	case j.isLease() && j.Async.Timeout > time.Hour: // and none is written
		return fmt.Sprintf("claim: {heartbeat: %s}", j.Async.Heartbeat)
	case j.Asks:
		return fmt.Sprintf("claim: {timeout: %s, heartbeat: %s}", j.Async.Timeout, j.Async.Heartbeat)
	}
	return fmt.Sprintf("http: {url: \"http://127.0.0.1:1/\", async: {timeout: %s, heartbeat: %s}}",
		j.Async.Timeout, j.Async.Heartbeat)
}

// ttlOfAsync is the longest lease of a job whose app ends its runs by reports.
func (p *Plan) ttlOfAsync() (longest time.Duration) {
	for _, j := range p.Jobs {
		if j.Async != nil {
			longest = max(longest, j.TTL)
		}
	}
	return longest
}

// isAsync reports whether the app of a job ends its runs by reports.
func (p *Plan) isAsync(job string) bool { return p.job(job).Async != nil }

// accept makes an attempt of a run that the app may end by itself. The replica's own code decides about it.
func (e *executor) accept(ctx context.Context, n int, r execute.Run) execute.Result {
	p := e.replica
	defer context.AfterFunc(ctx, func() {
		p.stall.wait()
		p.world.canceled(n, context.Cause(ctx))
	})()
	accepted := r.Accepted
	r.Accepted = func(limit time.Duration) {
		p.world.accepted(n)
		accepted(limit)
	}
	done := make(chan execute.Result, 1)
	go func() {
		done <- p.callbacks.Execute(ctx, r, e.job.Async, func(c *callback.Call) (execute.Result, bool) {
			res := e.call(ctx, n, r, c)
			p.stall.wait()
			return res, false
		})
	}()
	select {
	case res := <-done:
		return res
	case <-p.ended: // what is left of it reaches no one
		return canceled(ctx)
	}
}

// call carries a request to the app, and its answer back.
func (e *executor) call(ctx context.Context, n int, r execute.Run, c *callback.Call) execute.Result {
	answers := make(chan int, 1)
	a := newWorker(e.replica, e.job, n, r, c.Token())
	a.world.crew.Go(func() { a.serve(answers) })
	select {
	case code := <-answers:
		return answered(code)
	case <-ctx.Done():
		return execute.Result{Status: execute.Canceled, Code: -1, Err: fmt.Errorf("calling: %w", context.Cause(ctx))}
	case <-e.replica.ended:
		return canceled(ctx)
	}
}

var errBroken = errors.New("the connection broke: it may have started")

// answered is the result of a call by the code of its answer; -1: the connection broke.
func answered(code int) execute.Result {
	switch {
	case code < 0:
		return execute.Result{Status: execute.Failed, Code: -1, Err: errBroken}
	case code < 300:
		return execute.Result{Status: execute.Succeeded, Code: code}
	}
	return execute.Result{Status: execute.Failed, Code: code, Err: fmt.Errorf("answered %d", code)}
}

// accepted records that the replica of a run knows that the app has accepted it.
func (w *world) accepted(n int) {
	w.mu.Lock()
	r := w.runs[n]
	if !r.replica.isDead() {
		r.accepted = w.now()
	}
	w.mu.Unlock()
	w.note(r.replica, "ACCEPTED", r.Job, stamp(r.Tick), r.ID, "")
}
