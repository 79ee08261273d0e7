package config

import (
	"fmt"
	"strings"
	"testing"
)

// warned are the warnings of a table with one job.
func warned(t *testing.T, job string) string {
	t.Helper()
	table, err := parse("table.yaml", []byte("service: s\njobs:\n  - {name: a, "+job+"}\n"), testEnv, testNow)
	if err != nil {
		t.Fatalf("%s: %v", job, err)
	}
	var all []string
	for _, w := range table.Warnings {
		all = append(all, w.Message+" | "+w.Hint)
	}
	return strings.Join(all, "\n")
}

func TestAScheduleThatIsOftenMeantOtherwiseWarns(t *testing.T) {
	for expr, want := range map[string]string{
		"0 0 9 ? * 2-6": `day of week "2-6" is TUE-SAT here, where 0 and 7 are Sunday; in Quartz, where the ? comes from, it is MON-FRI` +
			` | if you mean MON-FRI, write "0 0 9 ? * MON-FRI"; otherwise "0 0 9 ? * TUE-SAT"`,
		"0 0 9 ? * 6#3":      `"6#3" is SAT#3 here, where 0 and 7 are Sunday; in Quartz, where the ? comes from, it is FRI#3`,
		"0 0 9 ? * 6L":       `"6L" is SATL here, where 0 and 7 are Sunday; in Quartz, where the ? comes from, it is FRIL`,
		"0 0 9 ? * 1,7 2027": `"1,7" is MON,SUN here, where 0 and 7 are Sunday; in Quartz, where the ? comes from, it is SUN,SAT`,
		"0 9 ? * 2":          `if you mean MON, write "0 9 ? * MON"; otherwise "0 9 ? * TUE"`,
		"0 9 ? * 1/2":        `if you mean SUN/2`,
		"0 0 9 ? * L": `day of week "L" is SUN here, where 0 and 7 are Sunday; in Quartz, where the ? comes from, it is SAT` +
			` | if you mean SAT, write "0 0 9 ? * SAT"; otherwise "0 0 9 ? * SUN"`,
		"0 0 9 * * L":       "",
		"0 0 9 ? * MON-FRI": "",
		"0 0 9 ? * FRI#3":   "",
		"0 0 9 ? * FRIL":    "",
		"0 9 ? * 0-4":       "", // there is no 0 in Quartz
		"0 9 * * 1-5":       "",
		"0 0 9 15 * ?":      "",
		"*/45 * * * *": `minute "*/45" starts again with each hour: ` +
			`there its ticks are 15m apart, not 45m | for every 45m write "@every 45m"`,
		"0/45 * * * *": `minute "0/45" starts again with each hour: ` +
			`there its ticks are 15m apart, not 45m | for every 45m write "@every 45m"`,
		"0 0/20 * * * ?":  "",
		"5/45 * * * *":    "", // once an hour, and written that way
		"*/7 * * * *":     `there its ticks are 4m apart, not 7m`,
		"*/45 9-17 * * *": `there its ticks are 15m apart, not 45m | `,
		"*/40 * * * * *": `second "*/40" starts again with each minute: ` +
			`there its ticks are 20s apart, not 40s | for every 40s write "@every 40s"`,
		"0 */5 * * *": `hour "*/5" starts again with each day: ` +
			`there its ticks are 4h apart, not 5h | for every 5h write "@every 5h"`,
		"30 */5 * * *":             `there its ticks are 4h apart, not 5h | `,
		"*/15 */6 * * *":           "",
		"*/1 * * * *":              "",
		"*/60 * * * *":             "",
		"H/45 * * * *":             "",
		"* 2 * * *":                `minute "*" means 60 ticks in hour "2" | for one tick then write "0 2 * * *"`,
		"* 0 2 * * *":              `second "*" means 60 ticks in minute "0" | for one tick then write "0 0 2 * * *"`,
		"* * 2 * * * 2027":         `minute "*" means 60 ticks in hour "2" | for one tick then write "0 0 2 * * * 2027"`,
		"* 8-17 * * *":             "",
		"0 * * * *":                "",
		"* * * * *":                "",
		"* * * * * *":              "",
		"0 9 1-7 * MON":            `a day that matches either of them has a tick | for the MON#1 of each month write "0 9 * * MON#1"`,
		"0 0 9 22-28 * FRI":        `write "0 0 9 * * FRI#4"`,
		"0 0 13 * FRI":             `both restricted: a day that matches either of them has a tick | Solotick cannot require both`,
		"0 0 */2 * MON":            `both restricted`,
		"0 0 L * FRIL":             `both restricted`,
		"0 0 */1 * MON":            "",
		"0 0 13 * */1":             "",
		"0 0 ? * MON":              "",
		"0 0 1 * *":                "",
		"@daily":                   "",
		"@every 45m":               "",
		"@at 2030-01-01T00:00:00Z": "",
		"${NONE:-*/45 * * * *}":    "", // what a variable holds is not shown
	} {
		got := warned(t, fmt.Sprintf("schedule: %q, exec: {command: [a]}", expr))
		if want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", expr, got, want)
		}
	}
}

