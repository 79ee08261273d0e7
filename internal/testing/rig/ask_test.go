package rig

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

var aTick = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// asked has an app ask a replica, whose answer is that. It returns the question, the runs, and what the replica was
// sent.
func asked(t *testing.T, status int, answer string, q Question, p Plan) (Question, []Request, []string) {
	t.Helper()
	app := startApp(t)
	var mu sync.Mutex
	var sent []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, r.Header.Get("Authorization")+r.URL.Path)
		if strings.HasPrefix(r.URL.Path, "/v1/jobs/") {
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, answer)
		}
	}))
	t.Cleanup(api.Close)
	got := app.front.Ask(t.Context(), api.Listener.Addr().String(), q, p)
	if all := app.Asked(); len(all) != 1 || all[0] != got || got.Sent.After(got.Answered) {
		t.Errorf("written down is %+v, and the answer is %+v", all, got)
	}
	if odd := app.Odd(); len(odd) > 0 {
		t.Error(odd)
	}
	mu.Lock()
	defer mu.Unlock()
	return got, app.Seen(), sent
}

const aGrant = `{"tick": "2026-12-01T12:00:00.000Z", "run": "r", "token": "x", "fencingToken": 7, "heartbeatMs": 2000}`

func TestAnAppThatGetsATickWorksAndReports(t *testing.T) {
	q := Question{Job: "job", Replica: "r1", Tick: aTick}
	got, runs, sent := asked(t, 200, aGrant, q, Plan{Take: time.Millisecond})
	want := "/v1/jobs/job/ticks/2026-12-01T12:00:00Z Bearer x/v1/runs/r/heartbeat Bearer x/v1/runs/r/finish"
	if strings.Join(sent, " ") != want || got.Status != 200 {
		t.Errorf("sent %q, answered %+v", sent, got)
	}
	if len(runs) != 1 || runs[0].Job != "job" || runs[0].Run != "r" || runs[0].Token != 7 ||
		runs[0].Replica != "r1" || !runs[0].Tick.Equal(aTick) || runs[0].Left || runs[0].Work.Report != "succeeded" ||
		!runs[0].Arrived.Equal(got.Answered) {
		t.Errorf("the runs are %+v", runs)
	}
}

func TestAnAppThatIsRefusedDoesNothing(t *testing.T) {
	const answer = `{"error": "no", "reason": "fired_elsewhere", "by": "r2"}`
	got, runs, sent := asked(t, 409, answer, Question{Job: "job", Tick: aTick, Now: true}, Plan{})
	if got.Status != 409 || got.Reason != "fired_elsewhere" || got.By != "r2" || len(runs) > 0 ||
		strings.Join(sent, " ") != "/v1/jobs/job/ticks/now" {
		t.Errorf("sent %q, answered %+v, runs %+v", sent, got, runs)
	}
}

func TestAnAppThatDiesSendsNothingMore(t *testing.T) {
	for take, begins := range map[time.Duration]bool{0: false, time.Millisecond: true} {
		_, runs, sent := asked(t, 200, aGrant, Question{Job: "job", Tick: aTick}, Plan{Take: take, Dies: true})
		if len(runs) != 1 {
			t.Fatalf("the runs are %+v", runs)
		}
		w, all := runs[0].Work, strings.Join(sent, " ")
		if w.Died.IsZero() || !w.Ended.IsZero() || w.Report != "" || !runs[0].Left || w.Began.IsZero() == begins ||
			strings.Contains(all, "finish") || begins != strings.Contains(all, "heartbeat") {
			t.Errorf("sent %q, the run is %+v", sent, runs[0])
		}
		if begins && runs[0].Ended != w.Until {
			t.Errorf("it might work until %s, and ended %s", w.Until, runs[0].Ended)
		}
	}
}

func TestAnAnswerThatDoesNotComeIsNone(t *testing.T) {
	app := startApp(t)
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(api.Close)
	got := app.front.Ask(t.Context(), api.Listener.Addr().String(), Question{Job: "job"}, Plan{})
	if got.Status != 0 || len(app.Seen()) > 0 {
		t.Errorf("answered %+v", got)
	}
}
