package config

import (
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

func TestAJobOfTheAPIMayHaveAnAppThatReports(t *testing.T) {
	job, err := ParseJob("long", []byte(`{"schedule": "@daily", "http": {"url": "http://127.0.0.1/", "async": {"heartbeat": "6s"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "job", job.HTTP.Async, &Async{time.Hour, 6 * time.Second})
	if want := `"async":{"heartbeat":"6s"}`; !strings.Contains(string(job.Source), want) {
		t.Errorf("it is kept as %s", job.Source)
	}
	timer, err := ParseTimer("t", []byte(`{"after": "1s", "http": {"url": "http://127.0.0.1/", "async": {}}}`), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "timer", timer.Job.HTTP.Async, &Async{time.Hour, 5 * time.Second})
	for _, j := range []*Job{job, &timer.Job} {
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
