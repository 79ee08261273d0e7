package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
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

func TestATimerWithAScheduleKeepsTheTimeForWhichItWaits(t *testing.T) {
	w := newWorld(t)
	const path, shown = "/v1/timers/user-17", `{"id": "user-17", "at": "2027-03-29T07:00:00.000Z"}`
	body := `{"schedule": "0 9 * * *", "timeZone": "Europe/Berlin", ` + target + `}`
	w.says(w.ask("PUT", path, body), 201, shown)
	w.says(w.ask("PUT", path, body), 200, shown)
	w.says(w.ask("GET", path, ""), 200, shown[:len(shown)-1]+`, "definition": `+body+`}`)
	w.says(w.ask("GET", "/v1/timers", ""), 200, `[`+shown[:len(shown)-1]+`, "schedule": "0 9 * * *", "timeZone": "Europe/Berlin"}]`)
	other := `{"schedule": "0 8 * * *", ` + target + `}`
	w.says(w.ask("PUT", path, other), 200, `{"id": "user-17", "at": "2027-03-28T08:00:00.000Z"}`)
	timer, err := config.ParseTimer("user-18", []byte(body), morning)
	if err != nil {
		t.Fatal(err)
	}
	later := time.Date(2027, 4, 1, 7, 0, 0, 0, time.UTC) // its times until then have been
	if _, _, err := w.store.SetSeries(t.Context(), "user-18", later, timer.Source); err != nil {
		t.Fatal(err)
	}
	w.says(w.ask("PUT", "/v1/timers/user-18", body), 200, `{"id": "user-18", "at": "2027-04-01T07:00:00.000Z"}`)
	w.says(w.ask("DELETE", path, ""), 200, `{"id": "user-17", "deleted": true}`)
	w.refuses(w.ask("DELETE", path, ""), 404, "no timer of that id waits")
	w.refuses(w.ask("PUT", path, `{"schedule": "0 8 * * *", "end": "2027-03-28T08:00:00Z", `+target+`}`), 422, "no time in the next ten years")
}

