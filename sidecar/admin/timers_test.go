package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

const target = `"http": {"url": "http://127.0.0.1:8080/remind", "headers": {"Authorization": "Bearer hunter2"}, "body": "for hunter2"}`

func TestATimerIsSetShownAndDeleted(t *testing.T) {
	w := newWorld(t)
	const path, shown = "/v1/timers/invoice-4711", `{"id": "invoice-4711", "at": "2027-03-28T08:00:00.000Z"}`
	body := `{"at": "2027-03-28T10:00:00+02:00", ` + target + `}`
	w.refuses(w.ask("GET", path, ""), 404, "no timer of that id waits")
	w.says(w.ask("PUT", path, body), 201, shown)
	w.says(w.ask("PUT", path, body), 200, shown)
	w.says(w.ask("GET", path, ""), 200, shown[:len(shown)-1]+`, "definition": {"at": "2027-03-28T08:00:00Z", `+target+`}}`)
	w.says(w.ask("PUT", "/v1/timers/A.b_c-9", `{"at": "2027-03-28T07:30:00Z", `+target+`}`), 201, `{"id": "A.b_c-9", "at": "2027-03-28T07:30:00.000Z"}`)
	w.says(w.ask("GET", "/v1/timers", ""), 200, `[{"id": "A.b_c-9", "at": "2027-03-28T07:30:00.000Z"}, `+shown+`]`)
	w.says(w.ask("GET", "/v1/timers?limit=1", ""), 200, `[{"id": "A.b_c-9", "at": "2027-03-28T07:30:00.000Z"}]`)
	w.says(w.ask("DELETE", path, ""), 200, `{"id": "invoice-4711", "deleted": true}`)
	w.refuses(w.ask("DELETE", path, ""), 404, "no timer of that id waits")
	w.says(w.ask("GET", "/v1/runs?job=timer:invoice-4711", ""), 200, `[]`)

	got := w.ask("PUT", "/v1/timers/soon", `{"after": "90s", `+target+`}`).Body.String()
	if !strings.HasPrefix(got, `{"id":"soon","at":"2027-03-28T07:21:3`) {
		t.Errorf("after 90s: %s", got)
	}
	if _, at, err := w.store.Timer(t.Context(), "soon"); err != nil || at.Sub(morning.Add(90*time.Second)).Abs() > 2*time.Second {
		t.Errorf("in Redis it comes due at %s: %v", at, err)
	}
}

func TestABadTimerIsRefusedWithAllItsProblems(t *testing.T) {
	w := newWorld(t)
	got := w.ask("PUT", "/v1/timers/one", `{"at": "noon", "http": {"url": "http://evil.example/"}, "exec": {"command": ["sh"]}}`)
	text := got.Body.String()
	for _, want := range []string{`{"error":"the body has `, `"problems":[{"line":1,"column":`, `exec`, `"message":"timer \"one\": `} {
		if got.Code != http.StatusUnprocessableEntity || !strings.Contains(text, want) {
			t.Errorf("%d, no %s in %s", got.Code, want, text)
		}
	}
	for body, want := range map[string]string{
		`{` + target + `}`: "at or after is missing", `{"at": "2037-09-01T00:00:00Z", ` + target + `}`: "ten years", `[]`: "must be a mapping",
		`{"after": "1s", "http": {"url": "http://10.0.0.1/"}}`: "must be this machine",
	} {
		w.refuses(w.ask("PUT", "/v1/timers/one", body), 422, want)
	}
	w.refuses(w.ask("PUT", "/v1/timers/one", ""), 400, "body is missing")
	w.refuses(w.ask("PUT", "/v1/timers/one", "after: 90s"), 400, "not JSON")
	w.refuses(w.ask("PUT", "/v1/timers/one", `{"after": "1s"}`, "Content-Type", "text/plain"), 415, "must be JSON")
	w.refuses(w.ask("PUT", "/v1/timers/one?now=1", `{}`), 400, "takes no parameters")
	w.refuses(w.ask("PUT", "/v1/timers/-x", `{"after": "1s", `+target+`}`), 422, "the id must be")
	w.refuses(w.ask("PUT", "/v1/timers/"+strings.Repeat("x", 129), `{"after": "1s", `+target+`}`), 422, "at most 128")
	w.refuses(w.ask("GET", "/v1/timers?limit=0", ""), 400, "limit is not")
	w.refuses(w.ask("POST", "/v1/timers/one", `{}`), 405, "does not take")
}

