package admin

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	redisserver "github.com/alicebob/miniredis/v2/server"

	"github.com/solotick/solotick/sidecar/service"
)

func TestTheStatusIsThatOfTheCommandLine(t *testing.T) {
	w := newWorld(t)
	w.ran("reports", 0, service.Entry{Outcome: "failed", Failed: true, Took: 812 * time.Millisecond, Detail: "</script>\x1b[2J"})
	if err := w.store.Beat(t.Context(), service.Replica{Name: "app-1", Version: "v0.1.0", Table: w.table.Hash}); err != nil {
		t.Fatal(err)
	}
	got := w.ask("GET", "/v1/status", "").Body.String()
	for _, want := range []string{`{"service":"billing","time":"2027-03-28T07:20:00.`, `"table":"` + w.table.Hash + `","drift":false,"jobs":[{"job":"send-invoices",`,
		`"next":"2027-03-28T07:25:00.000Z"`, `"outcome":"failed","failed":true,`, `"detail":"\u003c/script\u003e\u001b[2J"`, `"replicas":[{"replica":"app-1",`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if got := w.ask("GET", "/v1/jobs", "").Body.String(); !strings.HasPrefix(got, `[{"job":"send-invoices",`) || strings.Count(got, `"guarantee"`) != 4 {
		t.Errorf("jobs: %s", got)
	}
	if got := w.ask("GET", "/v1/jobs/reports", "").Body.String(); !strings.HasPrefix(got, `{"job":"reports",`) {
		t.Errorf("one job: %s", got)
	}
	if got := w.ask("GET", "/v1/replicas", "").Body.String(); !strings.HasPrefix(got, `[{"replica":"app-1",`) {
		t.Errorf("replicas: %s", got)
	}
}

func TestWhyReadsTheLedgerOnce(t *testing.T) {
	w := newWorld(t)
	w.ran("reports", 0, service.Entry{Outcome: "succeeded", Took: time.Second})
	var reads atomic.Int64
	w.mini.Server().SetPreHook(func(_ *redisserver.Peer, cmd string, args ...string) bool {
		if len(args) > 0 && strings.HasSuffix(args[0], ":job:reports") {
			reads.Add(1)
		}
		return false
	})
	got := w.ask("GET", "/v1/jobs/reports/ticks/2027-03-28T07:20:00Z", "").Body.String()
	if !strings.Contains(got, `"fate":"succeeded"`) || reads.Load() != 1 {
		t.Errorf("%d reads of the ledger for %s", reads.Load(), got)
	}
}

func TestWhyTellsOfATimerToo(t *testing.T) {
	w := newWorld(t)
	for id, want := range map[string]string{"x": `The next tick is 08:20:00 UTC, in 1h0m0s.`, "none": `No timer of this id waits, and`} {
		if id == "x" {
			w.ask("PUT", "/v1/timers/x", `{"after": "1h", "http": {"url": "http://127.0.0.1/"}}`)
		}
		got := w.ask("GET", "/v1/jobs/timer:"+id+"/ticks/now", "").Body.String()
		if !strings.HasPrefix(got, `{"job":"timer:`+id+`","fate":"stands",`) || !strings.Contains(got, want) {
			t.Errorf("of %s: %s", id, got)
		}
	}
}

func TestTheListOfTimersSaysHowManyWaitAndHowLate(t *testing.T) {
	w := newWorld(t)
	w.ask("PUT", "/v1/timers/x", `{"at": "2027-03-28T07:00:00Z", "http": {"url": "http://127.0.0.1/"}}`)
	w.ask("PUT", "/v1/timers/y", `{"after": "1h", "http": {"url": "http://127.0.0.1/"}}`)
	of := w.ask("GET", "/v1/timers?limit=1", "").Header()
	if n, late := of.Get("Solotick-Timers"), of.Get("Solotick-Timers-Lag"); n != "2" || late != "1200.000" {
		t.Errorf("%s wait, the oldest for %s s", n, late)
	}
}

func TestRunsAreTheNewestFirst(t *testing.T) {
	w := newWorld(t)
	for minute := range 7 {
		w.ran("reports", minute, service.Entry{Outcome: "succeeded"})
	}
	w.ran("send-invoices", 7, service.Entry{Outcome: "failed", Failed: true})
	for target, want := range map[string]string{
		"/v1/runs":                           "send-invoices 27,reports 26,reports 25,reports 24,reports 23,reports 22,reports 21,reports 20",
		"/v1/runs?limit=2":                   "send-invoices 27,reports 26",
		"/v1/runs?job=reports&limit=2":       "reports 26,reports 25",
		"/v1/runs?failed=true":               "send-invoices 27",
		"/v1/runs?each=2":                    "send-invoices 27,reports 26,reports 25",
		"/v1/runs?job=reports&failed=true":   "",
		"/v1/runs?job=new-one":               "",
		"/v1/runs?job=reports&limit=1000":    "reports 26,reports 25,reports 24,reports 23,reports 22,reports 21,reports 20",
		"/v1/runs?failed=false&limit=1":      "send-invoices 27",
		"/v1/runs?job=send-invoices&limit=9": "send-invoices 27",
	} {
		var rows []string
		for _, row := range strings.Split(w.ask("GET", target, "").Body.String(), `{"job":"`)[1:] {
			job, rest, _ := strings.Cut(row, `","tick":"2027-03-28T07:`)
			rows = append(rows, job+" "+rest[:2])
		}
		if got := strings.Join(rows, ","); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
	w.says(w.ask("GET", "/v1/runs?job=new-one", ""), 200, `[]`)
}

func TestWhatIsAskedForWronglyIsSaid(t *testing.T) {
	w := newWorld(t)
	for target, words := range map[string]string{
		"/v1/runs?limit=0": "limit is not a number from 1 to 1000", "/v1/runs?limit=1001": "limit is not", "/v1/runs?limit=x": "limit is not", "/v1/runs?limit=": "limit is not",
		"/v1/runs?each=0": "each is not", "/v1/runs?each=2&job=reports": "each stands in place", "/v1/runs?failed=maybe": "true or false",
		"/v1/runs?jbo=reports": `unknown parameter \"jbo\"`, "/v1/runs?job=a&job=b": "more than once", "/v1/runs?%zz": "cannot be read", "/v1/status?x=1": "takes no parameters",
		"/v1/runs?%1b%5b2J=1": `unknown parameter \"[2J\"`,
	} {
		w.refuses(w.ask("GET", target, ""), 400, words)
	}
	w.refuses(w.ask("GET", "/v1/runs?job=report", ""), 404, `did you mean \"reports\"?`)
	w.refuses(w.ask("GET", "/v1/jobs/report", ""), 404, `did you mean \"reports\"?`)
	w.refuses(w.ask("GET", "/v1/jobs/quite-another", ""), 404, `GET /v1/jobs shows all jobs`)
}

func TestThatRedisIsAwayIsSaid(t *testing.T) {
	w := newWorld(t)
	w.mini.SetError("LOADING Redis is loading the dataset in memory")
	for _, target := range []string{"/v1/status", "/v1/jobs", "/v1/jobs/reports", "/v1/replicas", "/v1/runs"} {
		got := w.ask("GET", target, "")
		w.refuses(got, 503, "LOADING")
		if got.Header().Get("Retry-After") != "1" {
			t.Errorf("%s: %v", target, got.Header())
		}
	}
}

// Twelve readers of a full history at once ended a replica of 64 MiB.
func TestOneRequestAtATimeReadsMuchAndNoOtherWaitsForIt(t *testing.T) {
	w := newWorld(t)
	reading, end := make(chan struct{}), make(chan struct{})
	w.reads = func() {
		select {
		case reading <- struct{}{}:
			<-end
		case <-end:
		}
	}
	codes := make(chan int, 13)
	read := func() { codes <- w.ask("GET", "/v1/runs?each=1000", "").Code }
	go read()
	<-reading
	w.patience = time.Second / 10
	for range 12 {
		go read()
	}
	for range 12 {
		select {
		case code := <-codes:
			if code != http.StatusServiceUnavailable {
				t.Errorf("one more: %d", code)
			}
		case <-reading:
			t.Fatal("two read at once")
		}
	}
	if got := w.ask("GET", "/", ""); got.Code != http.StatusOK {
		t.Errorf("the page: %d", got.Code)
	}
	if got := w.report(someRun, "token", "heartbeat", ""); got.Code >= 500 {
		t.Errorf("a heartbeat: %d %s", got.Code, got.Body)
	}
	close(end)
	if code := <-codes; code != http.StatusOK {
		t.Errorf("the first: %d", code)
	}
}
