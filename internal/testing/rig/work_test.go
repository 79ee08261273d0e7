package rig

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// span is the heartbeat of these tests, which a busy machine does not miss.
const span = 2 * time.Second

// api is the part of a replica that the app reports to. It answers as its test says.
type api struct {
	*httptest.Server
	mu    sync.Mutex
	beats []int  // answers to heartbeats, of which the last one stays; 0 = none
	said  string // reports
}

func startAPI(t *testing.T, beats ...int) *api {
	t.Helper()
	a := &api{beats: beats}
	end := make(chan struct{})
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		answer := a.beats[0]
		switch {
		case r.Header.Get("Authorization") != "Bearer secret":
			answer = http.StatusUnauthorized
		case strings.HasSuffix(r.URL.Path, "/finish"):
			a.said += string(body)
			answer = http.StatusOK
		case len(a.beats) > 1:
			a.beats = a.beats[1:]
		}
		a.mu.Unlock()
		if answer == 0 {
			select {
			case <-r.Context().Done():
			case <-end:
			}
			return
		}
		w.WriteHeader(answer)
	}))
	t.Cleanup(func() { close(end); a.Close() })
	return a
}

// accept calls the app, and returns what it did.
func accept(t *testing.T, a *api, query string) Request {
	t.Helper()
	app := startApp(t)
	req, err := http.NewRequest(http.MethodPost, app.URL("job", 2*span)+"&async=true"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Solotick-Run": "r", "Solotick-Attempt": "1", "Solotick-Callback": a.URL + "/v1/runs/r",
		"Solotick-Callback-Token": "secret", "Solotick-Heartbeat": "2"} {
		req.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusAccepted {
		t.Fatalf("the app answered %s", answer.Status)
	}
	if err := Until(patience, "the end of the work", func() bool { return !app.Seen()[0].Ended.IsZero() }); err != nil {
		t.Fatal(err)
	}
	return app.Seen()[0]
}

func TestAnAppWorksUntilItIsDoneAndReports(t *testing.T) {
	t.Run("it succeeds", func(t *testing.T) {
		t.Parallel()
		a := startAPI(t, 200)
		q := accept(t, a, "")
		if took := q.Work.Ended.Sub(q.Work.Began); took < 2*span || q.Left || q.Failed || q.Work.Answer != 200 || !strings.Contains(a.said, `"succeeded"`) {
			t.Errorf("it worked for %s: %+v, and said %s", took, q, a.said)
		}
	})
	t.Run("it fails", func(t *testing.T) {
		t.Parallel()
		a := startAPI(t, 200)
		if q := accept(t, a, "&fail=1"); q.Left || !q.Failed || !strings.Contains(a.said, `"failed"`) {
			t.Errorf("%+v, and said %s", q, a.said)
		}
	})
}

func TestAnAppStopsWhenItsTimeIsOver(t *testing.T) {
	for _, last := range []int{0, 503} {
		t.Run(strconv.Itoa(last), func(t *testing.T) {
			t.Parallel()
			a := startAPI(t, 200, last)
			q := accept(t, a, "")
			if took := q.Work.Ended.Sub(q.Work.Began); took > span || !q.Left || !q.Work.Ended.Equal(q.Work.Until) || !strings.Contains(a.said, `"interrupted"`) {
				t.Errorf("it worked for %s: %+v, and said %s", took, q, a.said)
			}
		})
	}
}

func TestAnAppThatIsToldToEndStopsAtOnceAndSaysSo(t *testing.T) {
	t.Parallel()
	a := startAPI(t, 200, 410)
	q := accept(t, a, "")
	if took := q.Work.Ended.Sub(q.Work.Began); !q.Work.Ended.Before(q.Work.Until) || !q.Left || q.Work.Stop != 410 || !strings.Contains(a.said, `"interrupted"`) {
		t.Errorf("it worked for %s: %+v, and said %s", took, q, a.said)
	}
}

func TestAnAppThatMayNotWorkDoesNothing(t *testing.T) {
	for _, answer := range []int{0, 404, 410, 503} {
		t.Run(strconv.Itoa(answer), func(t *testing.T) {
			t.Parallel()
			a := startAPI(t, answer)
			if q := accept(t, a, ""); !q.Work.Began.IsZero() || !q.Left || a.said != "" {
				t.Errorf("%+v, and said %q", q, a.said)
			}
		})
	}
}
