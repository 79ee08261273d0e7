package main

import (
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

func TestTheAppTellsWhatBecameOfEachTick(t *testing.T) {
	begin := time.Date(2026, 12, 1, 12, 0, 3, 5e8, time.UTC)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	request := func(job string, tick, arrived, ended int) rig.Request {
		return rig.Request{Job: job, Tick: at(tick), Arrived: at(arrived), Ended: at(ended)}
	}
	jobs := []job{{Name: longJob, Every: 4}, {Name: "job-0", Every: 2}}
	// Ticks of job-0 come due at 0.5, 2.5, 4.5, 6.5 and 8.5 s, and those of the long job at 0.5, 4.5 and 8.5.
	seen := []rig.Request{
		request("job-0", 2500, 450, 470), // early
		request(longJob, 500, 500, 6500),
		request("job-0", 500, 501, 520),
		request("job-0", 500, 530, 550), // doubled
		request(longJob, 4500, 4500, 9000),
		request("job-0", 4500, 5600, 5620), // late
		request("job-0", 6500, 5610, 5630), // early, and in the way of the one before
		request("job-0", 10500, 10500, 10520),
	}
	got := judge(seen, jobs, begin, at(10000))
	want := outcome{Ticks: 5, Doubled: 1, Lost: 1, Overlapped: 2, Late: 1, Early: 2}
	if got != want {
		t.Errorf("got %+v, not %+v", got, want)
	}
}

func TestSolotickAndAppsThatAskItAreJudgedByWhatTheirFaultAllows(t *testing.T) {
	for _, c := range []struct {
		o      outcome
		missed bool
	}{
		{outcome{Fault: "calm", Contender: "solotick", Ticks: 9}, false},
		{outcome{Fault: "calm", Contender: "solotick", Ticks: 9, Lost: 1}, true},
		{outcome{Fault: "calm", Contender: "redsync", Ticks: 9, Lost: 1}, false},
		{outcome{Fault: "crash", Contender: "solotick", Ticks: 9, Overlapped: 1}, true},
		{outcome{Fault: "behind", Contender: "solotick", Ticks: 9, Doubled: 3}, false},
		{outcome{Fault: "restarts", Contender: "solotick", Ticks: 60, Lost: 6}, false},
		{outcome{Fault: "restarts", Contender: "solotick", Ticks: 60, Lost: 7}, true},
		{outcome{Fault: "calm", Contender: "solotick", NotRun: "it is missing"}, true},
		{outcome{Fault: "calm", Contender: "crontab", NotRun: "curl is missing"}, false},
		{outcome{Fault: "skew2500", Contender: "nodecron", Ticks: 9, Lost: 1}, true},
		{outcome{Fault: "skew2500", Contender: "crontab", Ticks: 9, Early: 1}, true},
		{outcome{Fault: "skew2500", Contender: "nodecron-setnx", Ticks: 9, Doubled: 9}, false},
		{outcome{Fault: "restarts", Contender: "apscheduler", Ticks: 60, Lost: 30}, false},
		{outcome{Fault: "restarts", Contender: "apscheduler", Ticks: 60, Doubled: 1}, true},
		{outcome{Fault: "crash", Contender: "apscheduler", Ticks: 9, Overlapped: 1}, true},
	} {
		if got := c.o.missed(); got != c.missed {
			t.Errorf("%+v: got %t", c.o, got)
		}
	}
}