func TestATimeoutLongerThanThePeriodWarns(t *testing.T) {
	const minutely = `schedule: "* * * * *", exec: {command: [a]}`
	for job, want := range map[string]string{
		minutely + `, timeout: 10m`: `timeout "10m": ticks can be 1m apart: those that come due while a run takes longer are skipped | ` +
			`if that is intended, write concurrencyPolicy: Forbid`,
		minutely + `, timeout: 10m, concurrencyPolicy: Forbid`:                     "",
		minutely + `, timeout: 10m, concurrencyPolicy: Queue`:                      "",
		minutely + `, timeout: 10m, guarantee: every-replica`:                      "",
		minutely + `, timeout: 1m`:                                                 "",
		minutely:                                                                   "", // five minutes by default
		`schedule: "0 9,10 * * MON", timeout: 90m, exec: {command: [a]}`:           "ticks can be 1h apart",
		`schedule: "@at 2030-01-01T00:00:00Z", timeout: 90m, exec: {command: [a]}`: "",
	} {
		if got := warned(t, job); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", job, got, want)
		}
	}
}

func TestACommandForAShellWithoutOneWarns(t *testing.T) {
	for command, want := range map[string]string{
		`["pg_dump app | gzip > /backup/app.gz"]`: `exec.command: the program is a line for a shell, but there is no shell | ` +
			`write ["sh", "-c", "…"]`,
		`["cd /app && ./run"]`:                   "the program is a line for a shell",
		`[ls, "|", wc]`:                          `exec.command[1]: "|" is passed on as an argument: there is no shell`,
		`[cd, /app, "&&", ./run]`:                `exec.command[2]: "&&" is passed on as an argument`,
		`[date, ">>", /var/log/dates]`:           `exec.command[1]: ">>" is passed on as an argument`,
		`["tidy --fast"]`:                        "the program has a space in its name",
		`["/opt/my tools/tidy", --fast]`:         "",
		`[sh, -c, "pg_dump app | gzip > /b.gz"]`: "",
		`[/bin/bash, -c, "|"]`:                   "",
		`[sh, -c, "nohup ./serve > /log 2>&1 &"]`: `exec.command[2]: what "&" leaves behind is killed as soon as the shell has ended | ` +
			"take the & away",
		`[sh, -c, "a & b; wait"]`:            "",
		`[sh, -c, "a &&"]`:                   "",
		`[sh, -c, "echo \\&"]`:               "",
		`[ssh, host, ls, "|", wc]`:           "",
		`[find, /tmp, -exec, rm, "{}", ";"]`: "",
		`[grep, "a|b", file]`:                "",
		`["${CANARY}", "${CANARY}"]`:         "",
	} {
		got := warned(t, "schedule: \"@daily\", exec: {command: "+command+"}")
		if want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, canary) {
			t.Errorf("%s:\n%s\nwant\n%s", command, got, want)
		}
	}
}

