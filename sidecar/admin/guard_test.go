package admin

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestOnlyThisMachineIsServed(t *testing.T) {
	w := newWorld(t)
	for host, want := range map[string]int{
		"localhost": 200, "localhost:9748": 200, "LOCALHOST:1": 200, "127.0.0.1": 200, "127.0.0.1:19748": 200, "127.9.9.9:80": 200, "[::1]": 200, "[::1]:9748": 200,
		"": 403, "evil.example": 403, "evil.example:9748": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403, "localhost.": 403, "app-1:9748": 403,
		"10.0.0.1": 403, "0.0.0.0:9748": 403, "[::]:9748": 403, "[::ffff:127.0.0.1]": 403, "[::1%25eth0]": 403, "::1": 200, "2130706433": 403, "0177.0.0.1": 403, "127.1": 403,
		"localhost:evil": 403, "localhost:80:80": 403, "[localhost]": 200, "user@localhost": 403, "localhost evil": 403, "localhost/": 403,
	} {
		if got := w.ask("GET", "/v1/status", "", "Host", host).Code; got != want {
			t.Errorf("Host %q: %d, want %d", host, got, want)
		}
	}
	w.refuses(w.ask("POST", "/v1/jobs/reports/trigger", "", "Host", "evil.example"), 403, "names another host")
}

func TestPagesOfOtherOriginsDoNothing(t *testing.T) {
	w := newWorld(t)
	const trigger = "/v1/jobs/reports/trigger"
	w.refuses(w.ask("POST", trigger, "", "Sec-Fetch-Site", "cross-site"), 403, "another origin")
	w.refuses(w.ask("POST", trigger, "", "Sec-Fetch-Site", "same-site", "Origin", "http://localhost:3000"), 403, "another origin")
	w.refuses(w.ask("POST", trigger, "", "Origin", "http://evil.example"), 403, "another origin")
	w.refuses(w.ask("POST", trigger, "", "Origin", "http://localhost:3000"), 403, "another origin")
	w.refuses(w.ask("POST", trigger, "", "Origin", "null"), 403, "another origin")
	states, err := w.store.States(t.Context(), []string{"reports"})
	if err != nil || len(states["reports"].Waiting) != 0 {
		t.Errorf("it was triggered: %+v, %v", states["reports"].Waiting, err)
	}
	for _, own := range [][]string{
		{"Sec-Fetch-Site", "same-origin", "Origin", "http://localhost:9748"}, {"Origin", "http://localhost:9748"}, {"Sec-Fetch-Site", "none"}, {},
	} {
		if got := w.ask("POST", trigger, "", own...); got.Code != http.StatusAccepted {
			t.Errorf("%v: %d %s", own, got.Code, got.Body)
		}
	}
	// Reads cost memory, and so does a page that another page opens: neither they nor a link to the page are answered.
	for _, target := range []string{"/", "/v1/status", "/v1/runs?each=1000"} {
		for _, site := range []string{"cross-site", "same-site", "unheard-of"} {
			for _, mode := range []string{"no-cors", "navigate"} {
				w.refuses(w.ask("GET", target, "", "Sec-Fetch-Site", site, "Sec-Fetch-Mode", mode), 403, "another origin")
			}
		}
		w.refuses(w.ask("GET", target, "", "Origin", "http://evil.example"), 403, "another origin")
		for _, own := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, {}} {
			if got := w.ask("GET", target, "", own...); got.Code != http.StatusOK {
				t.Errorf("%s %v: %d %s", target, own, got.Code, got.Body)
			}
		}
	}
	got := w.ask("GET", "/v1/status", "")
	for name := range got.Header() {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("%s: %s", name, got.Header().Get(name))
		}
	}
	if got.Header().Get("Cross-Origin-Resource-Policy") != "same-origin" {
		t.Errorf("the answer can be embedded: %v", got.Header())
	}
}

func TestAJobIsNotAnswered(t *testing.T) {
	w := newWorld(t)
	w.drain = func(context.Context) error {
		t.Error("a job drained the replica")
		return nil
	}
	for _, c := range [][3]string{
		{"POST", "/v1/drain", ""}, {"POST", "/v1/jobs/reports/trigger", ""}, {"GET", "/v1/status", ""}, {"GET", "/", ""},
		{"PUT", "/v1/timers/made", `{"schedule": "@daily", "http": {"url": "http://127.0.0.1/"}}`},
	} {
		for _, run := range []string{"4b06b84c-71d9-4071-8ab2-a07f5edf4dfc", ""} {
			r := httptest.NewRequest(c[0], c[1], strings.NewReader(c[2]))
			r.Host = "localhost:9748"
			r.Header["Solotick-Run"] = []string{run, "4b06b84c-71d9-4071-8ab2-a07f5edf4dfc"}
			r.Header.Set("Content-Type", "application/json")
			got := httptest.NewRecorder()
			w.api.ServeHTTP(got, r)
			w.refuses(got, 403, "a job sent this request")
		}
	}
	if timers, err := w.store.Timers(t.Context(), 10); err != nil || len(timers) != 0 {
		t.Errorf("timers were set: %v, %v", timers, err)
	}
}

