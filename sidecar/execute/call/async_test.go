package call

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/execute"
)

const (
	aHeartbeat = 5 * time.Second
	aLimit     = 3 * time.Hour // of a run, from the 202 on
)

// async is a job that its app may accept.
func async(url string) config.HTTP {
	return config.HTTP{URL: url, Async: &config.Async{Timeout: aLimit, Heartbeat: aHeartbeat}}
}

// accepting is a run that notes with which limits it was accepted.
func accepting() (r execute.Run, limits *[]time.Duration) {
	r, limits = aRun(), &[]time.Duration{}
	r.Accepted = func(d time.Duration) { *limits = append(*limits, d) }
	return r, limits
}

func wantAccepted(t *testing.T, limits *[]time.Duration, want bool) {
	t.Helper()
	switch {
	case want && !slices.Equal(*limits, []time.Duration{aLimit}):
		t.Errorf("accepted with %v, want once with %s", *limits, aLimit)
	case !want && len(*limits) > 0:
		t.Errorf("accepted with %v, want not", *limits)
	}
}

// worker is how an app reports on the run of a request.
type worker struct {
	runs       *callback.Runs
	run, token string
}

func workerOf(runs *callback.Runs, r *http.Request) worker {
	return worker{runs, r.Header.Get("Solotick-Run"), r.Header.Get("Solotick-Callback-Token")}
}

func (w worker) beat() error {
	_, err := w.runs.Beat(w.run, w.token)
	return err
}

func (w worker) finish(r callback.Report) error { return w.runs.Finish(w.run, w.token, r) }

// wantOver checks that the run takes no heartbeat any more.
func (w worker) wantOver(t *testing.T, why error) {
	t.Helper()
	err := w.beat()
	if over, ok := errors.AsType[*callback.OverError](err); !ok || !errors.Is(over, why) {
		t.Errorf("a heartbeat is answered with %v, want that it is over: %v", err, why)
	}
}

func TestAnAppThatAcceptsARunEndsItByItsReport(t *testing.T) {
	for name, c := range map[string]struct {
		report callback.Report
		want   execute.Result
	}{
		"succeeded": {callback.Report{Outcome: callback.Succeeded, Detail: "7 rows"}, execute.Result{Status: execute.Succeeded, Output: "7 rows"}},
		"failed": {callback.Report{Outcome: callback.Failed, Detail: "the disk\nis full\x1b"},
			execute.Result{Status: execute.Failed, Output: "the disk\nis full␛", Reason: "the disk is full␛", Err: callback.ErrReported}},
		"interrupted": {callback.Report{Outcome: callback.Interrupted, Detail: "a new version\ncomes"},
			execute.Result{Status: execute.Interrupted, Output: "a new version\ncomes", Reason: "a new version comes", Err: callback.ErrStopped}},
		"says nothing": {callback.Report{Outcome: callback.Failed}, execute.Result{Status: execute.Failed, Err: callback.ErrReported}},
	} {
		for _, early := range []bool{false, true} { // before its answer
			runs := callback.New("127.0.0.1:9748")
			var working sync.WaitGroup
			a := newApp(t, func(w http.ResponseWriter, r *http.Request) {
				app := workerOf(runs, r)
				work := func() {
					if err := errors.Join(app.beat(), app.beat(), app.finish(c.report)); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				if early {
					work()
				}
				w.WriteHeader(http.StatusAccepted)
				io.WriteString(w, "the answer says nothing of the end")
				if !early {
					working.Go(work)
				}
			})
			r, limits := accepting()
			started := 0
			r.Started = func() { started++ }
			res := New(async(a.URL), Options{Callbacks: runs}).Execute(t.Context(), r)
			working.Wait()
			c.want.Code, c.want.Reported = -1, true
			if res != c.want || started != 1 {
				t.Errorf("%s, early %t: %+v after %d starts, want %+v", name, early, res, started, c.want)
			}
			wantAccepted(t, limits, true)
			workerOf(runs, a.last(t)).wantOver(t, callback.ErrOver)
		}
	}
}

func TestADetailIsBoundedAsAnyOutput(t *testing.T) {
	runs := callback.New("127.0.0.1:9748")
	a := newApp(t, func(w http.ResponseWriter, r *http.Request) {
		_ = workerOf(runs, r).finish(callback.Report{Outcome: callback.Failed, Detail: strings.Repeat("\x00", 60<<10)})
		w.WriteHeader(http.StatusAccepted)
	})
	res := New(async(a.URL), Options{Callbacks: runs}).Execute(t.Context(), aRun())
	wantStatus(t, res, execute.Failed)
	if len(res.Output) > execute.MaxOutput || len([]rune(res.Reason)) > 300 {
		t.Errorf("%d bytes of output, %d characters of a reason", len(res.Output), len([]rune(res.Reason)))
	}
}

func TestAnyOtherAnswerEndsTheRun(t *testing.T) {
	for code, want := range map[int]execute.Status{200: execute.Succeeded, 201: execute.Succeeded, 204: execute.Succeeded,
		302: execute.Failed, 409: execute.Declined, 422: execute.Failed, 500: execute.Failed, 503: execute.Failed} {
		runs := callback.New("127.0.0.1:9748")
		a := newApp(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) })
		r, limits := accepting()
		res := New(async(a.URL), Options{Callbacks: runs}).Execute(t.Context(), r)
		wantStatus(t, res, want)
		if res.Code != code || res.Reported {
			t.Errorf("%d: %+v", code, res)
		}
		wantAccepted(t, limits, false)
		workerOf(runs, a.last(t)).wantOver(t, callback.ErrOver)
	}
}