func TestWhatIsNotFilledInWarns(t *testing.T) {
	const says = "$NAME and {{ }} are not filled in | write ${NAME} for a variable"
	for http, want := range map[string]string{
		`url: "http://127.0.0.1/", headers: {Authorization: "Bearer $TOKEN"}`:          "http.headers.Authorization: " + says,
		`url: "http://127.0.0.1/", method: POST, body: '{"day": "{{date}}"}'`:          "http.body: " + says,
		`url: "http://127.0.0.1/$PART"`:                                                says,
		`url: "http://127.0.0.1/", headers: {Authorization: "Bearer ${CANARY}"}`:       "",
		`url: "http://127.0.0.1/", method: POST, body: '{"$set": {"a": {"b": "$1"}}}'`: "",
	} {
		got := warned(t, `schedule: "@daily", http: {`+http+"}")
		if want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "TOKEN") || strings.Contains(got, canary) {
			t.Errorf("%s:\n%s\nwant\n%s", http, got, want)
		}
	}
}

// TestRetryOnThatHasNoEffectWarns: otherwise an operator waits for an attempt that never comes.
func TestRetryOnThatHasNoEffectWarns(t *testing.T) {
	const daily = `schedule: "@daily", http: {url: "http://127.0.0.1/"}, `
	const conflict = `schedule: "@daily", http: {url: "http://127.0.0.1/", successCodes: [409]}, `
	const unlimited = "retry.on has no effect: nothing is tried again without retry.limit | write retry: {limit: 3, on: …}"
	const declined = "retry.on: 409 means that the job already runs, so it is not called again"
	for job, want := range map[string]string{
		daily + `retry: {on: [404]}`:                                   unlimited,
		daily + `retry: {limit: 0, on: [404]}`:                         "", // switched off
		daily + `retry: {limit: 1, on: [404, 400-499]}`:                "these replace 408, 425, 429 and 500-599, so no error of the app is tried again | add 500-599",
		daily + `retry: {limit: 1, on: [404, 503]}`:                    "",
		daily + `retry: {limit: 1, on: [404, 409]}`:                    declined,
		`schedule: "@daily", retry: {on: [404]}, exec: {command: [a]}`: "retry.on has no effect on exec",
		conflict + `retry: {limit: 1, on: [409, 500-599]}`:             "",
	} {
		if got := warned(t, job); want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", job, got, want)
		}
	}
}

// TestALimitThatHasNoEffectWarns: otherwise a job that is meant to run thrice at once runs once, and nobody knows why.
func TestALimitThatHasNoEffectWarns(t *testing.T) {
	const daily = `schedule: "@daily", exec: {command: [a]}, concurrency: 3, `
	for job, want := range map[string]string{
		daily + `concurrencyPolicy: Allow`: "",
		daily + `timeout: 1m`:              "concurrency has no effect: under Forbid one run lives at a time | give the job concurrencyPolicy: Allow",
		daily + `concurrencyPolicy: Queue`: "concurrency has no effect: under Queue",
		daily + `guarantee: every-replica`: "concurrency has no effect: with guarantee every-replica there is no lock",
	} {
		if got := warned(t, job); want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", job, got, want)
		}
	}
}

// TestKeysForOthersAreLeftAlone gives anchors a home.
func TestKeysForOthersAreLeftAlone(t *testing.T) {
	const text = `
x-common: &common {limit: 3, backoff: 1s}
x-9: [1, {a: "${NOTHING}", <<: {b: c}}]
x-: null
service: s
jobs:
  - {name: a, schedule: "@daily", retry: *common, exec: {command: [a]}}
`
	got := parsed(t, text)
	if got.Jobs[0].Retry.Limit != 3 || len(got.Warnings) > 0 {
		t.Errorf("%+v", got)
	}
	if same := parsed(t, strings.Replace(text, "[1,", "[2,", 1)); same.Hash != got.Hash {
		t.Error("what is left alone makes another table")
	}
	for _, bad := range []string{"X-a: 1", "x_a: 1", "defaults: {x-a: 1}", "redis: {x-a: 1}"} {
		if _, err := parse("table.yaml", []byte(bad+text), testEnv, testNow); err == nil {
			t.Errorf("%s is left alone", bad)
		}
	}
	for _, api := range []string{`{"x-a": 1, "schedule": "@daily", "http": {"url": "http://127.0.0.1/"}}`} {
		if _, err := ParseTimer("a", []byte(api), testNow); err == nil {
			t.Error("the API leaves a key alone")
		}
	}
}
