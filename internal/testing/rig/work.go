package rig

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Work is what the app did for a call that it had accepted by 202. It does nothing outside [Began, Ended), and never
// works past Until.
type Work struct {
	Began     time.Time // when the first heartbeat was answered by 200; zero = none was, and the app did nothing
	Heartbeat time.Duration
	Until     time.Time     // the app might work until then: a heartbeat after it sent the last one with the answer 200
	Ended     time.Time     // zero while it works
	Late      time.Duration // the longest time by which a busy machine woke the app up too late: it stood still
	Stop      int           // the answer that ended the work early; 0 = none did
	Why       string        // the text of that answer
	Report    string        // the outcome that the app reported last; "" = none
	Answer    int           // to the report; 0 = there was none
	Died      time.Time     // the app sent nothing from then on, as it was to be; it might work on until Until
}

// end is when the work ended. An app that looks at its clock before each step takes none after Until, however late it
// is woken up.
func (w *Work) end(now time.Time) time.Time {
	if now.After(w.Until) {
		return w.Until
	}
	return now
}

// again is how long the app waits before it repeats what had no answer.
const again = 50 * time.Millisecond

// client reports to the replica that made a call.
type client struct {
	http      *http.Client
	url       string // to which /heartbeat or /finish is added
	token     string
	heartbeat time.Duration
}

// client reads how the work of a call is reported.
func (d *Door) client(q *Request, h http.Header) (*client, error) {
	c := &client{url: h.Get("Solotick-Callback"), token: h.Get("Solotick-Callback-Token")}
	if !strings.HasSuffix(c.url, "/"+q.Run) || c.token == "" {
		return nil, fmt.Errorf("request for %q, run %s: the app cannot report it to %q with the token %q",
			q.Job, q.Run, c.url, c.token)
	}
	seconds, err := strconv.ParseFloat(h.Get("Solotick-Heartbeat"), 64)
	if err != nil || seconds <= 0 {
		return nil, fmt.Errorf("request for %q: a heartbeat of %q seconds", q.Job, h.Get("Solotick-Heartbeat"))
	}
	c.heartbeat = time.Duration(seconds * float64(time.Second))
	q.Callback, q.Secret = c.url, c.token
	c.http = &http.Client{Transport: &http.Transport{DialContext: d.Reach}}
	return c, nil
}

// post sends a heartbeat or a report. The answer is 0 if none came by then.
func (c *client) post(ctx context.Context, by time.Time, what, body string) (answer int, text string) {
	ctx, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+what, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	got, err := c.http.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer got.Body.Close()
	all, _ := io.ReadAll(io.LimitReader(got.Body, 1<<12))
	return got.StatusCode, string(all)
}

// work does what a call asked for, and reports it. It works only while it may.
func (a *App) work(c *client, at int, arrived time.Time, p Plan) {
	defer c.http.CloseIdleConnections()
	w := Work{Heartbeat: c.heartbeat}
	note := func() { a.note(at, arrived, func(q *Request) { q.Work = w }) }
	done, fail := p.Dies && p.Take == 0 || a.beat(c, &w, arrived, p.Take, note), p.Fail
	if done && p.Dies {
		w.Died = time.Now()
		ended := w.Died
		if w.Until.After(ended) {
			ended = w.Until
		}
		a.note(at, arrived, func(q *Request) { q.Work, q.Ended, q.Left = w, ended, true })
		return
	}
	w.Ended = w.end(time.Now())
	note()
	ended := w.Ended
	if w.Began.IsZero() {
		w.Ended, ended = time.Time{}, time.Now()
	}
	unsure := false // the replica may have got the report, and not answered
	switch {
	case done && fail:
		unsure = a.finish(c, &w, "failed")
	case done:
		unsure = a.finish(c, &w, "succeeded")
	case w.Stop == http.StatusGone && !w.Began.IsZero(): // the replica waits until it knows that the app has stopped
		a.finish(c, &w, "interrupted")
	case w.Stop == 0 && !w.Began.IsZero(): // it may still know the run
		w.Report = "interrupted"
		w.Answer, _ = c.post(a.ctx, time.Now().Add(c.heartbeat/3), "/finish", report(w.Report))
	}
	finished := done && (w.Answer == http.StatusOK || unsure)
	a.note(at, arrived, func(q *Request) { q.Work, q.Ended, q.Left, q.Failed = w, ended, !finished, finished && fail })
}

// beat sends heartbeats while the app works, and reports whether it has done all.
func (a *App) beat(c *client, w *Work, arrived time.Time, take time.Duration, note func()) (done bool) {
	by := arrived.Add(c.heartbeat) // the first one is of no use later: the replica has given the run up by then
	due := arrived
	awake := func(now time.Time) time.Time {
		w.Late = max(w.Late, now.Sub(due))
		return now
	}
	awake(time.Now())
	for {
		sent := time.Now()
		limit := by
		if !w.Began.IsZero() {
			if all := w.Began.Add(take); all.Before(limit) {
				limit = all
			}
		}
		due = limit
		answer, text := c.post(a.ctx, limit, "/heartbeat", "{}")
		now, pause := awake(time.Now()), again
		switch answer {
		case http.StatusOK:
			by, pause = sent.Add(c.heartbeat), c.heartbeat/3-now.Sub(sent)
			w.Until = by
			if w.Began.IsZero() && now.Before(by) {
				w.Began = now
			}
			note()
		case 0: // perhaps the next one gets an answer
		case http.StatusServiceUnavailable:
			pause = c.heartbeat / 5
		default:
			w.Stop, w.Why = answer, text
			return false
		}
		wake := now.Add(pause)
		if by.Before(wake) {
			wake = by
		}
		if !w.Began.IsZero() {
			if all := w.Began.Add(take); all.Before(wake) {
				wake = all
			}
		}
		due = wake
		if !wait(a.ctx, time.Until(wake)) {
			return false
		}
		switch now := awake(time.Now()); {
		case !now.Before(by):
			return false
		case !w.Began.IsZero() && !now.Before(w.Began.Add(take)):
			return true
		}
	}
}

// finish reports the end, until an answer comes or the replica has given the run up. It reports whether a report had no
// answer before one was refused, or none had: such a report may have arrived.
func (a *App) finish(c *client, w *Work, outcome string) (unsure bool) {
	w.Report = outcome
	for time.Now().Before(w.Until) && a.ctx.Err() == nil {
		w.Answer, _ = c.post(a.ctx, w.Until, "/finish", report(outcome))
		if w.Answer != 0 && w.Answer < http.StatusInternalServerError {
			return unsure
		}
		unsure = true
		wait(a.ctx, again)
	}
	return unsure
}

func report(outcome string) string { return `{"outcome": "` + outcome + `", "detail": "by the rig"}` }