// losing is an app that reads a request, plays, says a part of an answer and closes the connection.
func losing(t *testing.T, says string, play func(r *http.Request)) string {
	return rawApp(t, func(c net.Conn, in *bufio.Reader) {
		if r, err := http.ReadRequest(in); err == nil {
			play(r)
			io.WriteString(c, says)
		}
	})
}

func TestAnAppThatHasAcceptedARunEndsItThoughItsAnswerBreaksOff(t *testing.T) {
	for name, c := range map[string]struct {
		says  string
		beats bool
	}{
		"in the body":                {"HTTP/1.1 202 Accepted\r\nContent-Length: 10\r\n\r\nhal", false},
		"in the header":              {"HTTP/1.1 20", true},
		"before its first character": {"", true},
	} {
		runs := callback.New("127.0.0.1:9748")
		var working sync.WaitGroup
		url := losing(t, c.says, func(r *http.Request) {
			app := workerOf(runs, r)
			if c.beats {
				if err := app.beat(); err != nil {
					t.Error(err)
				}
			}
			working.Go(func() {
				if err := app.finish(callback.Report{Outcome: callback.Succeeded}); err != nil {
					t.Error(err)
				}
			})
		})
		r, limits := accepting()
		res := New(async(url), Options{Callbacks: runs}).Execute(t.Context(), r)
		working.Wait()
		wantStatus(t, res, execute.Succeeded)
		if res.Code != -1 || !res.Reported {
			t.Errorf("%s: %+v", name, res)
		}
		wantAccepted(t, limits, true)
	}
}

func TestALostAnswerWithoutAHeartbeatIsAFailureThatMayHaveStarted(t *testing.T) {
	runs := callback.New("127.0.0.1:9748")
	var app worker
	r, limits := accepting()
	r.Lasts = func(time.Duration) bool { return false }
	url := losing(t, "", func(r *http.Request) {
		app = workerOf(runs, r)
		if err := app.beat(); !errors.Is(err, callback.ErrUnsure) { // which is no leave to work
			t.Errorf("a heartbeat is answered with %v", err)
		}
	})
	res := New(async(url), Options{Callbacks: runs}).Execute(t.Context(), r)
	wantStatus(t, res, execute.Failed)
	if res.Code != -1 || res.Reported || !strings.Contains(res.Err.Error(), "it may have started") {
		t.Errorf("%+v", res)
	}
	wantAccepted(t, limits, false)
	app.wantOver(t, callback.ErrOver)
}

