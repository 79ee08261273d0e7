package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const longJob = `
service: s
jobs:
  - name: long
    schedule: "@daily"
    lock: {ttl: 62s}
    http: {url: "http://127.0.0.1/", async: {timeout: 2h, heartbeat: 30s}}
`

func TestHowAnAppReportsEndsUpInItsPlace(t *testing.T) {
	for text, want := range map[string]*Async{
		"async: {timeout: 2h, heartbeat: 30s}": {2 * time.Hour, 30 * time.Second},
		"async: {timeout: 2h}":                 {2 * time.Hour, 5 * time.Second},
		"async: {}":                            {time.Hour, 5 * time.Second},
		"body: x":                              nil,
	} {
		table := parsed(t, strings.Replace(longJob, "async: {timeout: 2h, heartbeat: 30s}", text, 1))
		equal(t, text, table.Jobs[0].HTTP.Async, want)
	}
}

func TestHowAnAppReportsCountsInTheHash(t *testing.T) {
	table := parsed(t, longJob)
	for _, change := range [][2]string{{"2h", "3h"}, {"heartbeat: 30s", "heartbeat: 29s"}, {", async: {timeout: 2h, heartbeat: 30s}", ""}} {
		if other := parsed(t, strings.Replace(longJob, change[0], change[1], 1)); other.Hash == table.Hash || table.Equal(other) ||
			table.Jobs[0].Content == other.Jobs[0].Content {
			t.Errorf("%s → %s makes no difference", change[0], change[1])
		}
	}
}

func TestATimerMayHaveAnAppThatReports(t *testing.T) {
	long, err := ParseTimer("long", []byte(`{"schedule": "@daily", "http": {"url": "http://127.0.0.1/", "async": {"heartbeat": "6s"}}}`), testNow)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "timer", long.Job.HTTP.Async, &Async{time.Hour, 6 * time.Second})
	if want := `"async":{"heartbeat":"6s"}`; !strings.Contains(string(long.Source), want) {
		t.Errorf("it is kept as %s", long.Source)
	}
	timer, err := ParseTimer("t", []byte(`{"after": "1s", "http": {"url": "http://127.0.0.1/", "async": {}}}`), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "timer", timer.Job.HTTP.Async, &Async{time.Hour, 5 * time.Second})
	for _, j := range []*Job{&long.Job, &timer.Job} {
		if p := parsed(t, longJob).Admits(j); p != nil {
			t.Errorf("%s is not admitted: %s", j.Name, p)
		}
		p := parsed(t, "service: s\nadmin: \"\"\njobs: []").Admits(j)
		if p == nil || !strings.Contains(p.String(), `http.async: the app reports to the admin address, and the table's admin is ""`) {
			t.Errorf("without an admin address, %s gets: %v", j.Name, p)
		}
	}
}

func TestATimerIsToldWhichHeartbeatFits(t *testing.T) {
	_, err := ParseTimer("t", []byte(`{"after": "1s", "http": {"url": "http://127.0.0.1/", "async": {"heartbeat": "30s"}}}`), time.Now())
	if err == nil || !strings.Contains(err.Error(), "write heartbeat: 6.5s") {
		t.Errorf("%v", err)
	}
}

// Keys for replicas that start the job by themselves have no effect on the job of an app that asks.
func TestWhatAJobOfAnAppThatAsksCannotHave(t *testing.T) {
	const job = "service: s\njobs:\n  - name: asks\n    schedule: \"@hourly\"\n    claim: {}\n"
	table := parsed(t, job+"    retry: {limit: 3}\n    missed: all\n    startRetries: 3\n    timeout: 1m\n    jitter: 1m\n    allowRemote: true\n")
	var warned []string
	for _, w := range table.Warnings {
		warned = append(warned, strings.Fields(strings.TrimPrefix(w.Message, `job "asks": `))[0])
	}
	if want := []string{"retry", "missed:", "startRetries", "timeout", "jitter", "allowRemote"}; !slices.Equal(warned, want) {
		t.Errorf("warned of %v, want %v", warned, want)
	}
	if j := table.Jobs[0]; j.Retry.Limit != 0 || j.Jitter != 0 || j.Missed != Latest || *j.Claim != (Async{Timeout: time.Hour, Heartbeat: 5 * time.Second}) || j.Reports() != j.Claim {
		t.Errorf("read as %+v", j)
	}
	if j := parsed(t, job+"    missed: skip\n").Jobs[0]; j.Missed != Skip {
		t.Errorf("read as %+v", j)
	}
	_, err := Parse("table.yaml", []byte(strings.Replace(job, "claim: {}", "claim: {heartbeat: 10s}", 1)), testEnv)
	if err == nil || !strings.Contains(err.Error(), "claim.heartbeat: 10s needs a lock.ttl of at least 22s, and it is 15s") {
		t.Error(err)
	}
}

// A lease has no ticks, and no end unless the table gives it one.
func TestALeaseIsForAnAppThatAsks(t *testing.T) {
	const job = "service: s\njobs:\n  - name: asks\n    schedule: \"@lease\"\n"
	table := parsed(t, job+"    claim: {}\n")
	if j := table.Jobs[0]; !j.Schedule.IsLease() || j.Claim.Timeout != furthest || len(table.Warnings) > 0 || j.Schedule.String() != "@lease" {
		t.Errorf("read as %+v, %v", j, table.Warnings)
	}
	if j := parsed(t, job+"    claim: {timeout: 2h}\n").Jobs[0]; j.Claim.Timeout != 2*time.Hour {
		t.Errorf("read as %+v", j)
	}
	for keys, why := range map[string]string{
		"concurrencyPolicy: Allow":   `concurrencyPolicy "Allow": must be Forbid with @lease`,
		"concurrencyPolicy: Replace": `concurrencyPolicy "Replace": must be Forbid with @lease`,
	} {
		if _, err := Parse("table.yaml", []byte(job+"    claim: {}\n    "+keys+"\n"), testEnv); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", keys, err)
		}
	}
	_, err := Parse("table.yaml", []byte(job+"    exec: {command: [a]}\n"), testEnv)
	if err == nil || !strings.Contains(err.Error(), `schedule "@lease": is for a job with claim`) {
		t.Error(err)
	}
}
