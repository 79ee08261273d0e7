package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const everything = "https://hc.example/s3cret"

func aPing(job, outcome string) Ping {
	return Ping{Job: job, To: everything, Run: "0190b6f2-1c2d-4e3f-8a4b-5c6d7e8f9a0b", Outcome: outcome}
}

// receiver stands for the services that are pinged.
type receiver struct {
	answer func(ctx context.Context, url, text string) (int, time.Duration, error) // nil = 200 at once

	mu  sync.Mutex
	got []string // url and text, as they came
	now int
	top int // most at once
}

func (r *receiver) post(ctx context.Context, q request) (int, time.Duration, error) {
	url, text := q.url, q.body
	r.mu.Lock()
	r.got = append(r.got, url+" "+text)
	r.now++
	r.top = max(r.top, r.now)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.now--
	}()
	if r.answer == nil {
		return 200, 0, nil
	}
	return r.answer(ctx, url, text)
}

func (r *receiver) calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// slowly answers after a while, or when the caller has enough.
func slowly(d time.Duration) func(context.Context, string, string) (int, time.Duration, error) {
	return func(ctx context.Context, _, _ string) (int, time.Duration, error) {
		select {
		case <-time.After(d):
			return 200, 0, nil
		case <-ctx.Done():
			return 0, 0, context.Cause(ctx)
		}
	}
}

// journal keeps what is logged.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// bubble runs play with a Pinger at work, in simulated time.
func bubble(t *testing.T, r *receiver, play func(p *Pinger, end func(), log *journal)) {
	synctest.Test(t, func(t *testing.T) {
		log := &journal{}
		p := New(slog.New(slog.NewTextHandler(log, nil)), "")
		p.post = r.post
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ran := make(chan error)
		go func() { ran <- p.Run(ctx) }()
		synctest.Wait()
		ended := false
		end := func() {
			cancel()
			if err := <-ran; err != nil {
				t.Error(err)
			}
			ended = true
		}
		play(p, end, log)
		if !ended {
			end()
		}
		if strings.Contains(log.String(), "s3cret") {
			t.Errorf("a secret in the log:\n%s", log)
		}
	})
}

func TestEachOutcomeIsToldToWhoWantsToHearOfIt(t *testing.T) {
	for outcome, path := range map[string]string{
		"started": "/s3cret/start", "succeeded": "/s3cret", "failed": "/s3cret/fail", "timed_out": "/s3cret/fail",
		"lost_lock": "/s3cret/fail", "not_started": "/s3cret/fail", "interrupted": "/s3cret/fail",
		"declined": "", "replaced": "", "shutdown": "", "shutdown, and not run again": "/s3cret/fail",
	} {
		r := &receiver{}
		outcome, failed := strings.CutSuffix(outcome, ", and not run again")
		bubble(t, r, func(p *Pinger, end func(), _ *journal) {
			ping := aPing("a", outcome)
			ping.Failed = failed
			p.Send(ping)
			ping.To = ""
			p.Send(ping)
		})
		var want []string
		if path != "" {
			want = []string{"https://hc.example" + path + "?rid=0190b6f2-1c2d-4e3f-8a4b-5c6d7e8f9a0b " + outcome}
		}
		if got := r.calls(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", outcome, got, want)
		}
	}
}

func TestTheURLsOfStartAndFailureFollowFromTheOne(t *testing.T) {
	for to, want := range map[string]string{
		"https://h/1": "https://h/1/fail?rid=7", "https://h/1/": "https://h/1/fail?rid=7", "https://h/1?create=1": "https://h/1/fail?create=1&rid=7",
		"http://u:p@h:8000": "http://u:p@h:8000/fail?rid=7",
	} {
		r, err := Ping{To: to, Run: "7", Outcome: "failed"}.request(time.Time{})
		if r.url != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", to, r.url, err, want)
		}
	}
}

func TestTheRunJoinsTheQueryThatIsThere(t *testing.T) {
	for raw, want := range map[string]string{
		"https://h/x":         "https://h/x?rid=a+b",
		"https://h/x?":        "https://h/x?rid=a+b",
		"https://h/x?c=1&b":   "https://h/x?c=1&b&rid=a+b",
		"https://h?q=%2f&":    "https://h?q=%2f&rid=a+b",
		"https://u:p@h:1/x?a": "https://u:p@h:1/x?a&rid=a+b",
	} {
		if got, err := (Ping{To: raw, Run: "a b", Outcome: "succeeded"}).request(time.Time{}); got.url != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", raw, got.url, err, want)
		}
	}
}

