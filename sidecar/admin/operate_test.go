package admin

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

const someID = "d8593ae8-b0c6-432f-9178-700b9b46c624"

func (w *world) state(job string) service.Ledger {
	w.t.Helper()
	states, err := w.store.States(w.t.Context(), []string{job})
	if err != nil {
		w.t.Fatal(err)
	}
	return states[job]
}

func TestATriggerIsMadeOncePerID(t *testing.T) {
	w := newWorld(t)
	first := w.ask("POST", "/v1/jobs/reports/trigger", `{"id": "`+someID+`"}`)
	if first.Code != http.StatusAccepted || !strings.Contains(first.Body.String(), `"job":"reports","tick":"2027-03-28T07:20:00.`) {
		t.Fatalf("%d %s", first.Code, first.Body)
	}
	again := w.ask("POST", "/v1/jobs/reports/trigger", `{"id": "`+someID+`"}`)
	if again.Body.String() != first.Body.String() {
		t.Errorf("asked again: %s, before: %s", again.Body, first.Body)
	}
	if waiting := w.state("reports").Waiting; len(waiting) != 1 || waiting[0].Kind != "manual" || waiting[0].Nonce != someID {
		t.Errorf("waiting: %+v", waiting)
	}
	for range 2 {
		w.ask("POST", "/v1/jobs/reports/trigger", "")
	}
	if waiting := w.state("reports").Waiting; len(waiting) != 3 {
		t.Errorf("without an id each is a new one: %+v", waiting)
	}
	for _, id := range []string{"x", "d8593ae8b0c6432f9178700b9b46c624", "{" + someID + "}", "urn:uuid:" + someID} {
		w.refuses(w.ask("POST", "/v1/jobs/reports/trigger", `{"id": "`+id+`"}`), 422, "not a UUID")
	}
}