func TestWithoutAnAPINoRunBegins(t *testing.T) {
	a := newApp(t, answering(202, ""))
	r, limits := accepting()
	r.Started = func() { t.Error("the run was started") }
	res := New(async(a.URL), Options{}).Execute(t.Context(), r)
	wantStatus(t, res, execute.NotStarted)
	if !errors.Is(res.Err, errNoAPI) || res.Code != -1 || a.count() != 0 {
		t.Errorf("%+v after %d calls", res, a.count())
	}
	wantAccepted(t, limits, false)
}

func TestAnAppThatCannotBeReachedAcceptsNothing(t *testing.T) {
	runs := callback.New("127.0.0.1:9748")
	r, limits := accepting()
	res := New(async("http://127.0.0.1:1/"), Options{Callbacks: runs}).Execute(t.Context(), r)
	wantStatus(t, res, execute.NotStarted)
	wantAccepted(t, limits, false)
}

func TestTheCallSaysWhereHowOftenAndWithWhichTokenToReport(t *testing.T) {
	for heartbeat, seconds := range map[time.Duration]string{aHeartbeat: "5", 1500 * time.Millisecond: "1.5", 250 * time.Millisecond: "0.25", time.Hour: "3600"} {
		runs := callback.New("127.0.0.1:9748")
		var tokens []string
		a := newApp(t, func(w http.ResponseWriter, r *http.Request) {
			app := workerOf(runs, r)
			if tokens = append(tokens, app.token); app.finish(callback.Report{Outcome: callback.Succeeded}) != nil {
				t.Errorf("the token %q is not the run's", app.token)
			}
			w.WriteHeader(http.StatusAccepted)
		})
		f := newFiles(t)
		c := async(a.URL)
		c.Async.Heartbeat = heartbeat
		// A check of the table refuses these names.
		c.Headers = map[string]string{"solotick-callback": "x", "SOLOTICK-CALLBACK-TOKEN": "x", "Solotick-Heartbeat": "x", "X-Own": "1"}
		c.HeaderFiles = map[string]config.HeaderFile{"solotick-callback-token": {File: f.write("token", "x")}, "X-File": {File: f.write("own", "2")}}
		e := New(c, Options{Callbacks: runs})
		for range 2 {
			wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
		}
		h := a.last(t).Header
		for name, want := range map[string]string{"Solotick-Callback": "http://127.0.0.1:9748/v1/runs/" + aRun().ID, "Solotick-Heartbeat": seconds,
			"Solotick-Callback-Token": tokens[1], "X-Own": "1", "X-File": "2"} {
			if got := h.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if tokens[0] == tokens[1] || len(tokens[0]) < 20 {
			t.Errorf("the tokens of two attempts are %q", tokens)
		}
		(worker{runs, aRun().ID, tokens[0]}).wantOver(t, callback.ErrOver)
	}
}

func TestACallWhoseAnswerEndsTheRunHasNoCallback(t *testing.T) {
	a := newApp(t, answering(202, ""))
	r, limits := accepting()
	wantStatus(t, New(config.HTTP{URL: a.URL}, Options{Callbacks: callback.New("127.0.0.1:9748")}).Execute(t.Context(), r), execute.Succeeded)
	wantNoCallback(t, a.last(t).Header)
	wantAccepted(t, limits, false)
}

func wantNoCallback(t *testing.T, h http.Header) {
	t.Helper()
	for _, name := range []string{callbackHeader, tokenHeader, heartbeatHeader} {
		if h[name] != nil {
			t.Errorf("%s: %q", name, h[name])
		}
	}
}

// A server to which the app redirects has nothing with which it could report, so its 202 is an answer like any other.
func TestAnotherServerAcceptsNoRun(t *testing.T) {
	for _, c := range []struct {
		success []config.CodeRange
		want    execute.Status
	}{{nil, execute.Succeeded}, {[]config.CodeRange{{From: 200, To: 200}}, execute.Failed}} {
		there := newApp(t, answering(202, ""))
		to := there.URL
		a := newApp(t, redirecting(307, &to))
		h := async(a.URL + "/from")
		h.SuccessCodes = c.success
		r, limits := accepting()
		res := New(h, Options{Callbacks: callback.New("127.0.0.1:9748")}).Execute(t.Context(), r)
		wantStatus(t, res, c.want)
		if res.Code != 202 || res.Reported || there.count() != 1 {
			t.Errorf("%+v after %d calls", res, there.count())
		}
		wantNoCallback(t, there.last(t).Header)
		wantAccepted(t, limits, false)
	}
}

func TestARedirectWithinTheServerKeepsTheCallback(t *testing.T) {
	runs := callback.New("127.0.0.1:9748")
	to := "/here"
	a := newApp(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/from" {
			redirecting(307, &to)(w, r)
			return
		}
		_ = workerOf(runs, r).finish(callback.Report{Outcome: callback.Succeeded})
		w.WriteHeader(http.StatusAccepted)
	})
	r, limits := accepting()
	res := New(async(a.URL+"/from"), Options{Callbacks: runs}).Execute(t.Context(), r)
	wantStatus(t, res, execute.Succeeded)
	wantAccepted(t, limits, true)
	if !res.Reported || a.count() != 2 {
		t.Errorf("%+v after %d calls", res, a.count())
	}
}

