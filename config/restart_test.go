package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestWhatConnectionsHangOnNeedsARestart changes such keys one by one, and all others at once.
func TestWhatConnectionsHangOnNeedsARestart(t *testing.T) {
	const text = `
service: billing
redis: {url: "rediss://app:KANARIENVOGEL@redis/0", tls: {caFile: /a}, timeout: 1s, waitReplicas: 1}
listen: ":1"
admin: "localhost:1"
clock: redis
shutdownGrace: 1m
maxRunning: 3
ready: {tcp: "localhost:80"}
defaults: {timeout: 1m}
jobs: [{name: a, schedule: "@daily", exec: {command: [a]}}]
`
	table := parsed(t, text)
	for _, c := range [][3]string{
		{"", "", ""},
		{"service: billing", "service: shop", "service"},
		{"KANARIENVOGEL", "KANARIENVOGEL2", "redis.url"},
		{"caFile: /a", "caFile: /b", "redis.tls"},
		{"tls: {caFile: /a},", "", "redis.tls"},
		{"timeout: 1s", "timeout: 2s", "redis.timeout"},
		{"waitReplicas: 1", "waitReplicas: 2", "redis.waitReplicas"},
		{"app:KANARIENVOGEL@redis/0\"", "redis/0\", username: app, passwordFile: /x", "redis.url, redis.username, redis.passwordFile"},
		{`url: "rediss://app:KANARIENVOGEL@redis/0"`, "sentinel: {master: m, addrs: [a:1]}", "redis.url, redis.sentinel"},
		{`url: "rediss://app:KANARIENVOGEL@redis/0"`, "cluster: {addrs: [a:1]}", "redis.url, redis.cluster"},
		{`listen: ":1"`, `listen: ""`, "listen"},
		{"localhost:1", "localhost:2", "admin"},
		{"clock: redis", "clock: local", "clock"},
		{"shutdownGrace: 1m\nmaxRunning: 3\nready: {tcp: \"localhost:80\"}\ndefaults: {timeout: 1m}\njobs: [", "jobs: [{name: b, schedule: \"@daily\", exec: {command: [a]}}, ", ""},
	} {
		changed := strings.Replace(text, c[0], c[1], 1)
		if changed == text && c[0] != "" {
			t.Fatalf("%s is not in the table", c[0])
		}
		got, want := "", ""
		if err := table.Restart(parsed(t, changed)); err != nil {
			got = err.Error()
		}
		if c[2] != "" {
			want = c[2] + " cannot change while running: restart the replica"
		}
		if got != want {
			t.Errorf("%s → %s:\n got %q\nwant %q", c[0], c[1], got, want)
		}
	}
}

// TestRestartKnowsEveryFieldOfRedis fails if Restart does not compare a new field.
func TestRestartKnowsEveryFieldOfRedis(t *testing.T) {
	for i := range reflect.TypeFor[Redis]().NumField() {
		next := &Table{}
		f := reflect.ValueOf(&next.Redis).Elem().Field(i)
		switch f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		default:
			f.SetInt(1)
		}
		if (&Table{}).Restart(next) == nil {
			t.Errorf("a new %s needs no restart", reflect.TypeFor[Redis]().Field(i).Name)
		}
	}
}

// TestContentIsTheSameAsLongAsTheJobIs changes the values of jobs one by one.
func TestContentIsTheSameAsLongAsTheJobIs(t *testing.T) {
	data, err := os.ReadFile("testdata/good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	before := parsed(t, text).Jobs
	for change, want := range map[[2]string][2]bool{
		{"service: billing", "service: other"}:    {true, true},
		{"maxRunning: 7", "maxRunning: 8"}:        {true, true},
		{"750ms", "800ms"}:                        {true, true},
		{"timeZone: Europe", "timeZone:  Europe"}: {true, true},
		{"dry=1", "dry=2"}:                        {false, true},
		{"Bearer", "Basic"}:                       {false, true},
		{"${TOKEN}", "x"}:                         {false, true},
		{"0 9 *", "1 9 *"}:                        {false, true},
		{"send-invoices", "send-bills"}:           {false, true},
		{"--token=${TOKEN}", "--token=x"}:         {true, false},
		{"dir: /data", "dir: /tmp"}:               {true, false},
		{"jitter: 10s", "jitter: 11s"}:            {true, false},
		{"ping/${TOKEN}", "ping/x"}:               {true, false},
		{"reserved: true", "reserved: false"}:     {true, false},
		{"limit: 2,", "limit: 3,"}:                {true, false},
		{"backoff: 2s", "backoff: 3s"}:            {false, false},
		{"startRetries: 8", "startRetries: 9"}:    {true, false},
		{"startRetries: 0", "startRetries: 1"}:    {false, true},
	} {
		changed := strings.Replace(text, change[0], change[1], 1)
		if changed == text {
			t.Fatalf("%s is not in the table", change[0])
		}
		after := parsed(t, changed).Jobs
		for i := range before {
			if len(after[i].Content) != 16 || (before[i].Content == after[i].Content) != want[i] {
				t.Errorf("%s → %s: job %d has %s, had %s", change[0], change[1], i, after[i].Content, before[i].Content)
			}
		}
	}
}
