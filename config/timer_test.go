package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// fullTimer has every key that a timer with a schedule can have.
const fullTimer = `{
	"schedule": "0 9 * * MON-FRI", "timeZone": "Europe/Berlin",
	"http": {
		"method": "PUT", "url": "http://127.0.0.1:8080/report?a=${A}", "headers": {"X-B": "${B}", "X-A": "\ud83d\ude00"},
		"body": "{\"x\": \"\u2028\u007f\\ud83d <&>\"}", "successCodes": ["200 - 204", 404], "idempotencyKey": "uuid",
		"async": {"timeout": "60m", "heartbeat": "6s"}
	},
	"timeout": "600s", "guarantee": "at-least-once",
	"startRetries": 7, "retry": {"limit": 3, "backoff": "10s", "maxBackoff": "1m", "on": [503]},
	"start": "2026-12-01T01:00:00+01:00", "end": "2027-12-01T00:00:00Z"
}`

func TestEveryKeyOfATimerEndsUpInItsPlace(t *testing.T) {
	timer, err := ParseTimer("report", []byte(fullTimer), testNow)
	if err != nil {
		t.Fatal(err)
	}
	got := timer.Job
	if timer.Repeats == nil || timer.Repeats.String() != "0 9 * * MON-FRI" || got.Schedule != nil || got.Fingerprint != "" {
		t.Errorf("repeats %v, schedule %v, fingerprint %q", timer.Repeats, got.Schedule, got.Fingerprint)
	}
	equal(t, "job", got, Job{
		Name: "timer:report", TimeZone: "Europe/Berlin",
		HTTP: &HTTP{
			Method: "PUT", URL: "http://127.0.0.1:8080/report?a=${A}", Headers: map[string]string{"X-B": "${B}", "X-A": "😀"},
			Body: "{\"x\": \"\u2028\x7f\\ud83d <&>\"}", SuccessCodes: []CodeRange{{200, 204}, {404, 404}}, IdempotencyKey: KeyUUID,
			Async: &Async{time.Hour, 6 * time.Second},
		},
		Timeout: 10 * time.Minute, Guarantee: AtLeastOnce, ConcurrencyPolicy: Allow, Missed: Latest,
		StartRetries: 7, Retry: Retry{3, 10 * time.Second, time.Minute, []CodeRange{{503, 503}}}, Lock: Lock{15 * time.Second, time.Second},
		Start: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), End: time.Date(2027, 12, 1, 0, 0, 0, 0, time.UTC),
	})
}