func TestAGroupOfTimersIsShownAndDeleted(t *testing.T) {
	w := newWorld(t)
	const path, shown = "/v1/timers?group=user-17", `{"id": "user-17.trial", "at": "2027-03-28T08:00:00.000Z"}`
	w.says(w.ask("GET", path, ""), 200, `[]`)
	w.says(w.ask("DELETE", path, ""), 200, `{"group": "user-17", "deleted": 0}`)
	once := `{"at": "2027-03-28T08:00:00Z", ` + target + `}`
	for _, id := range []string{"user-17.trial", "user-17", "user-171.x", "user-18.trial"} {
		w.ask("PUT", "/v1/timers/"+id, once)
	}
	w.ask("PUT", "/v1/timers/user-17.mail", `{"schedule": ["0 9 * * *", "@daily"], `+target+`}`)
	w.says(w.ask("GET", path+"&limit=1", ""), 200, `[`+shown+`]`)
	w.says(w.ask("GET", path, ""), 200, `[`+shown+`, {"id": "user-17.mail", "at": "2027-03-28T09:00:00.000Z", "schedule": "0 9 * * *; @daily", "timeZone": "UTC"}]`)
	w.says(w.ask("DELETE", path, ""), 200, `{"group": "user-17", "deleted": 2}`)
	w.says(w.ask("DELETE", path, ""), 200, `{"group": "user-17", "deleted": 0}`)
	if left, err := w.store.Timers(t.Context(), 10); len(left) != 3 || err != nil {
		t.Errorf("left: %+v, %v", left, err)
	}
	w.refuses(w.ask("DELETE", "/v1/timers", ""), 400, "the group is missing")
	w.refuses(w.ask("DELETE", "/v1/timers?group=", ""), 400, "the group is missing")
	w.refuses(w.ask("DELETE", path+"&limit=1", ""), 400, "unknown parameter")
	w.refuses(w.ask("DELETE", "/v1/timers?group=*", ""), 422, "is no group")
	w.refuses(w.ask("GET", "/v1/timers?group=user-17.", ""), 422, "is no group")
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
		`{` + target + `}`: "at, after or schedule is missing", `{"at": "2037-09-01T00:00:00Z", ` + target + `}`: "ten years", `[]`: "must be a mapping",
		`{"after": "1s", "http": {"url": "http://10.0.0.1/"}}`: "must be this machine",
	} {
		w.refuses(w.ask("PUT", "/v1/timers/one", body), 422, want)
	}
	if got := w.ask("PUT", "/v1/timers/one", `{"schedule": "61 * * * *", `+target+`}`).Body.String(); !strings.HasPrefix(got, `{"error":"timer \"one\": schedule `) {
		t.Errorf("its only problem is not the error: %s", got)
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

// TestWhatWasSetIsReadBackWhole saves timers, deletes them and sets them again: Redis then has the same data as before.
func TestWhatWasSetIsReadBackWhole(t *testing.T) {
	w := newWorld(t)
	for id, body := range map[string]string{
		"one":  `{"after": "1h", "retry": {"limit": 2}, "startRetries": 0, ` + target + `}`,
		"each": `{"schedule": "H 9 * * *", "timeZone": "Europe/Berlin", ` + target + `}`,
	} {
		path := "/v1/timers/" + id
		w.ask("PUT", path, body)
		kept := func() string {
			t.Helper()
			source, _, err := w.store.Timer(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return string(source)
		}
		was := kept()
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
		if again := kept(); again != was {
			t.Errorf("put back is\n%s\nand was\n%s", again, was)
		}
	}
}

// TestImpossibleNamesAreTheRequestsFault: the answer to a request with an impossible name says so, and not that Redis
// does not answer.
func TestImpossibleNamesAreTheRequestsFault(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"A%20B", "%00", "a%0Ab", "a%2Fb", "-", "%7B%7D", "%FF", strings.Repeat("x", 300), "a%09b", ":", "timer:"} {
		for _, c := range [][2]string{
			{"GET", "/v1/jobs/%s"},
			{"POST", "/v1/jobs/%s/trigger"}, {"POST", "/v1/jobs/%s/pause"}, {"POST", "/v1/jobs/%s/resume"},
			{"GET", "/v1/timers/%s"}, {"PUT", "/v1/timers/%s"}, {"DELETE", "/v1/timers/%s"}, {"GET", "/v1/runs?job=%s"},
		} {
			body := ""
			if c[0] == "PUT" {
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

func TestEachTimerOfABatchIsAnsweredAsIfItCameAlone(t *testing.T) {
	w := newWorld(t)
	const path, shown = "/v1/timers", `"at": "2027-03-28T08:00:00.000Z"`
	timer := func(id, more string) string {
		return `{"id": "` + id + `", "at": "2027-03-28T08:00:00Z", ` + more + target + `}`
	}
	w.says(w.ask("POST", path, `[]`), 200, `[]`)
	w.says(w.ask("POST", path, `[`+timer("a", "")+`, `+timer("b", "")+`]`), 200,
		`[{"id": "a", "result": "set", `+shown+`}, {"id": "b", "result": "set", `+shown+`}]`)
	series := `{"id": "each", "schedule": "0 9 * * *", "timeZone": "Europe/Berlin", ` + target + `}`
	w.mini.Set("solotick:{billing}:timer:fired", "fired - x 1")
	alone := func(id, body string) string {
		got := w.ask("PUT", "/v1/timers/"+id, body)
		return fmt.Sprintf(`{"id": %q, "result": "refused", "status": %d, %s`, id, got.Code, got.Body.String()[1:])
	}
	bad := `{"id": "bad", "at": "noon", "exec": {}, "http": {"url": "http://evil.example/"}}`
	w.says(w.ask("POST", path, `[`+timer("a", "")+`, `+bad+`, `+timer("b", `"timeout": "1m", `)+`, `+series+`, `+timer("fired", "")+`, `+
		timer("c", "")+`, `+timer("c", "")+`, `+timer("c", `"timeout": "1m", `)+`]`), 200,
		`[{"id": "a", "result": "unchanged", `+shown+`}, `+alone("bad", bad)+`, {"id": "b", "result": "replaced", `+shown+`},
		{"id": "each", "result": "set", "at": "2027-03-29T07:00:00.000Z"}, `+alone("fired", timer("fired", ""))+`,
		{"id": "c", "result": "set", `+shown+`}, {"id": "c", "result": "unchanged", `+shown+`}, {"id": "c", "result": "replaced", `+shown+`}]`)
	w.says(w.ask("GET", "/v1/timers/c", ""), 200, `{"id": "c", `+shown+`, "definition": {"at": "2027-03-28T08:00:00Z", `+target+`, "timeout": "1m"}}`)
	w.says(w.ask("PUT", "/v1/timers/each", series), 200, `{"id": "each", "at": "2027-03-29T07:00:00.000Z"}`)
	w.refuses(w.ask("PUT", "/v1/timers/other", series), 422, "is not that of the request")
	for body, want := range map[string]string{
		`{` + target + `}`: "the id must be", `5`: "no JSON object", `{"id": 5}`: "no JSON object", `{"id": "a", "ID": "b", "after": "1s", ` + target + `}`: "is not that of",
		`{"id": "a", "id": "a", "after": "1s", ` + target + `}`: "duplicate key",
	} {
		if got := w.ask("POST", path, `[`+body+`]`).Body.String(); !strings.Contains(got, `"status":422`) || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", body, got, want)
		}
	}
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, `, "x%d": 1`, i)
	}
	if got := w.ask("POST", path, `[{"id": "a"`+many.String()+`}]`).Body.String(); strings.Count(got, `"line"`) != 10 {
		t.Errorf("not ten problems: %s", got)
	}
	w.mini.HSet("solotick:{billing}:job:@timers", "bytes", fmt.Sprint(256<<20))
	if got := w.ask("POST", path, `[`+timer("new", "")+`]`).Body.String(); !strings.Contains(got, `"status":507`) {
		t.Errorf("a service that is full: %s", got)
	}
}

func TestABatchOfTimersIsBounded(t *testing.T) {
	w := newWorld(t)
	const path = "/v1/timers"
	batch := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"id": "t%d", "after": "1h", %s}`, i, target)
		}
		return "[" + b.String()[1:] + "]"
	}
	body := batch(1000)
	got := w.ask("POST", path, strings.Repeat(" ", maxBatch-len(body))+body).Body.String()
	if timers, err := w.store.Timers(t.Context(), 2000); err != nil || len(timers) != 1000 || strings.Count(got, `"result":"set"`) != 1000 {
		t.Errorf("%d timers, %v: %.200s", len(timers), err, got)
	}
	w.refuses(w.ask("POST", path, strings.Repeat(" ", maxBatch-len(body)+1)+body), 413, "larger than 4096 KiB")
	w.refuses(w.ask("POST", path, batch(1001)), 422, "not an array of up to 1000 timers")
	w.refuses(w.ask("POST", path, `{`+target+`}`), 422, "not an array of up to 1000 timers")
	w.refuses(w.ask("POST", path, ""), 400, "body is missing")

	// No more than two at once: these stand still while they ask for the table.
	asked, end := make(chan struct{}), make(chan struct{})
	w.reads = func() {
		asked <- struct{}{}
		<-end
	}
	var both sync.WaitGroup
	for range mostBatches {
		both.Go(func() { w.ask("POST", path, batch(1)) })
		<-asked
	}
	w.patience = time.Nanosecond
	w.refuses(w.ask("POST", path, "[]"), 503, "2 batches are being set or deleted")
	w.refuses(w.ask("DELETE", "/v1/timers?group=t", ""), 503, "2 batches are being set or deleted")
	close(end)
	both.Wait()
	w.reads, w.patience = nil, 0
	w.says(w.ask("POST", path, "[]"), 200, "[]")
}

func TestThereMayNotBeTooManyTimers(t *testing.T) {
	w := newWorld(t)
	w.mini.HSet("solotick:{billing}:job:@timers", "bytes", fmt.Sprint(256<<20))
	w.refuses(w.ask("PUT", "/v1/timers/one", `{"after": "1h", `+target+`}`), 507, "too many")
}

func TestJobsOfTheTableAreNotChanged(t *testing.T) {
	w := newWorld(t)
	w.refuses(w.ask("PUT", "/v1/jobs/reports", `{"schedule": "0 9 * * *", `+target+`}`), 405, "does not take")
	w.refuses(w.ask("DELETE", "/v1/jobs/reports", ""), 405, "does not take")
}

func TestSecretsOfTimersAreNotTold(t *testing.T) {
	w := newWorld(t)
	var told strings.Builder
	for _, c := range [][3]string{
		{"PUT", "/v1/timers/one", `{"after": "1h", ` + target + `}`}, {"GET", "/v1/timers", ""},
		{"PUT", "/v1/timers/g.each", `{"schedule": "0 9 * * *", ` + target + `}`}, {"GET", "/v1/timers?group=g", ""}, {"DELETE", "/v1/timers?group=g", ""},
		{"PUT", "/v1/timers/each", `{"schedule": "0 9 * * *", ` + target + `}`}, {"GET", "/v1/jobs", ""}, {"GET", "/v1/status", ""},
		{"PUT", "/v1/timers/each", `{"schedule": "0 9 * * *", "hunter2" ` + target + `}`}, {"PUT", "/v1/timers/each", `{"schedule": "nonsense", ` + target + `}`},
		{"POST", "/v1/timers", `[{"id": "hunter", "after": "never", ` + target + `}, {"id": "b", "after": "1h", ` + target + `}]`},
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
		w.refuses(w.ask("PUT", "/v1/timers/each", `{"schedule": "@daily", `+target), 422, words)
	}
}
