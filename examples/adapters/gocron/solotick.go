// Package solotick is for gocron v2: each tick of a job runs in one copy of the app alone. Copy this file into your
// app.
//
//	scheduler, err := gocron.NewScheduler(solotick.New("").Options()...)
//
// gocron asks a Locker before it runs a job. This one passes the question on to the replica beside the app: it claims a
// tick. If the answer is not 200, the job does not run here. After the claim come heartbeats. The job begins when the
// first one is answered with 200, so a claim whose answer was lost is never begun. Each 200 lets the job go on for the
// time of a heartbeat, counted from when it was sent.
//
// gocron tells a Locker the name of the job, and nothing else:
//
//   - It does not know which tick gocron runs. So it claims the tick next to the present instant. The ticks of the job
//     must be further apart than twice the error of the machine's clock, or they are taken for one another. Each still
//     runs once at most.
//   - It cannot end the context that gocron gives to the job. A job asks for a context that ends when it must stop:
//     Claimed(name).Context.
//   - It is not told whether the job failed. The scheduler's MonitorStatus is, and so Options makes the Locker one as
//     well. A job that panics is reported as failed.
//
// gocron schedules the next run of a job only when the claim is answered, which may take a minute.
package solotick

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
)

// Locker is a gocron.Locker and a gocron.MonitorStatus.
type Locker struct {
	api  string
	runs sync.Map // name of the job: *run
}

// New takes the URL of the replica's API; "" = http://127.0.0.1:9748.
func New(api string) *Locker { return &Locker{api: cmp.Or(api, "http://127.0.0.1:9748")} }

// Options are for gocron.NewScheduler.
func (l *Locker) Options() []gocron.SchedulerOption {
	return []gocron.SchedulerOption{gocron.WithDistributedLocker(l), gocron.WithMonitorStatus(l)}
}

// Claim is a tick that was claimed.
type Claim struct {
	Tick         time.Time
	Since        time.Time // the tick that succeeded last; zero if none is known
	Run          string    // UUID of the run
	FencingToken int64
	Context      context.Context `json:"-"` // ends when the job must stop at once
}

// Claimed returns the claim of a job that is under way, for the job itself.
func (l *Locker) Claimed(job string) *Claim {
	if r, ok := l.runs.Load(job); ok {
		return &r.(*run).Claim
	}
	return nil
}

// run is a gocron.Lock.
type run struct {
	Claim
	Token       string
	HeartbeatMs int64

	url     string
	stop    context.CancelCauseFunc // ends the job
	over    context.CancelFunc      // ends the heartbeats
	beating sync.WaitGroup
	unlock  func() // from the Locker's list
	err     error  // how the job ended
}

var errNoEnd = errors.New("the job panicked, or gocron did not call it")

// Lock implements gocron.Locker.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	claim := l.api + "/v1/jobs/" + url.PathEscape(job) + "/ticks/now"
	status, text := post(ctx, 70*time.Second, claim, "", map[string]string{}) // the answer may be held back for 60 s
	if status != http.StatusOK {
		return nil, fmt.Errorf("%s does not run here: its claim was answered %d %s", job, status, text)
	}
	r := &run{err: errNoEnd}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s does not run here: its claim: %w", job, err)
	}
	r.url = l.api + "/v1/runs/" + r.Run
	r.Context, r.stop = context.WithCancelCause(ctx)
	beats, over := context.WithCancel(context.WithoutCancel(ctx)) // they go on until the job has ended
	r.over = over
	begin := make(chan struct{})
	r.beating.Go(func() { r.beat(beats, sync.OnceFunc(func() { close(begin) })) })
	select {
	case <-begin:
	case <-r.Context.Done():
	}
	if err := context.Cause(r.Context); err != nil {
		r.finish(ctx)
		return nil, fmt.Errorf("%s does not run here: %w", job, err)
	}
	l.runs.Store(job, r)
	r.unlock = func() { l.runs.CompareAndDelete(job, r) }
	return r, nil
}

// RecordJobTimingWithStatus implements gocron.MonitorStatus: gocron calls it when the job has returned, before Unlock.
func (l *Locker) RecordJobTimingWithStatus(_, _ time.Time, _ uuid.UUID, job string, _ []string, _ gocron.JobStatus,
	err error) {
	if r, ok := l.runs.Load(job); ok {
		r.(*run).err = err
	}
}

// IncrementJob and RecordJobTiming are there because gocron.MonitorStatus has them.
func (*Locker) IncrementJob(uuid.UUID, string, []string, gocron.JobStatus)        {}
func (*Locker) RecordJobTiming(time.Time, time.Time, uuid.UUID, string, []string) {}

// Unlock implements gocron.Lock.
func (r *run) Unlock(ctx context.Context) error {
	r.unlock()
	r.finish(ctx)
	return nil
}

// beat sends heartbeats until ctx ends, or the job must stop.
func (r *run) beat(ctx context.Context, begin func()) {
	heartbeat := time.Duration(r.HeartbeatMs) * time.Millisecond
	leave := time.AfterFunc(heartbeat, func() { r.stop(errors.New("no heartbeat was answered in time")) })
	defer leave.Stop()
	for wait := time.Duration(0); pause(ctx, wait); {
		sent := time.Now()
		switch status, text := post(ctx, heartbeat/3, r.url+"/heartbeat", r.Token, map[string]string{}); {
		case status == http.StatusOK:
			leave.Reset(time.Until(sent.Add(heartbeat * 9 / 10))) // a tenth of the time is for the job to stop
			begin()
			wait = time.Until(sent.Add(heartbeat / 3))
		case status != 0 && status < http.StatusInternalServerError:
			r.stop(fmt.Errorf("a heartbeat was answered %d %s", status, text))
			return
		default: // no answer, or the replica is not sure of its lock: ask again, within the time
			wait = min(heartbeat/3, time.Second)
		}
	}
}

// finish ends the heartbeats and reports the end of the job, again for a while if no answer comes.
func (r *run) finish(ctx context.Context) {
	stopped := context.Cause(r.Context)
	r.over()
	r.beating.Wait()
	r.stop(nil)
	report := map[string]string{"outcome": "succeeded"}
	switch {
	case r.err != nil && stopped != nil:
		report = map[string]string{"outcome": "interrupted", "detail": stopped.Error()}
	case r.err != nil:
		report = map[string]string{"outcome": "failed", "detail": fmt.Sprintf("%.300s", r.err)}
	}
	limit := max(5*time.Second, time.Duration(r.HeartbeatMs)*time.Millisecond)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	for again := true; again && ctx.Err() == nil; again = again && pause(ctx, 500*time.Millisecond) {
		status, _ := post(ctx, 2*time.Second, r.url+"/finish", r.Token, report)
		again = status == 0 || status >= http.StatusInternalServerError
	}
}

// direct uses no proxy, and a connection for each request: one that is used again may end under it.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// post returns the status and text of an answer; the status is 0 if none came in time.
func post(ctx context.Context, limit time.Duration, url, token string, body map[string]string) (int, []byte) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	text, _ := json.Marshal(body)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return 0, []byte(err.Error())
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := direct.Do(r)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if err != nil {
		return 0, []byte(err.Error())
	}
	return answer.StatusCode, bytes.TrimSpace(text)
}

// pause waits; false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
