package config

import (
	"errors"
	"strings"
	"testing"
)

func TestDurationsReachToTheirLimits(t *testing.T) {
	const hourly = `schedule: "0 * * * *"`
	for _, c := range []struct{ keys, want string }{
		{"timeout: 1ms", ""}, {"timeout: 999us", "must be at least 1ms"}, {"timeout: 8784h", ""}, {"timeout: 8784h1ns", "must be at most 8784h"},
		{"startingDeadline: 0", ""}, {"startingDeadline: -1ns", "must not be negative"}, {"startingDeadline: +0", "not a duration"},
		{"lock: {ttl: 1s}", "must be longer than 1s"}, {"lock: {ttl: 1500ms}", ""}, {"lock: {ttl: 1499ms}", "at least three times redis.timeout"},
		{"lock: {ttl: 1h, safetyDelay: 1h}", ""}, {"lock: {ttl: 1h1ns}", "must be at most 1h"},
		{"jitter: 3599999ms", ""}, {"jitter: 1h", "must be shorter than the period, 1h"},
		{"jitter: 10s\n    startingDeadline: 10001ms", ""}, {"jitter: 10s\n    startingDeadline: 10s", "must be longer than jitter"},
		{"jitter: 10s\n    startingDeadline: 0", ""},
		{"retry: {limit: 1, backoff: 5s, maxBackoff: 5s}", ""}, {"retry: {limit: 1, backoff: 5s, maxBackoff: 4999ms}", "must be at least retry.backoff, 5s"},
		{"startRetries: 0", ""}, {"startRetries: 100", ""}, {"startRetries: 101", "must be from 0 to 100"}, {"startRetries: -1", "must be from 0 to 100"},
	} {
		_, err := parse("table.yaml", []byte("service: s\njobs:\n  - name: a\n    "+hourly+"\n    http: {url: http://localhost}\n    "+c.keys+"\n"), testEnv, testNow)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.keys, err, c.want)
		}
	}
	problems := problemsOf(t, "service: s\njobs:\n  - name: a\n    schedule: \"* * * * * *\"\n    http: {url: http://localhost}\n    jitter: 1s\n")
	if len(problems) != 1 || problems[0].Message != `job "a": jitter "1s": must be shorter than the period, 1s (the shortest time between two ticks)` {
		t.Errorf("each second: %v", problems)
	}
}

// A hint is the duration as it has to be written.
func TestADurationOfAnotherToolIsCorrected(t *testing.T) {
	const form = "write a number and a unit: 500ms, 10s, 5m, 1h30m"
	for text, want := range map[string]string{
		"90": "for seconds write 90s", "1.5": "for seconds write 1.5s", "5 Minutes": "write 5m", "5mins": "write 5m", "2 hrs": "write 2h", "3 secs": "write 3s",
		"250 MS": "write 250ms", "250millis": "write 250ms", "2 milliseconds": "write 2ms", "2 days": "there is no unit for days; write 48h",
		"1.5d": "there is no unit for days; write 36h", "123456 sec": "write 123456s", "1234567 sec": form, "soon": form, "1h 30m": form, "${EMPTY}": form, "${PORT}": form,
	} {
		problems := problemsOf(t, "service: s\njobs:\n  - name: a\n    schedule: \"@daily\"\n    http: {url: http://localhost}\n    timeout: \""+text+"\"\n")
		if len(problems) != 1 || problems[0].Hint != want {
			t.Errorf("%q: %v, want the hint %q", text, problems, want)
		}
	}
}

func TestATimeWithoutAZoneIsCorrected(t *testing.T) {
	for text, want := range map[string]string{
		"2026-12-01":          "write 2026-12-01T00:00:00Z",
		"2026-12-01T09:00:00": "write 2026-12-01T09:00:00Z, or an offset instead of Z",
		"2026-12-01 09:00:00": "write 2026-12-01T09:00:00Z, or an offset instead of Z",
		"tomorrow":            "write it like 2026-12-01T00:00:00Z or 2026-12-01T00:00:00+01:00",
	} {
		problems := problemsOf(t, "service: s\njobs:\n  - name: a\n    schedule: \"@daily\"\n    http: {url: http://localhost}\n    start: \""+text+"\"\n")
		if len(problems) != 1 || problems[0].Hint != want {
			t.Errorf("%q: %v, want the hint %q", text, problems, want)
		}
	}
}

// A hint must not repeat what a variable holds.
func TestATimeOfAVariableIsNotRepeated(t *testing.T) {
	const table = "service: s\njobs:\n  - name: a\n    schedule: \"@daily\"\n    http: {url: http://localhost}\n    start: ${START}\n"
	for _, value := range []string{"2026-12-01", "2026-12-01T09:00:00", "2026-12-01 09:00:00", "tomorrow"} {
		_, err := parse("table.yaml", []byte(table), func(string) (string, bool) { return value, true }, testNow)
		var problems Problems
		if !errors.As(err, &problems) || len(problems) != 1 || problems[0].Hint != "write it like 2026-12-01T00:00:00Z or 2026-12-01T00:00:00+01:00" {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestTheHeartbeatOfAnAppReachesToItsLimit(t *testing.T) {
	for heartbeat, want := range map[string]string{"1s": "", "999ms": "must be at least 1s", "1799s": "", "1799001ms": "must be at most 29m59s"} {
		table := "service: s\njobs:\n  - name: a\n    schedule: \"@daily\"\n    lock: {ttl: 1h}\n    http: {url: http://localhost, async: {heartbeat: " + heartbeat + "}}\n"
		_, err := parse("table.yaml", []byte(table), testEnv, testNow)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", heartbeat, err, want)
		}
	}
}

func TestATimerIsWithinTenYearsAndAfter1970(t *testing.T) {
	for moment, want := range map[string]string{
		`"after": "87672h"`: "", `"after": "87672h1ns"`: "must be at most ten years", `"after": "-1s"`: "must not be negative",
		`"at": "2036-11-21T12:00:00Z"`: "", `"at": "2036-11-21T12:00:00.001Z"`: "must be at most ten years ahead", // with a day for clocks that differ
		`"at": "1970-01-01T00:00:00Z"`: "", `"at": "1969-12-31T23:59:59Z"`: "must not be before 1970",
		`"at": "2026-12-01T00:00:00Z", "after": "1s"`: "at says already when", `"timeout": "1s"`: "at, after or schedule is missing",
	} {
		_, err := ParseTimer("a", []byte(`{`+moment+`, "http": {"url": "http://localhost/x"}}`), testNow)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", moment, err, want)
		}
	}
}