func TestAJobIsMadeChangedAndDeleted(t *testing.T) {
	w := newWorld(t)
	const path = "/v1/jobs/made"
	body := `{"schedule": "0 9 * * *", ` + target + `}`
	w.says(w.ask("PUT", path, body), 201, `{"job": "made", "created": true}`)
	w.says(w.ask("PUT", path, strings.Replace(body, "9", "10", 1)), 200, `{"job": "made", "created": false}`)
	_, sources, err := w.store.DynamicJobs(t.Context())
	if err != nil || !strings.Contains(string(sources["made"]), "0 10 * * *") {
		t.Errorf("in Redis: %s, %v", sources["made"], err)
	}
	// The replica has not picked it up, and knows it all the same.
	if got := w.ask("GET", path, ""); got.Code != 200 || !strings.Contains(got.Body.String(), `"schedule":"0 10 * * *"`) {
		t.Errorf("it is shown as %d %s", got.Code, got.Body)
	}
	w.refuses(w.ask("POST", path+"/trigger", ""), 503, "not known to Redis")
	w.says(w.ask("DELETE", path, ""), 200, `{"job": "made", "deleted": true}`)
	w.refuses(w.ask("DELETE", path, ""), 404, "no job of that name")

	w.refuses(w.ask("PUT", path, `{"schedule": "61 * * * *", `+target+`}`), 422, "61 is out of range")
	w.refuses(w.ask("PUT", path, `{"schedule": "0 9 * * *", "exec": {"command": ["sh"]}}`), 422, "exec")
	if got := w.ask("PUT", path, `{"schedule": "61 * * * *", `+target+`}`).Body.String(); !strings.HasPrefix(got, `{"error":"job \"made\": schedule `) {
		t.Errorf("its only problem is not the error: %s", got)
	}
	w.refuses(w.ask("PUT", path, ""), 400, "body is missing")
	w.refuses(w.ask("PUT", "/v1/jobs/Made", body), 422, "must be lower-case")
	if _, sources, _ := w.store.DynamicJobs(t.Context()); len(sources) != 0 {
		t.Errorf("made by what was refused: %v", sources)
	}
}

// TestWhatWasSetIsReadBackWhole saves a timer and a job, deletes them and sets them again: Redis then has the same data
// as before.
func TestWhatWasSetIsReadBackWhole(t *testing.T) {
	w := newWorld(t)
	w.ask("PUT", "/v1/timers/one", `{"after": "1h", "retry": {"limit": 2}, "startRetries": 0, `+target+`}`)
	w.ask("PUT", "/v1/jobs/made", `{"name": "made", "schedule": "H 9 * * *", "timeZone": "Europe/Berlin", "jitter": "90s", `+target+`}`)
	kept := func() (timer, job string) {
		t.Helper()
		source, _, err := w.store.Timer(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		_, jobs, err := w.store.DynamicJobs(t.Context())
		if err != nil || jobs["made"] == nil {
			t.Fatalf("%s: %v", jobs, err)
		}
		return string(source), string(jobs["made"])
	}
	timer, job := kept()
	for _, path := range []string{"/v1/timers/one", "/v1/jobs/made"} {
		var whole struct{ Definition json.RawMessage }
		if err := json.Unmarshal(w.ask("GET", path, "").Body.Bytes(), &whole); err != nil || len(whole.Definition) == 0 {
			t.Fatalf("%s has no definition: %v", path, err)
		}
		if got := w.ask("DELETE", path, ""); got.Code != 200 {
			t.Fatalf("%s is not deleted: %s", path, got.Body)
		}
		if got := w.ask("PUT", path, string(whole.Definition)); got.Code != 201 {
			t.Errorf("%s is not put back: %d %s", path, got.Code, got.Body)
		}
	}
	if timerAgain, jobAgain := kept(); timerAgain != timer || jobAgain != job {
		t.Errorf("put back is\n%s\n%s\nand was\n%s\n%s", timerAgain, jobAgain, timer, job)
	}
	if got := w.ask("GET", "/v1/jobs/reports", "").Body.String(); strings.Contains(got, "definition") {
		t.Errorf("a job of the table has a definition: %s", got)
	}
}

// TestImpossibleNamesAreTheRequestsFault: the answer to a request with an impossible name says so, and not that Redis
// does not answer.
func TestImpossibleNamesAreTheRequestsFault(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"A%20B", "%00", "a%0Ab", "a%2Fb", "-", "%7B%7D", "%FF", strings.Repeat("x", 300), "a%09b", ":", "timer:"} {
		for _, c := range [][2]string{
			{"GET", "/v1/jobs/%s"}, {"DELETE", "/v1/jobs/%s"}, {"PUT", "/v1/jobs/%s"},
			{"POST", "/v1/jobs/%s/trigger"}, {"POST", "/v1/jobs/%s/pause"}, {"POST", "/v1/jobs/%s/resume"},
			{"GET", "/v1/timers/%s"}, {"PUT", "/v1/timers/%s"}, {"DELETE", "/v1/timers/%s"}, {"GET", "/v1/runs?job=%s"},
		} {
			body := ""
			switch {
			case c == [2]string{"PUT", "/v1/jobs/%s"}:
				body = `{"schedule": "0 9 * * *", ` + target + `}`
			case c[0] == "PUT":
				body = `{"after": "90s", ` + target + `}`
			}
			path := fmt.Sprintf(c[1], name)
			got := w.ask(c[0], path, body)
			if got.Code < 400 || got.Code > 499 || !strings.HasPrefix(got.Body.String(), `{"error":"`) {
				if c[1] == "/v1/runs?job=%s" && name == "timer:" && got.Code == 200 {
					continue // the history of a timer that was never set
				}
				t.Errorf("%s %s is answered %d %s", c[0], path, got.Code, got.Body)
			}
		}
	}
}