func TestASlowReceiverDelaysNobodyElse(t *testing.T) {
	slow := slowly(9 * time.Second)
	r := &receiver{}
	r.answer = func(ctx context.Context, url, text string) (int, time.Duration, error) {
		if strings.HasPrefix(url, "https://slow") {
			return slow(ctx, url, text)
		}
		return 200, 0, nil
	}
	bubble(t, r, func(p *Pinger, end func(), log *journal) {
		began := time.Now()
		for range 50 {
			ping := aPing("slow", Started)
			ping.To = "https://slow.example/"
			p.Send(ping)
		}
		p.Send(aPing("quick", Started))
		synctest.Wait()
		if got := r.calls(); len(got) != 2 || !time.Now().Equal(began) {
			t.Errorf("after %s: %q", time.Since(began), got)
		}
		time.Sleep(50 * 9 * time.Second)
		synctest.Wait()
		if got := r.calls(); len(got) != 51 || log.String() != "" {
			t.Errorf("%d calls; %s", len(got), log)
		}
	})
}

func TestThePingsOfAJobKeepTheirOrder(t *testing.T) {
	r := &receiver{}
	delay := 3 * time.Second
	var mu sync.Mutex
	failed := map[string]bool{}
	r.answer = func(ctx context.Context, url, text string) (int, time.Duration, error) {
		mu.Lock()
		first := !failed[url+text]
		failed[url+text] = true
		delay -= 50 * time.Millisecond // each is quicker than the one before it
		d := delay
		mu.Unlock()
		if text == Started && first {
			return 500, 0, nil
		}
		return slowly(d)(ctx, url, text)
	}
	bubble(t, r, func(p *Pinger, end func(), _ *journal) {
		var want []string
		for n := range 5 {
			for _, outcome := range []string{Started, "succeeded"} {
				for _, job := range []string{"a", "b"} {
					ping := aPing(job, outcome)
					ping.Run = fmt.Sprint(job, n)
					p.Send(ping)
				}
				want = append(want, fmt.Sprint("a", n, " ", outcome))
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		var got []string
		for _, c := range r.calls() {
			if _, rid, _ := strings.Cut(c, "rid="); strings.HasPrefix(rid, "a") && !slices.Contains(got, rid) {
				got = append(got, rid)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

func TestOnlySoManyCallsAreMadeAtOnceAndNoneIsForgotten(t *testing.T) {
	r := &receiver{answer: slowly(time.Second)}
	bubble(t, r, func(p *Pinger, end func(), log *journal) {
		for n := range 1000 {
			p.Send(aPing(fmt.Sprint(n), Started))
			p.Send(aPing(fmt.Sprint(n), "succeeded"))
		}
		time.Sleep(2000 / mostAtOnce * time.Second)
		synctest.Wait()
		if got := r.calls(); len(got) != 2000 || r.top != mostAtOnce || log.String() != "" {
			t.Errorf("%d calls, %d at once; %s", len(got), r.top, log)
		}
		if len(p.busy) != 0 || p.waiting != nil {
			t.Errorf("idle, and yet %v are busy and %d wait", p.busy, len(p.waiting))
		}
	})
}

func TestOfTooManyTheOldestAreDroppedAndCounted(t *testing.T) {
	r := &receiver{answer: slowly(time.Second)}
	bubble(t, r, func(p *Pinger, end func(), log *journal) {
		for n := range mostWaiting + 31 { // the first one is on its way at once
			ping := aPing("a", Started)
			ping.Run = fmt.Sprint(n)
			p.Send(ping)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		got := r.calls()
		if len(got) != 3 || !strings.Contains(got[0], "rid=0 ") || !strings.Contains(got[1], "rid=31 ") {
			t.Errorf("%q", got)
		}
		if s := log.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, `"pings were dropped: too many wait" pings=30 waiting=2000`) {
			t.Errorf("logged:\n%s", s)
		}
	})
}

func TestWhatMayPassIsTriedAgain(t *testing.T) {
	down := errors.New("dial tcp 192.0.2.1:443: connection refused")
	for name, c := range map[string]struct {
		code  int
		again time.Duration
		err   error
		calls int
		took  time.Duration
		says  string
	}{
		"network":    {0, 0, down, 3, 5 * time.Second, "connection refused"},
		"500":        {500, 0, nil, 3, 5 * time.Second, "it answered 500 Internal Server Error"},
		"429":        {429, 0, nil, 3, 5 * time.Second, "it answered 429 Too Many Requests"},
		"429 asking": {429, 3 * time.Second, nil, 3, 7 * time.Second, "it answered 429"},
		"503 asking": {503, time.Hour, nil, 3, 30 * time.Second, "it answered 503"},
		"404":        {404, 0, nil, 1, 0, "it answered 404 Not Found"},
		"303":        {303, 0, nil, 1, 0, "it answered 303 See Other"},
		"599":        {599, 0, nil, 3, 5 * time.Second, "it answered 599"},
		"204":        {204, 0, nil, 1, 0, ""},
	} {
		r := &receiver{answer: func(context.Context, string, string) (int, time.Duration, error) { return c.code, c.again, c.err }}
		bubble(t, r, func(p *Pinger, end func(), log *journal) {
			p.Send(aPing("a", "failed"))
			if c.took > 0 {
				time.Sleep(c.took - time.Nanosecond)
				synctest.Wait()
				if n := len(r.calls()); n != c.calls-1 {
					t.Errorf("%s: %d calls before the last one", name, n)
				}
				time.Sleep(time.Nanosecond)
			}
			synctest.Wait()
			s := log.String()
			if n := len(r.calls()); n != c.calls || (c.says == "") != (s == "") || !strings.Contains(s, c.says) {
				t.Errorf("%s: %d calls; logged %q", name, n, s)
			}
			if s != "" && !strings.Contains(s, `msg="a ping did not arrive" job=a outcome=failed host=hc.example err=`) {
				t.Errorf("%s: logged %q", name, s)
			}
		})
	}
}

func TestAReceiverThatHangsIsGivenUp(t *testing.T) {
	r := &receiver{answer: slowly(time.Hour)}
	bubble(t, r, func(p *Pinger, end func(), log *journal) {
		p.Send(aPing("a", "failed"))
		time.Sleep(3*attemptTimeout + 5*time.Second)
		synctest.Wait()
		if s := log.String(); len(r.calls()) != 3 || !strings.Contains(s, "no answer within 10s") {
			t.Errorf("%d calls; logged %q", len(r.calls()), s)
		}
	})
}

func TestAtTheEndWhatWaitsIsSentForAMomentOnly(t *testing.T) {
	r := &receiver{answer: slowly(300 * time.Millisecond)}
	bubble(t, r, func(p *Pinger, end func(), log *journal) {
		for range 20 {
			p.Send(aPing("a", "succeeded"))
		}
		began := time.Now()
		end()
		// The seventh is on its way when the time is up.
		if took, s := time.Since(began), log.String(); took != flushTime || len(r.calls()) != 7 || !strings.Contains(s, "pings=14") {
			t.Errorf("%d calls in %s; logged %q", len(r.calls()), took, s)
		}
		p.Send(aPing("a", "succeeded"))
		synctest.Wait()
		if n := len(r.calls()); n != 7 {
			t.Errorf("%d calls after the end", n)
		}
	})
}

func TestTheEndTakesNoLongerThanThePings(t *testing.T) {
	r := &receiver{answer: slowly(300 * time.Millisecond)}
	bubble(t, r, func(p *Pinger, end func(), log *journal) {
		for range 3 {
			p.Send(aPing("a", "succeeded"))
		}
		began := time.Now()
		end()
		if took := time.Since(began); took != 900*time.Millisecond || len(r.calls()) != 3 || log.String() != "" {
			t.Errorf("%d calls in %s; logged %q", len(r.calls()), took, log)
		}
	})
}

func TestWhatIsSentBeforeRunWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		p := New(nil, "")
		p.post = r.post
		for n := range 20 {
			p.Send(aPing(fmt.Sprint(n), Started))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Run(ctx); err != nil || len(r.calls()) != 20 {
			t.Errorf("%d calls: %v", len(r.calls()), err)
		}
	})
	var none *Pinger
	none.Send(aPing("a", Started))
}

func TestAPingArrives(t *testing.T) {
	got := make(chan string, 2)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got <- r.Method + " " + r.RequestURI + " " + string(text) + " " + r.UserAgent()
	}))
	defer s.Close()
	p := New(nil, "0.1.0")
	p.Send(Ping{Job: "a", To: s.URL + "/check?c=1", Run: "7", Outcome: "succeeded"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != "POST /check?c=1&rid=7 succeeded solotick/0.1.0" {
		t.Error(s)
	}
}