func TestATimerIsKeptInOneForm(t *testing.T) {
	timer, err := ParseTimer("report", []byte(fullTimer), testNow)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"schedule":"0 9 * * MON-FRI","timeZone":"Europe/Berlin",` +
		`"http":{"method":"PUT","url":"http://127.0.0.1:8080/report?a=${A}","headers":{"X-A":"😀","X-B":"${B}"},` +
		`"body":"{\"x\": \"\u2028\u007f\\ud83d <&>\"}","successCodes":["200-204","404"],"idempotencyKey":"uuid",` +
		`"async":{"timeout":"1h","heartbeat":"6s"}},` +
		`"timeout":"10m","guarantee":"at-least-once",` +
		`"startRetries":7,"retry":{"limit":3,"backoff":"10s","maxBackoff":"1m","on":["503"]},` +
		`"start":"2026-12-01T00:00:00Z","end":"2027-12-01T00:00:00Z"}`
	if string(timer.Source) != want {
		t.Errorf("\n got %s\nwant %s", timer.Source, want)
	}
	again, err := ParseTimer("report", timer.Source, testNow)
	if err != nil || string(again.Source) != want || again.Job.Content != timer.Job.Content {
		t.Errorf("read again it is %s, %v", again.Source, err)
	}
	yaml, err := ParseTimer("a", []byte("http:\n  url: http://127.0.0.1/x\n  headers:\n# nothing\n  async:\nretry:\nschedule: '@daily'\ntimeout: 5m0s\n"), testNow)
	if want := `{"schedule":"@daily","http":{"url":"http://127.0.0.1/x","async":{}},"timeout":"5m"}`; err != nil || string(yaml.Source) != want {
		t.Errorf("of YAML it is %s, %v", yaml.Source, err)
	}
}

// TestWhatTheAPICannotTakeIsExplained compares the problems of bad bodies with reviewed ones.
func TestWhatTheAPICannotTakeIsExplained(t *testing.T) {
	const http = `"http": {"url": "http://127.0.0.1/x"}`
	for _, c := range []struct{ id, body, want string }{
		{"a", ``, "body: the body is empty\n  hint: begin with at:, after: or schedule:"},
		{"a", `{}`, "body:1:1: timer \"a\": at, after or schedule is missing | at: \"2026-12-24T18:00:00Z\", after: 90s, or schedule: \"0 9 * * *\"\nbody:1:1: timer \"a\": http is missing | http: {url: \"http://127.0.0.1:8080/path\"}"},
		{"a", `["x"]`, "body:1:1: timer \"a\": a timer must be a mapping, not a list | begin with at:, after: or schedule:"},
		{"a", `{"timeZone": "Europe/Berlin", "at": "2026-11-20T12:00:00Z", "start": "2026-11-20T12:00:00Z", ` + http + `}`, "body:1:2: timer \"a\": timeZone needs a schedule | schedule: \"0 9 * * *\""},
		{"a", `{"after": "1s", "end": "2026-12-20T12:00:00Z", ` + http + `}`, "body:1:17: timer \"a\": end needs a schedule | schedule: \"0 9 * * *\""},
		{"a", `{"schedule": "@lease", ` + http + `}`, "body:1:14: timer \"a\": schedule \"@lease\": is for a job with claim: an app asks for it | put a job that needs it into the table"},
		{"a", `{"schedule": "@daily", "exec": {"command": ["x"]}}`, "body:1:1: timer \"a\": http is missing | http: {url: \"http://127.0.0.1:8080/path\"}\nbody:1:24: timer \"a\": \"exec\" is for jobs of the table alone | put a job that needs it into the table"},
		{"a", `{"schedule": "@daily", "allowRemote": true, "http": {"url": "http://example.com/x"}}`, "body:1:24: timer \"a\": \"allowRemote\" is for jobs of the table alone | put a job that needs it into the table\nbody:1:61: timer \"a\": http.url \"http://example.com/x\": must be this machine: localhost, 127.0.0.1, [::1] or a unix socket | only a job of the table can call another host"},
		{"a", `{"schedule": "@daily", "exclude": [], "notify": {"url": "http://h/KANARIENVOGEL"}, ` + http + `}`, "body:1:24: timer \"a\": \"exclude\" is for jobs of the table alone | put a job that needs it into the table\nbody:1:39: timer \"a\": \"notify\" is for jobs of the table alone | put a job that needs it into the table"},
		{"a", `{"cron": "@daily", ` + http + `, "timeout": 300}`, "body:1:2: timer \"a\": unknown key \"cron\" | did you mean \"schedule\"?\nbody:1:70: timer \"a\": timeout \"300\": a duration needs a unit | for seconds write 300s"},
		{"a", `{"schedule": "61 * * * *", ` + http + `, "url": "x", "redis": {}}`,
			"body:1:14: timer \"a\": schedule \"61 * * * *\": minute \"61\": 61 is out of range: allowed are 0-59\n" +
				"body:1:67: timer \"a\": unknown key \"url\" | \"url\" belongs under http\n" +
				"body:1:79: timer \"a\": unknown key \"redis\" | allowed here: at, after, id, schedule, timeZone, http, timeout, guarantee, " +
				"startRetries, retry, start, end"},
		{"a", `{"schedule": "@daily", "http": {"url": "https://127.0.0.1/x", "tls": {"caFile": "/x"}, "sign": {"secretFile": "/x"}, "headers": {"A": {"file": "/x"}}}}`,
			"body:1:63: timer \"a\": http: \"tls\" is for jobs of the table alone | put a job that needs it into the table\n" +
				"body:1:88: timer \"a\": http: \"sign\" is for jobs of the table alone | put a job that needs it into the table\n" +
				"body:1:135: timer \"a\": http.headers.A must be text, not a mapping | put text that contains a colon and a space in quotes"},
		{"a", "schedule: &s '@daily'\nhttp: {url: *s}", "body:2:13: timer \"a\": an alias (*…) is allowed only in the table | write out what it stands for"},
		{"a", `{"schedule": "@daily", "http": {"url": "http://127.0.0.1/x", "body": "` + strings.Repeat("x", MaxSource) + `"}}`, "body: the body is larger than 64 KiB"},
		{"a", `{"schedule": "@daily", "http": {"url": "http://127.0.0.1/x", "body": "` + strings.Repeat("\u200b", MaxSource/6) + `"}}`, "body: timer \"a\": as JSON it is larger than 64 KiB"},
		{"a", "schedule: '@daily'\n---\n", "body:2:1: a second document begins here; a timer is one | remove the --- and what follows, or keep it in a file of its own"},
		{"a", "\xff", "body:1:1: the body is not plain text here: byte 0xff is not UTF-8 | is this the right file? a timer is text in UTF-8"},

		{"a", `{` + http + `}`, "body:1:1: timer \"a\": at, after or schedule is missing | at: \"2026-12-24T18:00:00Z\", after: 90s, or schedule: \"0 9 * * *\""},
		{"a", `{"after": "0s"}`, "body:1:1: timer \"a\": http is missing | http: {url: \"http://127.0.0.1:8080/path\"}"},
		{"a", `{"at": "2026-11-20T12:00:00Z", "after": "1s", ` + http + `}`, "body:1:32: timer \"a\": at says already when | keep one of them"},
		{"a", `{"at": "2036-11-23T12:00:00Z", ` + http + `}`, "body:1:8: timer \"a\": at \"2036-11-23T12:00:00Z\": must be at most ten years ahead"},
		{"a", `{"at": "1969-12-31T23:59:59Z", ` + http + `}`, "body:1:8: timer \"a\": at \"1969-12-31T23:59:59Z\": must not be before 1970"},
		{"a", `{"at": 1795215739, ` + http + `}`, "body:1:8: timer \"a\": at must be a time, not a number | write it like 2026-12-01T00:00:00Z or 2026-12-01T00:00:00+01:00"},
		{"a", `{"after": "90000h", ` + http + `}`, "body:1:11: timer \"a\": after \"90000h\": must be at most ten years"},
		{"a", `{"after": "-1s", ` + http + `}`, "body:1:11: timer \"a\": after \"-1s\": must not be negative"},
		{"a", `{"after": "1s", "guarantee": "every-replica", ` + http + `}`, "body:1:30: timer \"a\": guarantee \"every-replica\": must be at-most-once or at-least-once"},
		{"a", `{"after": "1s", "schedule": "@daily", "exec": {}, ` + http + `}`,
			"body:1:17: timer \"a\": after says already when | keep one of them\n" +
				"body:1:39: timer \"a\": \"exec\" is for jobs of the table alone | put a job that needs it into the table"},
		{"a", `{"schedule": "@daily", "jitter": "1s", "calendars": {}, "timeZone": "Mars", ` + http + `}`,
			"body:1:24: timer \"a\": unknown key \"jitter\" | allowed here: at, after, id, schedule, timeZone, http, timeout, guarantee, startRetries, retry, start, end\n" +
				"body:1:40: timer \"a\": unknown key \"calendars\" | allowed here: at, after, id, schedule, timeZone, http, timeout, guarantee, startRetries, retry, start, end\n" +
				"body:1:69: timer \"a\": timeZone \"Mars\": there is no such time zone | write an IANA name, as UTC or Europe/Berlin"},
		{"a", `{"after": "1s", "http": {"url": "https://127.0.0.1/x", "tls": {}, "sign": {}, "headers": {"A": {"file": "/x"}}}}`,
			"body:1:56: timer \"a\": http: \"tls\" is for jobs of the table alone | put a job that needs it into the table\n" +
				"body:1:67: timer \"a\": http: \"sign\" is for jobs of the table alone | put a job that needs it into the table\n" +
				"body:1:96: timer \"a\": http.headers.A must be text, not a mapping | put text that contains a colon and a space in quotes"},
		{"-a", `{"after": "1s", ` + http + `}`, "body: timer \"-a\": the id must be letters, digits, -, . and _, and begin and end with a letter or digit"},
		{"a\n", `{"after": "1s", ` + http + `}`, "body: timer \"a\\n\": the id must be letters, digits, -, . and _, and begin and end with a letter or digit"},
		{strings.Repeat("a", 129), `{"after": "1s", ` + http + `}`, "body: timer \"" + strings.Repeat("a", 60) + "…\": the id must have at most 128 characters"},
	} {
		var got []string
		for _, p := range apiProblems(t, c.id, c.body) {
			p.Source = ""
			got = append(got, strings.Replace(p.String(), "\n  hint: ", " | ", 1))
		}
		if c.body == "" {
			got[0] = strings.Replace(got[0], " | ", "\n  hint: ", 1)
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s %.60s:\n got %s\nwant %s", c.id, c.body, strings.Join(got, "\n"), c.want)
		}
	}
}

// apiProblems gives the problems of what the API was given, or none.
func apiProblems(t *testing.T, id, body string) Problems {
	t.Helper()
	_, err := ParseTimer(id, []byte(body), testNow)
	var problems Problems
	if err != nil && !errors.As(err, &problems) {
		t.Fatalf("%v is no Problems", err)
	}
	return problems
}

// TestTheIDAmongTheKeysIsThatOfTheRequest, and is kept neither in Redis nor for the next timer.
func TestTheIDAmongTheKeysIsThatOfTheRequest(t *testing.T) {
	const rest = `"after": "1h", "http": {"url": "http://127.0.0.1/x"}}`
	for range 3 {
		a, err := ParseTimer("a", []byte(`{"id": "a", `+rest), testNow)
		if err != nil || strings.Contains(string(a.Source), "id") {
			t.Errorf("%+v, %v", a, err)
		}
		if b, err := ParseTimer("b", []byte(`{`+rest), testNow); err != nil || string(b.Source) != string(a.Source) {
			t.Errorf("%+v, %v", b, err)
		}
	}
	if _, err := ParseTimer("b", []byte(`{"id": "a", `+rest), testNow); err == nil || !strings.Contains(err.Error(), "body:1:2: ") || !strings.Contains(err.Error(), "id is not that of the request") {
		t.Errorf("%v", err)
	}
}

func TestATimerIsOneRun(t *testing.T) {
	timer, err := ParseTimer("Order-4711.reminder_2", []byte(`{"after": "1h30m", "http": {"url": "http://localhost/x", "body": "${X}"}, "timeout": "10s",
		"guarantee": "at-least-once", "retry": {"limit": 2}, "startRetries": 0}`), testNow.Add(1234567*time.Nanosecond))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 20, 13, 30, 0, 1e6, time.UTC)
	timer.Job.Fingerprint = ""
	equal(t, "timer", *timer, Timer{
		ID: "Order-4711.reminder_2", At: at,
		Job: Job{
			Name: "timer:Order-4711.reminder_2", TimeZone: "UTC",
			HTTP:    &HTTP{Method: "POST", URL: "http://localhost/x", Body: "${X}", SuccessCodes: []CodeRange{{200, 299}}},
			Timeout: 10 * time.Second, Guarantee: AtLeastOnce, ConcurrencyPolicy: Allow, Missed: Latest,
			Retry: Retry{2, 5 * time.Second, time.Minute, nil}, Lock: Lock{15 * time.Second, time.Second},
		},
		Source: []byte(`{"at":"2026-11-20T13:30:00.001Z","http":{"url":"http://localhost/x","body":"${X}"},"timeout":"10s",` +
			`"guarantee":"at-least-once","startRetries":0,"retry":{"limit":2}}`),
	})
}

func TestTheMomentOfATimerIsKept(t *testing.T) {
	for at, want := range map[string]string{
		`"at": "2026-11-20T14:00:00.5+01:00"`:  "2026-11-20T13:00:00.5Z",
		`"at": "2026-11-20T12:00:00.0019999Z"`: "2026-11-20T12:00:00.001Z",
		`"at": "2001-01-01T00:00:00Z"`:         "2001-01-01T00:00:00Z", // past: now
		`"at": "2036-11-20T12:00:00Z"`:         "2036-11-20T12:00:00Z",
		`"after": "0s"`:                        "2026-11-20T12:00:00Z",
		`"after": "87672h"`:                    "2036-11-20T12:00:00Z",
	} {
		timer, err := ParseTimer("a", fmt.Appendf(nil, `{%s, "http": {"url": "http://localhost/x"}}`, at), testNow)
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		// Another replica reads it later, or a little earlier by its own clock.
		for _, later := range []time.Duration{-time.Hour, 0, 24 * 365 * 10 * time.Hour} {
			again, err := ParseTimer("a", timer.Source, testNow.Add(later))
			if err != nil || !again.At.Equal(timer.At) || string(again.Source) != string(timer.Source) || again.Job.Content != timer.Job.Content {
				t.Errorf("%s, read again after %v: %v", at, later, err)
			}
		}
		if got := timer.At.Format(time.RFC3339Nano); got != want {
			t.Errorf("%s is %s, want %s", at, got, want)
		}
	}
}

func TestATimerWithAScheduleHasItsTimes(t *testing.T) {
	const body = `{"timeZone": "Europe/Berlin", "schedule": "0 9 * * MON-FRI", "end": "2026-11-25T00:00:00Z", "http": {"url": "http://localhost/x"}}`
	timer, err := ParseTimer("a", []byte(body), testNow) // a Friday, 12:00
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"schedule":"0 9 * * MON-FRI","timeZone":"Europe/Berlin","http":{"url":"http://localhost/x"},"end":"2026-11-25T00:00:00Z"}`
	if string(timer.Source) != want {
		t.Errorf("it is kept as %s", timer.Source)
	}
	for at, day := timer.At, 23; day < 25 || !at.IsZero(); day++ {
		again, err := ParseTimer("a", timer.Source, at)
		if err != nil || string(again.Source) != want || again.Job.Schedule != nil || again.Job.Fingerprint != "" {
			t.Fatalf("read again: %+v, %v", again, err)
		}
		if !at.Equal(time.Date(2026, 11, day, 8, 0, 0, 0, time.UTC)) {
			t.Fatalf("on the %dth it comes due at %s", day, at)
		}
		at = timer.Next(at)
	}
	for text, want := range map[string]time.Time{ // ten years with their leap days
		"@at 2036-11-20T12:00:00Z": time.Date(2036, 11, 20, 12, 0, 0, 0, time.UTC),
		"@at 2036-11-22T12:00:00Z": {}, "@at 2026-11-20T11:00:00Z": {},
	} {
		timer, err := ParseTimer("a", []byte(`{"schedule": "`+text+`", "http": {"url": "http://localhost/x"}}`), testNow)
		if err != nil || !timer.At.Equal(want) {
			t.Errorf("%s: %s, %v; want %s", text, timer.At, err, want)
		}
	}
}

// secretiveBodies have the canary in every place of a timer that may hold a secret.
var secretiveBodies = []string{
	`{
"schedule": "@daily", "timeout": "1m", "token":"KANARIENVOGEL",
  "http": {
    "url": "http://u:KANARIENVOGEL@127.0.0.1/x?token=KANARIENVOGEL", "method": "POST", "body":"KANARIENVOGEL",
    "headers": {"Authorization": "KANARIENVOGEL","X-B":"${KANARIENVOGEL:-KANARIENVOGEL}"}
  },
"missed": "all", "body":"KANARIENVOGEL"
}
`,
	`{"schedule": "@daily", "http": {"url": "http://127.0.0.1/x?token=KANARIENVOGEL", "headers": {"A":"KANARIENVOGEL"}, "body": "KANARIENVOGEL"}}`,
	`schedule: "@daily"
http:
  url: http://127.0.0.1/x?token=KANARIENVOGEL
  headers:
    Authorization: Bearer ${KANARIENVOGEL}
  body: |
    KANARIENVOGEL
    ${X:-KANARIENVOGEL}
timeout: 1m
`,
}

// TestJSONThatIsBrokenShowsNoNeighbour: the line of an error is judged alone then, and several keys may stand in it.
// Here the braces were forgotten.
func TestJSONThatIsBrokenShowsNoNeighbour(t *testing.T) {
	const text = `"missed": "\quit", "body":"KANARIENVOGEL"`
	problems := apiProblems(t, "a", text)
	if len(problems) != 1 || strings.Contains(problems.Error(), canary) || !strings.Contains(problems[0].Source, "missed") {
		t.Errorf("got %v", problems)
	}
}

// TestNoSlipOfThePenShowsASecretOfTheAPI breaks bodies at every place in many ways, as the table's test does.
func TestNoSlipOfThePenShowsASecretOfTheAPI(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: it computes for long")
	}
	for i, text := range secretiveBodies {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for at := range text {
				if at > 0 && isWord(text[at-1]) && isWord(text[at]) {
					continue
				}
				for _, insert := range inserts {
					for replaced := range 2 {
						slip, ok := edit(text, at, insert, replaced)
						if !ok {
							continue
						}
						if out := apiProblems(t, "a", slip).Error(); strings.Contains(out, canary) {
							t.Errorf("edited at %d, a secret is shown:\n%s", at, out)
						}
					}
				}
			}
		})
	}
}