func TestEveryAnswerIsJSONThatNobodyKeeps(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		method, target string
		status         int
	}{
		{"GET", "/v1/status", 200}, {"GET", "/v1/nothing", 404}, {"GET", "/v1/", 404}, {"GET", "/v1/status/", 404}, {"GET", "//v1/status", 404},
		{"GET", "/v1/../v1/status", 404}, {"GET", "/v1/%2e%2e/status", 404}, {"GET", "/v1//status", 404}, {"GET", "/v1/jobs/", 404}, {"GET", "/v1/jobs//trigger", 404},
		{"DELETE", "/v1/status", 405}, {"GET", "/v1/jobs/reports/trigger", 405}, {"OPTIONS", "/v1/status", 405}, {"BREW", "/v1/drain", 405}, {"PATCH", "/v1/nothing", 404},
		{"GET", "/v1/jobs/a%2Fb", 404}, {"POST", "/v1/jobs/%00/trigger", 404}, {"GET", "/favicon.ico", 404},
	} {
		got := w.ask(c.method, c.target, "")
		h := got.Header()
		if got.Code != c.status || h.Get("Content-Type") != "application/json; charset=utf-8" || h.Get("Cache-Control") != "no-store" ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" || h.Get("Solotick-Replica") != "app-1" {
			t.Errorf("%s %s: %d %v, want %d", c.method, c.target, got.Code, h, c.status)
		}
		if c.status >= 400 && !strings.HasPrefix(got.Body.String(), `{"error":"`) {
			t.Errorf("%s %s: %s", c.method, c.target, got.Body)
		}
	}
}

func TestAMethodThatAPathDoesNotTakeIsToldWhichItTakes(t *testing.T) {
	w := newWorld(t)
	for target, allow := range map[string]string{"/v1/status": "GET, HEAD", "/v1/drain": "POST", "/v1/jobs/reports/pause": "POST"} {
		if got := w.ask("TRACE", target, "").Header().Get("Allow"); got != allow {
			t.Errorf("%s allows %q, want %q", target, got, allow)
		}
	}
	if got := w.ask("HEAD", "/v1/status", ""); got.Code != http.StatusOK {
		t.Errorf("HEAD: %d", got.Code)
	}
	if got := w.ask("HEAD", "/v1/drain", ""); got.Code != http.StatusMethodNotAllowed {
		t.Errorf("HEAD of what acts: %d", got.Code)
	}
}

func TestBodiesAreSmallJSON(t *testing.T) {
	w := newWorld(t)
	const pause = "/v1/jobs/reports/pause"
	body := `{"reason": "moving"}`
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", "application/json, text/plain", ";;"} {
		w.refuses(w.ask("POST", pause, body, "Content-Type", kind), 415, "must be JSON")
	}
	w.refuses(w.ask("POST", pause, strings.Repeat(" ", maxBody)+body), 413, "larger than 64 KiB")
	w.refuses(w.ask("POST", pause, body[:len(body)-1]), 400, "not JSON")
	w.refuses(w.ask("POST", pause, body+"{}"), 400, "goes on after its end")
	w.refuses(w.ask("POST", pause, body+"x"), 400, "goes on after its end")
	w.refuses(w.ask("POST", pause, "[]"), 400, "must be a JSON object")
	w.refuses(w.ask("POST", pause, `{"reason": 5}`), 400, `\"reason\" must be a text, not a number`)
	w.refuses(w.ask("POST", pause, `{"raeson": "x"}`), 400, `unknown key \"raeson\"`)
	w.refuses(w.ask("POST", pause, `{"reason": "x`+"\x00"+`"}`), 400, "not JSON")
	w.refuses(w.ask("POST", pause, strings.Repeat("[", 60000)), 400, "not JSON")
	if got := w.ask("POST", pause, body, "Content-Type", "Application/JSON; charset=utf-8"); got.Code != http.StatusOK {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestABodyOfUnknownLengthIsBoundedToo(t *testing.T) {
	w := newWorld(t)
	r, err := http.NewRequest("POST", "http://localhost/v1/jobs/reports/pause", struct{ *strings.Reader }{strings.NewReader(strings.Repeat("x", maxBody+1))})
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = -1
	r.Header.Set("Content-Type", "application/json")
	out := httptest.NewRecorder()
	w.api.ServeHTTP(out, r)
	w.refuses(out, 413, "larger than 64 KiB")
}

func TestANameThatNothingCanHaveIsTheCallersMistake(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("a", 3000)
	for _, name := range []string{
		"%20", "a%20b", "%00", "a%0Ab", "%ff", "%7B%7D", "A", "-", "%F0%9F%98%80", "timer:a", "@timers", "a:b", long,
	} {
		for _, c := range [][3]string{
			{"GET", "/v1/jobs/%s", ""},
			{"POST", "/v1/jobs/%s/trigger", ""}, {"POST", "/v1/jobs/%s/pause", `{"reason": "x"}`}, {"POST", "/v1/jobs/%s/resume", ""},
			{"GET", "/v1/runs?job=%s", ""}, {"GET", "/v1/runs?failed=true&job=%s", ""},
			{"GET", "/v1/runs?job=timer:%s", ""},
			{"GET", "/v1/timers/%s", ""}, {"DELETE", "/v1/timers/%s", ""},
			{"PUT", "/v1/timers/%s", `{"after": "1s", "http": {"url": "http://127.0.0.1/"}}`},
		} {
			target := strings.Replace(c[1], "%s", name, 1)
			if got := w.ask(c[0], target, c[2]); got.Code >= 500 {
				t.Errorf("%s %.60s: %d %.200s", c[0], target, got.Code, got.Body)
			}
		}
	}
}
