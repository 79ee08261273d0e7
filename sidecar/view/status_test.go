package view

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// told is a look at a job of which everything is told.
func told() *Look {
	run := "7f5d3b9a-2f60-4b57-8f0f-0d4f3c2b1a02"
	return &Look{
		Table: &config.Table{Service: "billing", Links: config.Links{Logs: "https://logs/q?r={run}&from={from}&to={to}", Traces: "https://traces/{service}/{job}/{replica}/{tick}?id={trace}"}},
		Now:   noon.Add(90 * time.Second),
		Jobs: []config.Job{{Name: "invoices", Description: "sends <them>", Owner: "team-billing", Runbook: "https://wiki/a?b=c&d", Labels: map[string]string{"tier": "gold"}},
			{Name: "bare"}},
		States: map[string]service.Ledger{"invoices": {
			Last:    &service.Entry{Job: "invoices", Tick: noon, Run: run, Replica: "app 1/&?#", Outcome: "succeeded", Ended: noon.Add(30 * time.Second), Took: 20 * time.Second},
			Running: []service.RunState{{Run: run, Since: noon.Add(80 * time.Second), Record: lock.Record{Tick: noon.Add(time.Minute), Replica: "app-2"}}},
		}},
	}
}

func TestAJobIsShownWithWhatPeopleShouldKnowOfIt(t *testing.T) {
	jobs := told().Status().Jobs
	text, err := json.Marshal(jobs[0])
	if err != nil {
		t.Fatal(err)
	}
	if want := `"description":"sends \u003cthem\u003e","owner":"team-billing","runbook":"https://wiki/a?b=c\u0026d","labels":{"tier":"gold"}}`; !strings.HasSuffix(string(text), want) {
		t.Errorf("%s\nends not in %s", text, want)
	}
	text, err = json.Marshal(jobs[1])
	for _, name := range []string{"description", "owner", "runbook", "labels", "links"} {
		if err != nil || strings.Contains(string(text), name) {
			t.Errorf("a job of which nothing is told has %s: %s, %v", name, text, err)
		}
	}
}

func TestARunIsShownWithItsLinks(t *testing.T) {
	const run = "7f5d3b9a-2f60-4b57-8f0f-0d4f3c2b1a02"
	job := told().Status().Jobs[0]
	at := func(seconds time.Duration) string { return unixMilli(noon.Add(seconds * time.Second)) }
	for _, c := range []struct {
		what      string
		got, want Links
	}{
		{"the last run", job.Last.Links, Links{"https://logs/q?r=" + run + "&from=" + at(10-60) + "&to=" + at(30+60),
			"https://traces/billing/invoices/app%201%2F%26%3F%23/2027-03-28T12%3A00%3A00.000Z?id=7f5d3b9a2f604b578f0f0d4f3c2b1a02"}},
		{"the live run", job.Running[0].Links, Links{"https://logs/q?r=" + run + "&from=" + at(80-60) + "&to=" + at(60+60+60),
			"https://traces/billing/invoices/app-2/2027-03-28T12%3A01%3A00.000Z?id=7f5d3b9a2f604b578f0f0d4f3c2b1a02"}},
		{"an interrupted run", NewEntry(service.Entry{Job: "x", Tick: noon, Run: run, Replica: ".."}, told().Table).Links,
			Links{Logs: "https://logs/q?r=" + run + "&from=" + at(-60) + "&to=" + at(3600+60)}},
		{"a run without links in the table", NewEntry(service.Entry{Job: "x", Tick: noon, Run: run}, &config.Table{}).Links, Links{}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v\nwant %+v", c.what, c.got, c.want)
		}
	}
}

// TestTheLinksOfALiveRunStayTheSameForAMinute, so that the page need not be drawn anew with each answer.
func TestTheLinksOfALiveRunStayTheSameForAMinute(t *testing.T) {
	l := told()
	at := func(now time.Time) Links {
		l.Now = now
		return l.Status().Jobs[0].Running[0].Links
	}
	first := at(noon.Add(2 * time.Minute))
	if at(noon.Add(3*time.Minute-time.Millisecond)) != first || at(noon.Add(3*time.Minute)) == first {
		t.Errorf("%+v changes in the minute, or not after it", first)
	}
}
