package rig

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Question is one that an app asked its replica before its own scheduler ran a job, with the answer.
type Question struct {
	Job      string
	Replica  string
	Tick     time.Time // that the app means; zero = it asks for a lease
	Now      bool      // it has asked for the tick next to now
	Sent     time.Time
	Answered time.Time // or when it was clear that no answer comes
	Status   int       // of the answer; 0 = none came
	Reason   string    // of a refusal
	By       string    // the replica that has the tick, as the refusal says
}

// Plan is what an app does with a tick that it gets.
type Plan struct {
	Take time.Duration // it works for so long
	Fail bool          // it reports then that it failed
	Dies bool          // it falls silent then; with Take 0 it does so before its first heartbeat
}

// askPatience is how long an app waits for an answer. A replica holds it back for a minute.
const askPatience = 70 * time.Second

// Ask asks a replica's API for a tick. If the app gets it, the app does as planned, and Ask returns when that is over.
// The question is written down, and so is the run, like one that a replica called for.
func (d *Door) Ask(ctx context.Context, api string, q Question, p Plan) Question {
	which := "now"
	if !q.Now {
		which = q.Tick.UTC().Format(time.RFC3339Nano)
	}
	var got struct {
		Tick         time.Time
		Run, Token   string
		FencingToken int64
		HeartbeatMs  int64
		Reason, By   string
	}
	c := &client{http: &http.Client{Transport: &http.Transport{DialContext: d.Reach}}}
	defer c.http.CloseIdleConnections()
	q.Sent = time.Now()
	var text []byte
	q.Status, text = c.ask(ctx, "http://"+api+"/v1/jobs/"+url.PathEscape(q.Job)+"/ticks/"+which)
	q.Answered = time.Now()
	if q.Status != 0 {
		if err := json.Unmarshal(text, &got); err != nil {
			d.app.noteOdd("the answer to a question for " + q.Job + ": " + err.Error())
		}
	}
	q.Reason, q.By = got.Reason, got.By
	d.app.mu.Lock()
	d.app.asked = append(d.app.asked, q)
	d.app.mu.Unlock()
	if q.Status != http.StatusOK {
		return q
	}
	c.url, c.token = "http://"+api+"/v1/runs/"+got.Run, got.Token
	c.heartbeat = time.Duration(got.HeartbeatMs) * time.Millisecond
	at := d.app.add(Request{Job: q.Job, Tick: got.Tick, Run: got.Run, Kind: "schedule", Attempt: 1,
		Token: got.FencingToken, Replica: q.Replica, Arrived: q.Answered, Callback: c.url, Secret: c.token})
	d.app.work(c, at, q.Answered, p)
	return q
}

// ask sends a question. The status is 0 if no whole answer came.
func (c *client) ask(ctx context.Context, to string) (status int, text []byte) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader("{}"))
	if err != nil {
		return 0, nil
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(req)
	if err != nil {
		return 0, nil
	}
	defer answer.Body.Close()
	if text, err = io.ReadAll(io.LimitReader(answer.Body, 1<<16)); err != nil {
		return 0, nil
	}
	return answer.StatusCode, text
}

// Asked is a copy of the questions so far that were answered, or to which no answer comes.
func (a *App) Asked() []Question {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}