func TestThereMayNotBeTooManyJobs(t *testing.T) {
	w := newWorld(t)
	for n := range service.MaxJobs {
		w.mini.HSet("solotick:{billing}:jobs", fmt.Sprintf("job-%d", n), "{}")
	}
	w.refuses(w.ask("PUT", "/v1/jobs/made", `{"schedule": "0 9 * * *", `+target+`}`), 507, "too many")
}

func TestJobsOfTheTableAreNotChanged(t *testing.T) {
	w := newWorld(t)
	w.refuses(w.ask("PUT", "/v1/jobs/reports", `{"schedule": "0 9 * * *", `+target+`}`), 409, `job \"reports\" is in the table`)
	w.refuses(w.ask("DELETE", "/v1/jobs/reports", ""), 409, `job \"reports\" is in the table`)
	if _, sources, err := w.store.DynamicJobs(t.Context()); err != nil || len(sources) != 0 {
		t.Errorf("%v, %v", sources, err)
	}
}

func TestSecretsOfTimersAndJobsAreNotTold(t *testing.T) {
	w := newWorld(t)
	var told strings.Builder
	for _, c := range [][3]string{
		{"PUT", "/v1/timers/one", `{"after": "1h", ` + target + `}`}, {"GET", "/v1/timers", ""},
		{"PUT", "/v1/jobs/made", `{"schedule": "0 9 * * *", ` + target + `}`}, {"GET", "/v1/jobs", ""}, {"GET", "/v1/status", ""},
		{"PUT", "/v1/jobs/made", `{"schedule": "0 9 * * *", "hunter2" ` + target + `}`}, {"PUT", "/v1/jobs/made", `{"schedule": "nonsense", ` + target + `}`},
		{"PUT", "/v1/timers/one", `{"after": "never", ` + target + `}`}, {"PUT", "/v1/timers/one", `{"after": "1h", "http": {"url": "http://u:hunter2@10.0.0.1/"}}`},
	} {
		told.WriteString(w.ask(c[0], c[1], c[2]).Body.String())
	}
	if strings.Contains(told.String(), "hunter2") {
		t.Errorf("told: %s", &told)
	}
}

func TestATimerThatFiredIsNotSetAgain(t *testing.T) {
	w := newWorld(t)
	body := `{"at": "2027-03-28T07:20:00Z", ` + target + `}`
	w.ask("PUT", "/v1/timers/one", body)
	seen, err := w.store.Look(t.Context(), 10)
	if err != nil || len(seen.Due) != 1 {
		t.Fatalf("due: %+v, %v", seen.Due, err)
	}
	d := seen.Due[0]
	l, a, err := w.store.Locks.Acquire(t.Context(), lock.Claim{Job: d.Job, Tick: d.Tick, Replica: "app-1", TTL: 15 * time.Second, Policy: lock.Allow, Kind: d.Kind, Attempt: d.Attempt,
		Member: d.Member()})
	if err != nil || l == nil {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, err := l.Finish(t.Context(), time.Second, lock.Ending{}); err != nil {
		t.Fatal(err)
	}
	w.refuses(w.ask("PUT", "/v1/timers/one", body), 409, "the timer has fired")
}

func TestWhatIsMadeHereCallsTheAppAndNothingElse(t *testing.T) {
	w := newWorld(t)
	for url, words := range map[string]string{
		"http://unix:/run/docker.sock:/containers/create": "a unix socket that neither a job of the table",
		"http://127.0.0.1:9748/v1/drain":                  "own admin address",
		"http://localhost:9748/v1/drain":                  "own admin address",
	} {
		target := `"http": {"url": "` + url + `"}}`
		w.refuses(w.ask("PUT", "/v1/timers/one", `{"after": "1s", `+target), 422, words)
		w.refuses(w.ask("PUT", "/v1/jobs/made", `{"schedule": "@daily", "guarantee": "every-replica", `+target), 422, words)
	}
}
