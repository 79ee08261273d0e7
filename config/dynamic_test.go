package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// fullJob has every key that a job of the API can have.
const fullJob = `{
	"name": "report", "schedule": "0 9 * * MON-FRI", "timeZone": "Europe/Berlin",
	"http": {
		"method": "PUT", "url": "http://127.0.0.1:8080/report?a=${A}", "headers": {"X-B": "${B}", "X-A": "\ud83d\ude00"},
		"body": "{\"x\": \"\u2028\u007f\\ud83d <&>\"}", "successCodes": ["200 - 204", 404], "idempotencyKey": "uuid"
	},
	"timeout": "600s", "guarantee": "at-least-once", "concurrencyPolicy": "Allow", "missed": "skip",
	"startingDeadline": "1h0m0s", "startRetries": 7, "retry": {"limit": 3, "backoff": "10s", "maxBackoff": "1m", "on": [503]},
	"lock": {"ttl": "20s", "safetyDelay": "0s"}, "jitter": "30s",
	"start": "2026-12-01T01:00:00+01:00", "end": "2027-12-01T00:00:00Z", "suspend": true, "reserved": true,
	"description": "a ${report}", "owner": "team-a", "runbook": "https://wiki/a", "labels": {"tier": "gold", "area": "a"}
}`

func TestEveryKeyOfADynamicJobEndsUpInItsPlace(t *testing.T) {
	job, err := ParseJob("report", []byte(fullJob))
	if err != nil {
		t.Fatal(err)
	}
	if job.Schedule == nil || job.Schedule.String() != "0 9 * * MON-FRI" || len(job.Fingerprint) != 16 || len(job.Content) != 16 {
		t.Errorf("schedule %v, fingerprint %q, content %q", job.Schedule, job.Fingerprint, job.Content)
	}
	got := *job
	got.Schedule, got.Fingerprint, got.Content, got.Source = nil, "", "", nil
	equal(t, "job", got, Job{
		Name: "report", TimeZone: "Europe/Berlin", Dynamic: true,
		HTTP: &HTTP{
			Method: "PUT", URL: "http://127.0.0.1:8080/report?a=${A}", Headers: map[string]string{"X-B": "${B}", "X-A": "😀"},
			Body: "{\"x\": \"\u2028\x7f\\ud83d <&>\"}", SuccessCodes: []CodeRange{{200, 204}, {404, 404}}, IdempotencyKey: KeyUUID,
		},
		Timeout: 10 * time.Minute, Guarantee: AtLeastOnce, ConcurrencyPolicy: Allow, Missed: Skip, StartingDeadline: time.Hour,
		StartRetries: 7, Retry: Retry{3, 10 * time.Second, time.Minute, []CodeRange{{503, 503}}},
		Lock: Lock{TTL: 20 * time.Second}, Jitter: 30 * time.Second,
		Start: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), End: time.Date(2027, 12, 1, 0, 0, 0, 0, time.UTC), Suspend: true, Reserved: true,
		Description: "a ${report}", Owner: "team-a", Runbook: "https://wiki/a", Labels: map[string]string{"tier": "gold", "area": "a"},
	})
}

