package trace

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// collector answers requests without a network.
type collector struct {
	mu     sync.Mutex
	spans  []string // the names that came
	calls  []time.Time
	answer func(call int) (code int, header map[string]string, body string, err error) // nil = it takes all
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, time.Now())
	code, header, text := http.StatusOK, map[string]string{}, "{}"
	if c.answer != nil {
		if code, header, text, err = c.answer(len(c.calls)); err != nil {
			return nil, err
		}
	}
	if code == http.StatusOK {
		var got struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct{ Name string }
				}
			}
		}
		if err := json.Unmarshal(body, &got); err != nil {
			return nil, err
		}
		for _, s := range got.ResourceSpans[0].ScopeSpans[0].Spans {
			c.spans = append(c.spans, s.Name)
		}
	}
	answer := &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}
	for name, value := range header {
		answer.Header.Set(name, value)
	}
	return answer, nil
}

// exports runs an exporter, until end, to a collector.
func exports(t *testing.T, c *collector) (e *Exporter, end func()) {
	e = New(Options{URL: "http://collector/v1/traces?key=canary", Client: &http.Client{Transport: c}, Timeout: 10 * time.Second, Share: 1,
		Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { e.Run(ctx) })
	return e, func() { cancel(); wg.Wait() }
}

func span(name string) Span {
	return Span{Run: uuid.NewString(), ID: NewID(), Name: name, Start: time.Now(), End: time.Now()}
}

func TestSpansGoOutTogetherAndTheLastOnesAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		e, end := exports(t, c)
		e.Record(span("a"))
		e.Record(span("b"))
		time.Sleep(sendEvery + time.Second)
		synctest.Wait()
		if got := strings.Join(c.spans, ""); got != "ab" || len(c.calls) != 1 {
			t.Errorf("%q in %d calls", got, len(c.calls))
		}
		for range mostAtOnce {
			e.Record(span("c"))
		}
		synctest.Wait()
		if len(c.calls) != 2 {
			t.Errorf("enough for a request have waited for longer: %d calls", len(c.calls))
		}
		e.Record(span("d"))
		end()
		if n := len(c.spans); n != mostAtOnce+3 || c.spans[n-1] != "d" || e.Dropped() != 0 {
			t.Errorf("%d spans have come, and %d were dropped", n, e.Dropped())
		}
		e.Record(span("e"))
		if e.Dropped() != 1 {
			t.Error("what comes after the end is not counted")
		}
	})
}

func TestACollectorThatAsksForTimeGetsItAndOneThatRefusesIsNotAskedAgain(t *testing.T) {
	for what, c := range map[string]struct {
		answer func(call int) (int, map[string]string, string, error)
		gaps   []time.Duration // between the calls
		took   int
	}{
		"unavailable": {func(call int) (int, map[string]string, string, error) {
			return map[bool]int{true: 503, false: 200}[call < 3], nil, "", nil
		}, []time.Duration{time.Second, 2 * time.Second}, 1},
		"the gateway has no answer": {func(call int) (int, map[string]string, string, error) {
			return map[bool]int{true: 504, false: 200}[call < 2], nil, "", nil
		}, []time.Duration{time.Second}, 1},
		"it leads elsewhere": {func(int) (int, map[string]string, string, error) { return 307, nil, "", nil }, nil, 0},
		"it says when": {func(call int) (int, map[string]string, string, error) {
			return map[bool]int{true: 429, false: 200}[call < 2], map[string]string{"Retry-After": "7"}, "", nil
		}, []time.Duration{7 * time.Second}, 1},
		"for ever": {func(int) (int, map[string]string, string, error) { return 0, nil, "", errors.New("no route") },
			[]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}, 0},
		"it refuses": {func(int) (int, map[string]string, string, error) { return 400, nil, "", nil }, nil, 0},
		"some of them": {func(int) (int, map[string]string, string, error) {
			return 200, nil, `{"partialSuccess":{"rejectedSpans":"1"}}`, nil
		}, nil, 1},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &collector{answer: c.answer}
				e, end := exports(t, to)
				e.Record(span("a"))
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if len(to.calls) != len(c.gaps)+1 {
					t.Fatalf("it was called %d times", len(to.calls))
				}
				for i, want := range c.gaps {
					if got := to.calls[i+1].Sub(to.calls[i]); got != want {
						t.Errorf("call %d came after %s, want %s", i+2, got, want)
					}
				}
				want := uint64(1 - c.took)
				if what == "some of them" {
					want = 1
				}
				if len(to.spans) != c.took || e.Dropped() != want {
					t.Errorf("%d spans have come, and %d were dropped, want %d and %d", len(to.spans), e.Dropped(), c.took, want)
				}
				end()
			})
		})
	}
}

// TestACollectorThatHangsCostsABoundedNumberOfSpans and the one who records no time at all.
func TestACollectorThatHangsCostsABoundedNumberOfSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, end := exports(t, &collector{})
		e.Client = &http.Client{Transport: hangs{}}
		before := time.Now()
		for range 3 * mostWaiting {
			e.Record(span("a"))
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("it took %s to record them", took)
		}
		time.Sleep(time.Minute)
		e.mu.Lock()
		n := len(e.waiting)
		e.mu.Unlock()
		if n > mostWaiting || e.Dropped() < mostWaiting {
			t.Errorf("%d wait, and %d were dropped", n, e.Dropped())
		}
		before = time.Now()
		end()
		if took := time.Since(before); took > flushTime || e.Dropped() != 3*mostWaiting {
			t.Errorf("the end took %s, and %d were dropped", took, e.Dropped())
		}
	})
}

type hangs struct{}

func (hangs) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

func TestTheURLOfTheCollectorIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, end := exports(t, &collector{answer: func(int) (int, map[string]string, string, error) { return 0, nil, "", errors.New("no route") }})
		var log strings.Builder
		e.Log = slog.New(slog.NewTextHandler(&log, nil))
		e.Record(span("a"))
		time.Sleep(time.Minute)
		end()
		if s := log.String(); !strings.Contains(s, "spans were dropped") || !strings.Contains(s, "no route") || strings.Contains(s, "canary") {
			t.Errorf("the log is %s", s)
		}
	})
}

func TestAShareOfAllRunsIsSampledAndAllReplicasAgree(t *testing.T) {
	const n = 20_000
	for _, share := range []float64{0, 0.1, 0.5, 1} {
		sampled := 0
		for range n {
			run := uuid.NewString()
			if Sampled(run, share) {
				sampled++
			}
			if Sampled(run, share) != Sampled(strings.ToUpper(run), share) {
				t.Fatal("the same run is sampled and is not")
			}
		}
		if got := float64(sampled) / n; got < share-0.02 || got > share+0.02 {
			t.Errorf("%v of all, want %v", got, share)
		}
	}
	sampled := 0
	process := uuid.NewString()[24:] // all runs of a process end alike
	for range n {
		if Sampled(uuid.NewString()[:24]+process, 0.5) {
			sampled++
		}
	}
	if got := float64(sampled) / n; got < 0.48 || got > 0.52 {
		t.Errorf("of one process' runs %v are sampled, want half", got)
	}
	e := New(Options{})
	if e.Record(span("a")); len(e.waiting) != 0 || e.Dropped() != 0 {
		t.Error("what is not sampled waits to be sent, or counts as dropped")
	}
}
