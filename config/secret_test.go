package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// secretive has the canary, as literal text, in every place that may hold a secret.
const secretive = `service: billing
redis:
  url: redis://app:KANARIENVOGEL@redis:6379/0
ready: {exec: [/bin/ready, "--token=KANARIENVOGEL"]}
defaults: {timeout: 5m, notify: {url: "https://h/KANARIENVOGEL"}}
jobs:
  - name: invoices
    schedule: "0 9 * * MON-FRI"
    http:
      url: "https://app:KANARIENVOGEL@127.0.0.1:8080/jobs?token=KANARIENVOGEL"
      method: POST
      headers:
        Authorization: "Bearer KANARIENVOGEL"
        X-Plain: KANARIENVOGEL
        X-Default: ${NONE:-KANARIENVOGEL}
        X-File: {file: /run/token, prefix: KANARIENVOGEL}
        X-Other:
          prefix: KANARIENVOGEL
          file: /run/token
      body: |
        {"password": "KANARIENVOGEL",
         "name": "KANARIENVOGEL"}
      successCodes: [200-299]
      tls: {caFile: /ca}
      sign: {secretFile: /run/whsec}
    notify:
      url: https://h/KANARIENVOGEL
      change: {url: https://h/KANARIENVOGEL, after: 2, on: [failed]}
    timeout: 10m
    description: sends the invoices
    owner: team-billing
    runbook: https://wiki/invoices?token=KANARIENVOGEL
    labels: {tier: KANARIENVOGEL}
  - name: reports
    schedule: "@daily"
    exec:
      command: [/bin/report, "--token=KANARIENVOGEL"]
      env: {TOKEN: KANARIENVOGEL, name: 'KANARIENVOGEL'}
    lock: {ttl: 30s}
  - {name: short, schedule: "@hourly", http: {url: "http://127.0.0.1/x", headers: {A: KANARIENVOGEL}, body: KANARIENVOGEL}}
`

// said is all that a table makes Solotick write about it.
func said(t *testing.T, text string) string {
	t.Helper()
	table, err := parse("table.yaml", []byte(text), testEnv, testNow)
	var problems Problems
	switch {
	case errors.As(err, &problems):
		return problems.Error()
	case err != nil:
		t.Fatalf("%v is no Problems", err)
	}
	out := table.Hash
	for _, w := range table.Warnings {
		out += w.String() + "\n"
	}
	return out
}

// TestNoSlipOfThePenShowsASecret breaks the table at every place in many ways: whatever a typing error makes of it, no
// message shows what was meant to be secret.
func TestNoSlipOfThePenShowsASecret(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: it computes for long")
	}
	parsed(t, secretive)
	for _, insert := range inserts {
		t.Run(fmt.Sprintf("%q", insert), func(t *testing.T) {
			t.Parallel()
			for at := range secretive {
				if at > 0 && isWord(secretive[at-1]) && isWord(secretive[at]) {
					continue // within a word a slip does what it does elsewhere in it
				}
				if text, ok := edit(secretive, at, insert, 0); ok {
					checkSaid(t, at, text)
				}
				if text, ok := edit(secretive, at, insert, 1); ok {
					checkSaid(t, at, text)
				}
			}
		})
	}
}

// TestNoLostLineShowsASecret does the same with whole lines: each missing, indented differently, or twice.
func TestNoLostLineShowsASecret(t *testing.T) {
	lines := strings.SplitAfter(secretive, "\n")
	for i, line := range lines {
		before, after := strings.Join(lines[:i], ""), strings.Join(lines[i+1:], "")
		for _, instead := range []string{
			"", "  " + line, "    " + line, strings.TrimPrefix(line, "  "), strings.TrimLeft(line, " "), line + line,
			strings.TrimSuffix(line, "\n"), strings.ReplaceAll(line, "\"", ""), strings.ReplaceAll(line, ":", ""),
		} {
			checkSaid(t, i, before+instead+after)
		}
		// The file as an editor that crashed leaves it.
		checkSaid(t, i, before+line[:len(line)/2])
	}
}

func isWord(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }

// inserts are slips of the pen.
var inserts = []string{
	"", ":", ": ", " ", "\n", "\t", "\"", "'", "{", "}", "[", "]", ",", "#", "*", "&", "!", "-", "|", "@", "/", "$", "${",
}

// edit replaces characters of a secretive text, unless that changes the canary itself or nothing.
func edit(secretive string, at int, insert string, replaced int) (string, bool) {
	text := secretive[:at] + insert + secretive[min(at+replaced, len(secretive)):]
	return text, text != secretive && strings.Count(text, canary) == strings.Count(secretive, canary)
}

func checkSaid(t *testing.T, at int, text string) {
	t.Helper()
	if out := said(t, text); strings.Contains(out, canary) {
		t.Errorf("edited at %d (line %d), a secret is shown:\n%s", at, strings.Count(text[:min(at, len(text))], "\n")+1, out)
	}
}

// TestValuesOfVariablesAreNeverShown puts a variable in place of each value, so that most of them are wrong.
func TestValuesOfVariablesAreNeverShown(t *testing.T) {
	lines := strings.SplitAfter(strings.ReplaceAll(secretive, canary, "secret"), "\n")
	for i, line := range lines {
		for _, sep := range []string{": ", "[", "- "} {
			head, _, ok := strings.Cut(line, sep)
			if !ok {
				continue
			}
			for _, value := range []string{
				`"${CANARY}"`, `"x${CANARY}y"`, `"${NONE:-}${CANARY}"`, "${CANARY}", `["${CANARY}"]`, `{a: "${CANARY}"}`,
			} {
				text := strings.Join(lines[:i], "") + head + sep + value + "\n" + strings.Join(lines[i+1:], "")
				checkSaid(t, i, text)
			}
		}
	}
}

// TestSecretBehindAnAliasIsNotShown names a job like the body of a request.
func TestSecretBehindAnAliasIsNotShown(t *testing.T) {
	for _, text := range []string{
		"service: s\njobs:\n  - {name: a, schedule: \"@daily\", http: {url: \"http://127.0.0.1\", body: &b KANARIENVOGEL}}\n" +
			"  - {name: *b, schedule: *b, exec: {command: [*b]}, timeout: *b, guarantee: *b, timeZone: *b}\n",
		"x: &b KANARIENVOGEL\nservice: *b\njobs: *b\nlisten: *b\nredis: {url: *b}\n",
	} {
		checkSaid(t, 0, text)
	}
}