func TestADynamicJobIsKeptInOneForm(t *testing.T) {
	job, err := ParseJob("report", []byte(fullJob))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"schedule":"0 9 * * MON-FRI","timeZone":"Europe/Berlin",` +
		`"http":{"method":"PUT","url":"http://127.0.0.1:8080/report?a=${A}","headers":{"X-A":"😀","X-B":"${B}"},` +
		`"body":"{\"x\": \"\u2028\u007f\\ud83d <&>\"}","successCodes":["200-204","404"],"idempotencyKey":"uuid"},` +
		`"timeout":"10m","guarantee":"at-least-once","concurrencyPolicy":"Allow","missed":"skip","startingDeadline":"1h",` +
		`"startRetries":7,"retry":{"limit":3,"backoff":"10s","maxBackoff":"1m","on":["503"]},` +
		`"lock":{"ttl":"20s","safetyDelay":"0s"},"jitter":"30s",` +
		`"start":"2026-12-01T00:00:00Z","end":"2027-12-01T00:00:00Z","suspend":true,"reserved":true,` +
		`"description":"a ${report}","owner":"team-a","runbook":"https://wiki/a","labels":{"area":"a","tier":"gold"}}`
	if string(job.Source) != want {
		t.Errorf("\n got %s\nwant %s", job.Source, want)
	}
	again, err := ParseJob("report", job.Source)
	if err != nil || string(again.Source) != want || again.Content != job.Content {
		t.Errorf("read again it is %s, %v", again.Source, err)
	}
	yaml, err := ParseJob("a", []byte("http:\n  url: http://127.0.0.1/x\n  headers:\n# nothing\nretry:\nschedule: '@daily'\ntimeout: 5m0s\n"))
	if want := `{"schedule":"@daily","http":{"url":"http://127.0.0.1/x"},"timeout":"5m"}`; err != nil || string(yaml.Source) != want {
		t.Errorf("of YAML it is %s, %v", yaml.Source, err)
	}
}

// TestWhatTheAPICannotTakeIsExplained compares the problems of bad bodies with reviewed ones.
func TestWhatTheAPICannotTakeIsExplained(t *testing.T) {
	const http = `"http": {"url": "http://127.0.0.1/x"}`
	for _, c := range []struct{ what, name, body, want string }{
		{"job", "a", ``, "body: the body is empty\n  hint: begin with schedule: and http:"},
		{"job", "a", `{}`, "body:1:1: job \"a\": http is missing | http: {url: \"http://127.0.0.1:8080/path\"}\nbody:1:1: job \"a\": schedule is missing | schedule: \"0 9 * * MON-FRI\""},
		{"job", "A b", `{"schedule": "@daily", ` + http + `}`, "body: job \"A b\": the name must be lower-case letters, digits, - and ., and begin and end with a letter or digit | write \"a-b\""},
		{"job", "", `{"schedule": "@daily", ` + http + `}`, "body: job \"\": the name must be lower-case letters, digits, - and ., and begin and end with a letter or digit"},
		{"job", "a", `["x"]`, "body:1:1: job \"a\": a job must be a mapping, not a list | begin with schedule: and http:"},
		{"job", "a", `{"name": "b", "schedule": "@daily", ` + http + `}`, "body:1:10: job \"a\": name \"b\": must be \"a\", as in the address | leave it out, or send the job under this name"},
		{"job", "a", `{"schedule": "@daily", "exec": {"command": ["x"]}}`, "body:1:1: job \"a\": http is missing | http: {url: \"http://127.0.0.1:8080/path\"}\nbody:1:24: job \"a\": \"exec\" is for jobs of the table alone | put a job that needs it into the table"},
		{"job", "a", `{"schedule": "@daily", "allowRemote": true, "http": {"url": "http://example.com/x"}}`, "body:1:24: job \"a\": \"allowRemote\" is for jobs of the table alone | put a job that needs it into the table\nbody:1:61: job \"a\": http.url \"http://example.com/x\": must be this machine: localhost, 127.0.0.1, [::1] or a unix socket | only a job of the table can call another host"},
		{"job", "a", `{"schedule": "@daily", "exclude": [], "notify": {"url": "http://h/KANARIENVOGEL"}, ` + http + `}`, "body:1:24: job \"a\": \"exclude\" is for jobs of the table alone | put a job that needs it into the table\nbody:1:39: job \"a\": \"notify\" is for jobs of the table alone | put a job that needs it into the table"},
		{"job", "a", `{"cron": "@daily", ` + http + `, "timeout": 300}`, "body:1:2: job \"a\": unknown key \"cron\" | did you mean \"schedule\"?\nbody:1:70: job \"a\": timeout \"300\": a duration needs a unit | for seconds write 300s"},
		{"job", "a", `{"schedule": "61 * * * *", ` + http + `, "url": "x", "redis": {}}`,
			"body:1:14: job \"a\": schedule \"61 * * * *\": minute \"61\": 61 is out of range: allowed are 0-59\n" +
				"body:1:67: job \"a\": unknown key \"url\" | \"url\" belongs under http\n" +
				"body:1:79: job \"a\": unknown key \"redis\" | allowed here: name, schedule, timeZone, http, timeout, guarantee, " +
				"concurrencyPolicy, concurrency, missed, startingDeadline, startRetries, retry, lock, jitter, start, end, suspend, observe, reserved, priority, every, description, owner, runbook, labels"},
		{"job", "a", `{"schedule": "@daily", "http": {"url": "https://127.0.0.1/x", "tls": {"caFile": "/x"}, "sign": {"secretFile": "/x"}, "headers": {"A": {"file": "/x"}}}}`,
			"body:1:63: job \"a\": http: \"tls\" is for jobs of the table alone | put a job that needs it into the table\n" +
				"body:1:88: job \"a\": http: \"sign\" is for jobs of the table alone | put a job that needs it into the table\n" +
				"body:1:135: job \"a\": http.headers.A must be text, not a mapping | put text that contains a colon and a space in quotes"},
		{"job", "a", "schedule: &s '@daily'\nhttp: {url: *s}", "body:2:13: job \"a\": an alias (*…) is allowed only in the table | write out what it stands for"},
		{"job", "a", `{"schedule": "@daily", "http": {"url": "http://127.0.0.1/x", "body": "` + strings.Repeat("x", MaxSource) + `"}}`, "body: the body is larger than 64 KiB"},
		{"job", "a", `{"schedule": "@daily", "http": {"url": "http://127.0.0.1/x", "body": "` + strings.Repeat("\u200b", MaxSource/6) + `"}}`, "body: job \"a\": as JSON it is larger than 64 KiB"},
		{"job", "a", "schedule: '@daily'\n---\n", "body:2:1: a second document begins here; a job is one | remove the --- and what follows, or keep it in a file of its own"},
		{"job", "a", "\xff", "body:1:1: the body is not plain text here: byte 0xff is not UTF-8 | is this the right file? a job is text in UTF-8"},

		{"timer", "a", `{` + http + `}`, "body:1:1: timer \"a\": at or after is missing | at: \"2026-12-24T18:00:00Z\", or after: 90s"},
		{"timer", "a", `{"after": "0s"}`, "body:1:1: timer \"a\": http is missing | http: {url: \"http://127.0.0.1:8080/path\"}"},
		{"timer", "a", `{"at": "2026-11-20T12:00:00Z", "after": "1s", ` + http + `}`, "body:1:32: timer \"a\": at says already when | keep one of them"},
		{"timer", "a", `{"at": "2036-11-23T12:00:00Z", ` + http + `}`, "body:1:8: timer \"a\": at \"2036-11-23T12:00:00Z\": must be at most ten years ahead"},
		{"timer", "a", `{"at": "1969-12-31T23:59:59Z", ` + http + `}`, "body:1:8: timer \"a\": at \"1969-12-31T23:59:59Z\": must not be before 1970"},
		{"timer", "a", `{"at": 1795215739, ` + http + `}`, "body:1:8: timer \"a\": at must be a time, not a number | write it like 2026-12-01T00:00:00Z or 2026-12-01T00:00:00+01:00"},
		{"timer", "a", `{"after": "90000h", ` + http + `}`, "body:1:11: timer \"a\": after \"90000h\": must be at most ten years"},
		{"timer", "a", `{"after": "-1s", ` + http + `}`, "body:1:11: timer \"a\": after \"-1s\": must not be negative"},
		{"timer", "a", `{"after": "1s", "guarantee": "every-replica", ` + http + `}`, "body:1:30: timer \"a\": guarantee \"every-replica\": must be at-most-once or at-least-once"},
		{"timer", "a", `{"after": "1s", "schedule": "@daily", "exec": {}, ` + http + `}`,
			"body:1:17: timer \"a\": unknown key \"schedule\" | allowed here: at, after, http, timeout, guarantee, startRetries, retry\n" +
				"body:1:39: timer \"a\": \"exec\" is for jobs of the table alone | put a job that needs it into the table"},
		{"timer", "a", `{"after": "1s", "http": {"url": "https://127.0.0.1/x", "tls": {}, "sign": {}, "headers": {"A": {"file": "/x"}}}}`,
			"body:1:56: timer \"a\": http: \"tls\" is for jobs of the table alone | put a job that needs it into the table\n" +
				"body:1:67: timer \"a\": http: \"sign\" is for jobs of the table alone | put a job that needs it into the table\n" +
				"body:1:96: timer \"a\": http.headers.A must be text, not a mapping | put text that contains a colon and a space in quotes"},
		{"timer", "-a", `{"after": "1s", ` + http + `}`, "body: timer \"-a\": the id must be letters, digits, -, . and _, and begin and end with a letter or digit"},
		{"timer", "a\n", `{"after": "1s", ` + http + `}`, "body: timer \"a\\n\": the id must be letters, digits, -, . and _, and begin and end with a letter or digit"},
		{"timer", strings.Repeat("a", 129), `{"after": "1s", ` + http + `}`, "body: timer \"" + strings.Repeat("a", 60) + "…\": the id must have at most 128 characters"},
	} {
		var got []string
		for _, p := range apiProblems(t, c.what, c.name, c.body) {
			p.Source = ""
			got = append(got, strings.Replace(p.String(), "\n  hint: ", " | ", 1))
		}
		if c.body == "" {
			got[0] = strings.Replace(got[0], " | ", "\n  hint: ", 1)
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s %.60s:\n got %s\nwant %s", c.what, c.body, strings.Join(got, "\n"), c.want)
		}
	}
}

// apiProblems gives the problems of what the API was given, or none.
func apiProblems(t *testing.T, what, name, body string) Problems {
	t.Helper()
	var err error
	if what == "job" {
		_, err = ParseJob(name, []byte(body))
	} else {
		_, err = ParseTimer(name, []byte(body), testNow)
	}
	var problems Problems
	if err != nil && !errors.As(err, &problems) {
		t.Fatalf("%v is no Problems", err)
	}
	return problems
}

func TestATimerIsOneRun(t *testing.T) {
	timer, err := ParseTimer("Order-4711.reminder_2", []byte(`{"after": "1h30m", "http": {"url": "http://localhost/x", "body": "${X}"}, "timeout": "10s",
		"guarantee": "at-least-once", "retry": {"limit": 2}, "startRetries": 0}`), testNow.Add(1234567*time.Nanosecond))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 20, 13, 30, 0, 1e6, time.UTC)
	if len(timer.Job.Content) != 16 {
		t.Errorf("content %q", timer.Job.Content)
	}
	timer.Job.Content, timer.Job.Fingerprint = "", ""
	equal(t, "timer", *timer, Timer{
		ID: "Order-4711.reminder_2", At: at,
		Job: Job{
			Name: "timer:Order-4711.reminder_2", TimeZone: "UTC", Dynamic: true,
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

// secretiveBodies have the canary in every place of a job that may hold a secret.
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
	problems := apiProblems(t, "job", "a", text)
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
						what := []string{"job", "timer"}[at%2]
						if out := apiProblems(t, what, "a", slip).Error(); strings.Contains(out, canary) {
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
		timer := d.parse("a", []byte(body), testNow)
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

func TestADynamicJobHasTenSchedulesAtMost(t *testing.T) {
	body := func(n int) []byte {
		return []byte(`{"schedule": [` + strings.Repeat(`"0 9 * * *", `, n-1) + `"0 10 * * *"], "http": {"url": "http://127.0.0.1/"}}`)
	}
	if _, err := ParseJob("j", body(10)); err != nil {
		t.Error(err)
	}
	if _, err := ParseJob("j", body(11)); err == nil || !strings.Contains(err.Error(), "schedule must have at most 10 items, has 11") {
		t.Errorf("eleven: %v", err)
	}
}