// accepted plays, in a bubble, an app that answers 202 at once and then works as told. cancel ends the run's context.
// ended waits for the end of the run, and returns how long it took from the 202 on.
func accepted(t *testing.T, f func(t *testing.T, app worker, cancel context.CancelCauseFunc, ended func() (execute.Result, time.Duration))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		runs := callback.New("127.0.0.1:9748")
		e := New(async("http://127.0.0.1:8080/"), Options{Callbacks: runs}).(*caller)
		apps := make(chan worker, 1)
		e.transport.dial = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				r, err := http.ReadRequest(bufio.NewReader(theirs))
				if err != nil {
					t.Error(err)
					return
				}
				io.WriteString(theirs, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				apps <- workerOf(runs, r)
			}()
			return ours, nil
		}
		ctx, cancel := contextWithCause(t)
		r, limits := accepting()
		var res execute.Result
		var took time.Duration
		done := make(chan struct{})
		go func() {
			defer close(done)
			begun := time.Now()
			res = e.Execute(ctx, r)
			took = time.Since(begun)
		}()
		app := <-apps
		synctest.Wait()
		f(t, app, cancel, func() (execute.Result, time.Duration) {
			<-done
			wantAccepted(t, limits, true)
			return res, took
		})
	})
}

func TestARunWhoseAppIsSilentIsInterrupted(t *testing.T) {
	for _, beats := range []int{0, 1, 100} {
		accepted(t, func(t *testing.T, app worker, _ context.CancelCauseFunc, ended func() (execute.Result, time.Duration)) {
			for range beats {
				time.Sleep(aHeartbeat - time.Millisecond)
				if err := app.beat(); err != nil {
					t.Error(err)
				}
			}
			res, took := ended()
			wantStatus(t, res, execute.Interrupted)
			if want := time.Duration(beats)*(aHeartbeat-time.Millisecond) + aHeartbeat; took != want || !errors.Is(res.Err, callback.ErrSilent) || res.Code != -1 || res.Reported {
				t.Errorf("%+v after %s, want %s", res, took, want)
			}
			app.wantOver(t, callback.ErrSilent)
		})
	}
}