// A decoder keeps nothing of a timer for the next one.
func TestTimersAreDecodedAlikeByADecoderThatWasUsed(t *testing.T) {
	bodies := []string{
		`{"at": "2026-11-20T14:00:00Z", "http": {"url": "http://localhost/x"}}`,
		`{"after": "1h", "http": {"url": "http://localhost/y", "method": "PUT", "headers": {"A": "b"}, "body": "${X}", "successCodes": ["200-204"], "idempotencyKey": "uuid"}, "timeout": "1s",
			"guarantee": "at-least-once", "retry": {"limit": 2, "backoff": "1s", "maxBackoff": "2s", "on": ["500-599"]}, "startRetries": 7}`,
		`{"at": "2001-01-01T00:00:00Z", "http": {"url": "http://localhost/x", "body": "z"}, "retry": {"limit": 1, "on": [409]}}`,
	}
	fresh := func() *timerDecoder { return timerDecoders.New().(*timerDecoder) }
	parse := func(d *timerDecoder, body string) (Timer, Job, []Problem) {
		timer := d.parse("a", nil, []byte(body), testNow)
		if err := d.Found(); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return *timer, d.job.Job, d.Warnings
	}
	for _, before := range bodies {
		for _, body := range bodies {
			used := fresh()
			parse(used, before)
			gotTimer, gotJob, gotWarnings := parse(used, body)
			timer, job, warnings := parse(fresh(), body)
			equal(t, "timer", gotTimer, timer)
			equal(t, "job", gotJob, job)
			equal(t, "warnings", gotWarnings, warnings)
		}
	}
}

func TestATimerHasTenSchedulesAtMost(t *testing.T) {
	body := func(n int) []byte {
		return []byte(`{"schedule": [` + strings.Repeat(`"0 9 * * *", `, n-1) + `"0 10 * * *"], "http": {"url": "http://127.0.0.1/"}}`)
	}
	if _, err := ParseTimer("j", body(10), testNow); err != nil {
		t.Error(err)
	}
	if _, err := ParseTimer("j", body(11), testNow); err == nil || !strings.Contains(err.Error(), "schedule must have at most 10 items, has 11") {
		t.Errorf("eleven: %v", err)
	}
}
