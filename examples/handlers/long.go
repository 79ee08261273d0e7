package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
)

// Long is a handler for a job with http.async, whose work lasts for longer than a request. It answers 202, tells the
// replica by heartbeats that the work goes on, and reports its end. Calls of jobs without http.async are answered when
// the work is done. Copy this file into your app together with middleware.go, and put the middleware before it: Long
// sends requests to the address that a call names.
type Long struct {
	// Work does the work. When ctx ends, it must stop at once and return. An error says in one line why the work
	// failed.
	Work func(ctx context.Context, r *http.Request) error

	working sync.WaitGroup
}

var (
	errStopped = errors.New("stopped") // the work had to end
	errSilent  = errors.New("no heartbeat was answered in time")
	reporter   = &http.Client{Transport: &http.Transport{}} // without a proxy
)

// Wait waits until all work under way has been reported. Call it when the app ends, after the Shutdown of its server.
func (l *Long) Wait() { l.working.Wait() }

// ServeHTTP implements http.Handler.
func (l *Long) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := call{url: r.Header.Get("Solotick-Callback"), token: r.Header.Get("Solotick-Callback-Token")}
	if c.url == "" {
		if err := l.Work(r.Context(), r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
		return
	}
	seconds, err := strconv.ParseFloat(r.Header.Get("Solotick-Heartbeat"), 64)
	body, broken := io.ReadAll(r.Body) // which is closed when the call is answered
	if err != nil || broken != nil || seconds <= 0 {
		http.Error(w, "this is no call of Solotick", http.StatusBadRequest)
		return
	}
	c.heartbeat = time.Duration(seconds * float64(time.Second))
	end := Later(r)
	l.working.Go(func() {
		err := c.work(context.WithoutCancel(r.Context()), func(ctx context.Context) error {
			r := r.WithContext(ctx)
			r.Body = io.NopCloser(bytes.NewReader(body))
			return l.Work(ctx, r)
		})
		// no success is told that a repeat would not be told, too
		if lost := end(err == nil); lost != nil && err == nil {
			err = fmt.Errorf("the store of keys does not answer: %w", lost)
		}
		c.finish(err)
	})
	w.WriteHeader(http.StatusAccepted)
}

// call is a call that was answered by 202.
type call struct {
	url, token string
	// how long a heartbeat that was answered with 200 lets the app work, counted from its sending
	heartbeat time.Duration
}

// work does the work once the first heartbeat is answered. Its ctx ends when it may not go on.
func (c *call) work(ctx context.Context, work func(context.Context) error) (err error) {
	ctx, stop := context.WithCancelCause(ctx)
	// A timer of its own: a heartbeat may hang. A tenth of the time is for the work to stop.
	leave := time.AfterFunc(c.heartbeat*9/10, func() { stop(errSilent) })
	allowed := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() { c.beat(ctx, stop, leave, sync.OnceFunc(func() { close(allowed) })) })
	defer beating.Wait()
	defer leave.Stop()
	defer stop(nil)
	defer func() {
		if p := recover(); p != nil {
			log.Printf("panic: %v\n%s", p, debug.Stack())
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	select {
	case <-allowed:
	case <-ctx.Done():
	}
	if err = ctx.Err(); err == nil {
		err = work(ctx) // nil = it is done, even if ctx has ended meanwhile
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", errStopped, context.Cause(ctx))
	}
	return err
}

// beat sends heartbeats until ctx ends.
func (c *call) beat(ctx context.Context, stop context.CancelCauseFunc, leave *time.Timer, allowed func()) {
	for wait := time.Duration(0); pause(ctx, wait); {
		sent := time.Now()
		switch status, answer := c.post(ctx, "/heartbeat", nil); {
		case status == http.StatusOK:
			leave.Reset(time.Until(sent.Add(c.heartbeat * 9 / 10)))
			allowed()
			wait = c.heartbeat / 3
		case status != 0 && status < http.StatusInternalServerError:
			stop(fmt.Errorf("a heartbeat was answered %d %s", status, answer))
		default: // no answer, or the replica is not sure of its lock: ask again, within the time
			wait = min(c.heartbeat/3, time.Second)
		}
	}
}

// finish reports the end of the work, again if no answer comes.
func (c *call) finish(err error) {
	report := map[string]string{"outcome": "succeeded"}
	if err != nil {
		report = map[string]string{"outcome": "failed", "detail": fmt.Sprintf("%.1000s", err)}
	}
	if errors.Is(err, errStopped) {
		report["outcome"] = "interrupted" // so at-least-once runs the tick again
	}
	body, _ := json.Marshal(report)
	for range 5 {
		if status, _ := c.post(context.Background(), "/finish", body); status != 0 &&
			status < http.StatusInternalServerError {
			return
		}
		time.Sleep(min(c.heartbeat/6, time.Second))
	}
}

// post returns the status and text of an answer; 0 if none came in a third of a heartbeat.
func (c *call) post(ctx context.Context, path string, body []byte) (int, string) {
	ctx, cancel := context.WithTimeout(ctx, c.heartbeat/3)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(body))
	if err != nil {
		return http.StatusBadRequest, err.Error() // the call names no address
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := reporter.Do(r)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
	return answer.StatusCode, string(bytes.TrimSpace(text))
}

// pause waits; false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
