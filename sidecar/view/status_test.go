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
		Table: &config.Table{Service: "billing"},
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
	for _, name := range []string{"description", "owner", "runbook", "labels"} {
		if err != nil || strings.Contains(string(text), name) {
			t.Errorf("a job of which nothing is told has %s: %s, %v", name, text, err)
		}
	}
}