func TestARunThatHasToEndWaitsForTheReportOfItsApp(t *testing.T) {
	for report, want := range map[callback.Report]execute.Status{{Outcome: callback.Succeeded}: execute.Succeeded,
		{Outcome: callback.Failed, Detail: "stopped half-way"}: execute.Canceled, {Outcome: callback.Interrupted}: execute.Canceled} {
		accepted(t, func(t *testing.T, app worker, cancel context.CancelCauseFunc, ended func() (execute.Result, time.Duration)) {
			if err := app.beat(); err != nil {
				t.Error(err)
			}
			cancel(errLockLost)
			time.Sleep(time.Second)
			app.wantOver(t, errLockLost)
			if err := app.finish(report); err != nil {
				t.Error(err)
			}
			res, took := ended()
			wantStatus(t, res, want)
			if took != time.Second || !res.Reported || res.Output != report.Detail {
				t.Errorf("%+v after %s", res, took)
			}
			if want == execute.Canceled {
				wantCause(t, res)
			}
		})
	}
}

func TestARunThatHasToEndWaitsUntilItsAppMustHaveStopped(t *testing.T) {
	for beats, want := range map[int]time.Duration{0: 3 * time.Second, 1: aHeartbeat, 2: 2*time.Second + aHeartbeat} {
		accepted(t, func(t *testing.T, app worker, cancel context.CancelCauseFunc, ended func() (execute.Result, time.Duration)) {
			for i := range beats { // at 0s and 2s
				time.Sleep(time.Duration(i) * 2 * time.Second)
				if err := app.beat(); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(3*time.Second - time.Duration(max(0, beats-1))*2*time.Second)
			cancel(errLockLost)
			synctest.Wait()
			app.wantOver(t, errLockLost)
			res, took := ended()
			wantCause(t, res)
			if took != want || res.Reported || res.Code != -1 {
				t.Errorf("%d heartbeats: %+v after %s, want %s", beats, res, took, want)
			}
			if err := app.finish(callback.Report{Outcome: callback.Succeeded}); !errors.Is(err, errLockLost) {
				t.Errorf("a report after that is answered with %v", err)
			}
		})
	}
}

// The app has begun by its heartbeat, and its answer is still to come when the run has to end.
func TestARunThatHasToEndBeforeItsAnswerWaitsForAnAppThatHasBegun(t *testing.T) {
	runs := callback.New("127.0.0.1:9748")
	ctx, cancel := contextWithCause(t)
	var working sync.WaitGroup
	a := newApp(t, func(_ http.ResponseWriter, r *http.Request) {
		app := workerOf(runs, r)
		if err := app.beat(); err != nil {
			t.Error(err)
		}
		cancel(errLockLost)
		<-r.Context().Done() // the replica waits for no answer
		working.Go(func() {
			for app.beat() == nil {
				runtime.Gosched()
			}
			app.wantOver(t, errLockLost)
			if err := app.finish(callback.Report{Outcome: callback.Failed, Detail: "stopped"}); err != nil {
				t.Error(err)
			}
		})
	})
	r, limits := accepting()
	res := New(async(a.URL), Options{Callbacks: runs}).Execute(ctx, r)
	working.Wait()
	wantCause(t, res)
	if res.Code != -1 || !res.Reported || res.Output != "stopped" {
		t.Errorf("%+v", res)
	}
	wantAccepted(t, limits, true)
}

// The output of try shows where the app reports, and not the token.
func TestWhatIsToldOfACallHidesTheTokenAlone(t *testing.T) {
	runs := callback.New("127.0.0.1:9748")
	a := newApp(t, func(w http.ResponseWriter, r *http.Request) {
		_ = workerOf(runs, r).finish(callback.Report{Outcome: callback.Succeeded})
		w.WriteHeader(http.StatusAccepted)
	})
	r := aRun()
	var told []string
	r.Tell = func(lines []string) { told = append(told, lines...) }
	wantStatus(t, New(async(a.URL), Options{Callbacks: runs}).Execute(t.Context(), r), execute.Succeeded)
	for _, want := range []string{"Solotick-Callback: http://127.0.0.1:9748/v1/runs/" + r.ID, "Solotick-Callback-Token: ***", "Solotick-Heartbeat: 5"} {
		if !slices.Contains(told, want) {
			t.Errorf("%q is missing in %q", want, told)
		}
	}
	if token := a.last(t).Header.Get(tokenHeader); strings.Contains(strings.Join(told, "\n"), token) {
		t.Errorf("the token is in %q", told)
	}
}