func TestATriggerTooManyIsRefused(t *testing.T) {
	w := newWorld(t)
	for range 100 {
		if got := w.ask("POST", "/v1/jobs/reports/trigger", ""); got.Code != http.StatusAccepted {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
	}
	w.refuses(w.ask("POST", "/v1/jobs/reports/trigger", ""), http.StatusInsufficientStorage,
		"there are too many: 100 requests wait, which is the limit")
	if waiting := w.state("reports").Waiting; len(waiting) != 100 {
		t.Errorf("%d wait", len(waiting))
	}
	if got := w.ask("POST", "/v1/jobs/send-invoices/trigger", ""); got.Code != http.StatusAccepted {
		t.Errorf("another job: %d %s", got.Code, got.Body)
	}
}

func TestAPauseHasAReasonAndPerhapsAnEnd(t *testing.T) {
	w := newWorld(t)
	const pause = "/v1/jobs/reports/pause"
	w.says(w.ask("POST", pause, `{"reason": " two \u001b[2J\nwords "}`), 200, `{"job": "reports", "reason": "two [2J words"}`)
	if p := w.state("reports").Paused; p == nil || p.Reason != "two [2J words" || !p.Until.IsZero() {
		t.Errorf("paused: %+v", p)
	}
	w.says(w.ask("POST", pause, `{"reason": "moving", "until": "2027-03-28T10:00:00+02:00"}`), 200,
		`{"job": "reports", "reason": "moving", "until": "2027-03-28T08:00:00.000Z"}`)
	got := w.ask("POST", pause, `{"reason": "moving", "for": "90m"}`).Body.String()
	if !strings.Contains(got, `"until":"2027-03-28T08:50:0`) || !strings.Contains(got, `.000Z"`) {
		t.Errorf("for 90m: %s", got)
	}
	w.says(w.ask("POST", "/v1/jobs/reports/resume", ""), 200, `{"job": "reports", "resumed": true}`)
	w.says(w.ask("POST", "/v1/jobs/reports/resume", "{}"), 200, `{"job": "reports", "resumed": false}`)

	for body, words := range map[string]string{
		"": "needs a reason", `{}`: "needs a reason", `{"reason": " \n"}`: "needs a reason", `{"reason": "` + strings.Repeat("ä", service.MaxReason+1) + `"}`: "201 characters",
		`{"reason": "x", "until": "2027-03-28T09:00:00Z", "for": "2h"}`: "both say when", `{"reason": "x", "until": "noon"}`: "not a time",
		`{"reason": "x", "until": "2027-03-28T07:19:59Z"}`: "its end has passed", `{"reason": "x", "for": "soon"}`: "not a duration", `{"reason": "x", "for": "-2h"}`: "longer than 0s",
	} {
		w.refuses(w.ask("POST", pause, body), 422, words)
	}
	if p := w.state("reports").Paused; p != nil {
		t.Errorf("paused by what was refused: %+v", p)
	}
}

func TestAJobThatEveryReplicaRunsIsPausedAndResumed(t *testing.T) {
	w := newWorld(t)
	if _, err := w.store.Locks.Register(t.Context(), "warm-cache", lock.NoTicks); err != nil {
		t.Fatal(err)
	}
	if got := w.ask("POST", "/v1/jobs/warm-cache/pause", `{"reason": "incident"}`); got.Code != 200 || w.state("warm-cache").Paused == nil {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	if got := w.ask("POST", "/v1/jobs/warm-cache/resume", ""); got.Code != 200 || w.state("warm-cache").Paused != nil {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestWhatCannotBeOperatedIsSaid(t *testing.T) {
	w := newWorld(t)
	for _, verb := range []string{"trigger", "pause", "resume"} {
		body := map[string]string{"pause": `{"reason": "x"}`}[verb]
		w.refuses(w.ask("POST", "/v1/jobs/report/"+verb, body), 404, `did you mean \"reports\"?`)
		if verb == "trigger" {
			w.refuses(w.ask("POST", "/v1/jobs/warm-cache/"+verb, body), 409, "every-replica")
		}
		w.refuses(w.ask("POST", "/v1/jobs/new-one/"+verb, body), 503, "not known to Redis")
		w.refuses(w.ask("POST", "/v1/jobs/reports/"+verb+"?now=1", body), 400, "takes no parameters")
	}
	w.refuses(w.ask("POST", "/v1/jobs/reports/resume", `{"job": "x"}`), 400, "unknown key")
}

func TestAnOperatorIsToldThatRedisDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.mini.SetError("ERR out of order")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the caller's patience
	r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/v1/jobs/reports/trigger", nil)
	out := httptest.NewRecorder()
	w.api.ServeHTTP(out, r)
	w.refuses(out, 503, "may have been done or not")
}

func TestOperatorRequestsAreLogged(t *testing.T) {
	w := newWorld(t)
	var log bytes.Buffer
	w.api = API(Options{Replica: w, Name: "app-1", Store: w.store, Log: slog.New(slog.NewTextHandler(&log, nil))})
	w.ask("POST", "/v1/jobs/reports/trigger", `{"id": "`+someID+`"}`)
	w.ask("POST", "/v1/jobs/reports/pause", `{"reason": "two\nwords"}`)
	w.ask("POST", "/v1/jobs/reports/resume", "")
	w.ask("POST", "/v1/drain", "")
	for _, want := range []string{`msg=triggered job=reports id=` + someID + "\n", `msg=paused job=reports reason="two words" until=""` + "\n",
		`msg=resumed job=reports paused=true` + "\n", `msg="asked to drain"` + "\n"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in the log:\n%s", want, log.String())
		}
	}
}

func TestADrainIsAnsweredWhenItIsDone(t *testing.T) {
	w := newWorld(t)
	over := make(chan struct{})
	var asked int
	w.drain = func(ctx context.Context) error {
		asked++
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	got := w.ask("POST", "/v1/drain?timeout=10ms", "")
	if text := got.Body.String(); got.Code != http.StatusAccepted || !strings.HasPrefix(text, `{"drained":false,"replica":"app-1","tookMs":`) {
		t.Errorf("before it is done: %d %s", got.Code, text)
	}
	close(over)
	got = w.ask("POST", "/v1/drain", "")
	if text := got.Body.String(); got.Code != http.StatusOK || !strings.HasPrefix(text, `{"drained":true,"replica":"app-1","tookMs":`) {
		t.Errorf("when it is done: %d %s", got.Code, text)
	}
	w.drain = func(context.Context) error { return errors.New("out of order") }
	w.refuses(w.ask("POST", "/v1/drain", ""), 500, "draining: out of order")
	for query, words := range map[string]string{"timeout=": "not a duration", "timeout=soon": "not a duration", "timeout=-1s": "longer than 0s", "timeout=0s": "longer than 0s"} {
		w.refuses(w.ask("POST", "/v1/drain?"+query, ""), 422, words)
	}
	w.refuses(w.ask("POST", "/v1/drain?now=1", ""), 400, "unknown parameter")
	if asked != 2 {
		t.Errorf("%d drains", asked)
	}
}

func TestADrainMayTakeLongerThanAnyOtherAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const limit = time.Second // the request has to arrive within it
	w.drain = func(ctx context.Context) error {
		select {
		case <-time.After(2 * limit):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s := httptest.NewUnstartedServer(w.api)
	s.Config = APIServer(Options{Replica: w, Name: "app-1", Store: w.store, Log: slog.New(slog.DiscardHandler)})
	s.Config.ReadTimeout, s.Config.WriteTimeout = limit, limit
	s.Start()
	defer s.Close()
	got, err := http.Post(s.URL+"/v1/drain", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		t.Errorf("after twice the limit: %s", got.Status)
	}
}

func TestARunIsCancelledByItsIDOrWithAllOfItsJob(t *testing.T) {
	w := newWorld(t)
	const one, two = "5e4d3c2b-1a09-4f8e-8d7c-6b5a49382705", "5e4d3c2b-ffff-4f8e-8d7c-6b5a49382705"
	const cancel = "/v1/jobs/reports/cancel"
	w.refuses(w.ask("POST", cancel, ""), 404, "no run of job")
	l := w.runs("reports", one)
	w.refuses(w.ask("POST", cancel, `{"run": "5e4d"}`), 422, "too short")
	w.refuses(w.ask("POST", cancel, `{"run": "00000000"}`), 404, "no run of job")
	if err := l.Verify(t.Context()); err != nil {
		t.Errorf("cancelled by what was refused: %v", err)
	}
	w.says(w.ask("POST", cancel, `{"run": "5E4D3C2B", "by": "anna", "reason": "why"}`), 200, `{"job": "reports", "runs": ["`+one+`"]}`)
	if err := l.Verify(t.Context()); !errors.Is(err, lock.ErrCancelled) {
		t.Errorf("not cancelled: %v", err)
	}
	w.mini.SetTime(morning.Add(time.Second))
	other, _, err := w.store.Locks.Acquire(t.Context(), lock.Claim{Job: "reports", Tick: morning.Add(time.Second), Run: two, Policy: lock.Allow,
		Replica: "app-2", TTL: 15 * time.Second})
	if err != nil || other == nil {
		t.Fatal(err)
	}
	w.refuses(w.ask("POST", cancel, `{"run": "5e4d3c2b"}`), 422, "2 runs of job")
	w.says(w.ask("POST", cancel, ""), 200, `{"job": "reports", "runs": ["`+one+`", "`+two+`"]}`)
	w.refuses(w.ask("POST", "/v1/jobs/warm-cache/cancel", ""), 409, "a pause keeps it from its next ticks")
	w.refuses(w.ask("POST", "/v1/jobs/new-one/cancel", ""), 503, "not known to Redis")
	w.refuses(w.ask("POST", "/v1/jobs/report/cancel", ""), 404, "did you mean")
	w.refuses(w.ask("POST", cancel, `{"by": "`+strings.Repeat("x", service.MaxBy+1)+`"}`), 422, "101 characters")
	events := w.ask("GET", "/v1/events?limit=1", "").Body.String()
	if !strings.Contains(events, `"by":"api on app-1","what":"cancel","job":"reports","runs":["`+one+`","`+two+`"]`) {
		t.Errorf("the events are %s", events)
	}
	w.refuses(w.ask("GET", "/v1/events?job=nobodys", ""), 404, "no job of that name")
	w.refuses(w.ask("GET", "/v1/events?limit=0", ""), 400, "limit is not a number")
}

func TestARerunIsOfTheNewestTickThatFailedOrOfTheGivenOne(t *testing.T) {
	w := newWorld(t)
	const rerun = "/v1/jobs/reports/rerun"
	w.refuses(w.ask("POST", rerun, ""), 404, "no failed tick")
	w.refuses(w.ask("POST", rerun, `{"tick": "2027-03-28T07:16:00Z"}`), 422, "the ticks around it are 2027-03-28T07:15:00Z 2027-03-28T07:20:00Z")
	w.refuses(w.ask("POST", rerun, `{"tick": "noon"}`), 422, "not a time")
	w.refuses(w.ask("POST", rerun, `{"id": "x", "tick": "2027-03-28T07:15:00Z"}`), 422, "not a UUID")
	w.refuses(w.ask("POST", "/v1/jobs/warm-cache/rerun", ""), 409, "every-replica")
	w.ran("reports", -5, service.Entry{Outcome: "failed", Failed: true})
	w.mini.SetTime(morning)
	for range 2 {
		w.says(w.ask("POST", rerun, `{"id": "`+someID+`"}`), 202, `{"job": "reports", "tick": "2027-03-28T07:15:00.000Z", "id": "`+someID+`"}`)
	}
	w.ran("reports", 0, service.Entry{Outcome: "failed", Failed: true}) // a newer one has failed since
	w.says(w.ask("POST", rerun, `{"id": "`+someID+`"}`), 202, `{"job": "reports", "tick": "2027-03-28T07:15:00.000Z", "id": "`+someID+`"}`)
	for path, body := range map[string]string{rerun: `, "tick": "2027-03-28T07:20:00Z"`, "/v1/jobs/reports/trigger": "", "/v1/jobs/send-invoices/trigger": "", "/v1/jobs/send-invoices/rerun": `, "tick": "2027-03-28T07:00:00Z"`} {
		w.refuses(w.ask("POST", path, `{"id": "`+someID+`"`+body+`}`), 409, "the id is that of another request")
	}
	if waiting := w.state("reports").Waiting; len(waiting) != 1 || waiting[0].Kind != "backfill" || waiting[0].Nonce != someID {
		t.Errorf("waiting: %+v", waiting)
	}
}
