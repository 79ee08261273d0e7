package config

import (
	"strings"
	"testing"
)

func TestWhatTheAPIMaySendDependsOnTheTable(t *testing.T) {
	const with = `
service: s
admin: "localhost:9000"
ready: {url: "http://unix:/run/ready.sock:/readyz"}
jobs:
  - {name: a, schedule: "@daily", http: {url: "http://unix:/run/app.sock:/tidy"}}
  - {name: b, schedule: "@daily", exec: {command: ["true"]}}
`
	for _, c := range []struct{ table, url, want string }{
		{with, "http://127.0.0.1:8080/", ""},
		{with, "http://unix:/run/app.sock:/other", ""},
		{with, "http://unix:/run/../run//app.sock:/other", ""},
		{with, "http://unix:/run/ready.sock:/", ""},
		{with, "http://unix:/run/docker.sock:/containers/create", "a unix socket that neither"},
		{with, "http://unix:/run/app.sock/../docker.sock:/", "a unix socket that neither"},
		{"service: s\njobs: []", "http://unix:/run/app.sock:/", "a unix socket that neither"},
		{with, "http://127.0.0.1:9000/v1/drain", "own admin address"},
		{with, "http://[::1]:9000/v1/drain", "own admin address"},
		{with, "http://127.0.0.1:9748/", ""}, // it is not there
		{"service: s\njobs: []", "http://LOCALHOST:9748/v1/drain", "own admin address"},
		{"service: s\nadmin: \"\"\njobs: []", "http://127.0.0.1:9748/v1/drain", ""},
		{"service: s\nadmin: \"\"\njobs: []", "http://127.0.0.1/", ""},
	} {
		table, err := Parse("table.yaml", []byte(c.table), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		timer, err := ParseTimer("made", []byte(`{"schedule": "@daily", "http": {"url": "`+c.url+`"}}`), testNow)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if p := table.Admits(&timer.Job); p != nil {
			got = p.String()
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) ||
			got != "" && !strings.HasPrefix(got, `body: timer "made": http.url is `) {
			t.Errorf("%s: %q, want %q", c.url, got, c.want)
		}
		if strings.Contains(got, "run/") {
			t.Errorf("%s: the problem repeats the URL: %s", c.url, got)
		}
	}
}
