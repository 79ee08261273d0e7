package view

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/sidecar/service"
)

var noon = time.Date(2027, 3, 28, 12, 0, 0, 0, time.UTC)

func TestSilentReplicasAreNoDrift(t *testing.T) {
	l := &Look{Now: noon, Replicas: []service.Replica{{Name: "a", Table: "one", Seen: noon}, {Name: "b", Table: "two", Seen: noon.Add(-service.HeartbeatTimeout)}}}
	if !l.Drift() {
		t.Error("two tables are no drift")
	}
	l.Replicas[1].Seen = noon.Add(-service.HeartbeatTimeout - time.Millisecond)
	if l.Drift() {
		t.Error("the one with the other table is silent")
	}
}

func TestTheNextTickIsOneThatNothingHoldsBack(t *testing.T) {
	hourly, err := schedule.Parse("0 * * * *", schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := func(h int) time.Time { return noon.Add(time.Duration(h) * time.Hour) }
	for _, c := range []struct {
		why     string
		suspend bool
		paused  *service.Pause
		other   *service.Pause
		want    time.Time
	}{
		{"nothing", false, nil, nil, at(1)},
		{"suspended", true, nil, nil, time.Time{}},
		{"paused without an end", false, &service.Pause{}, nil, time.Time{}},
		{"paused up to the very tick", false, &service.Pause{Until: at(2)}, nil, at(2)},
		{"paused beyond it", false, &service.Pause{Until: at(2).Add(time.Millisecond)}, nil, at(3)},
		{"both", true, &service.Pause{Until: at(2)}, nil, time.Time{}},
		{"paused twice", false, &service.Pause{Until: at(2)}, &service.Pause{Until: at(4)}, at(4)},
		{"paused twice, once without an end", false, &service.Pause{Until: at(2)}, &service.Pause{}, time.Time{}},
	} {
		for _, state := range []service.Ledger{{Paused: c.paused, PausedAll: c.other}, {Paused: c.other, PausedAll: c.paused}} {
			l := &Look{Now: noon, States: map[string]service.Ledger{"job": state}}
			if got := l.Next(config.Job{Name: "job", Schedule: hourly, Suspend: c.suspend}); !got.Equal(c.want) {
				t.Errorf("%s: next is %s, want %s", c.why, got, c.want)
			}
		}
	}
}

func TestSkipsAreTheNewestFirst(t *testing.T) {
	skip := func(at time.Time) map[string]service.Skip { return map[string]service.Skip{"job": {At: at}} }
	l := &Look{Replicas: []service.Replica{{Name: "a", Skips: skip(noon)}, {Name: "b", Skips: skip(noon.Add(1))}, {Name: "c", Skips: skip(noon)}, {Name: "d"}}}
	var names []string
	for _, k := range l.Skips("job") {
		names = append(names, k.Replica)
	}
	if want := []string{"b", "a", "c"}; !slices.Equal(names, want) {
		t.Errorf("skips of %v, want %v", names, want)
	}
}

func TestAMixOfReplicasThatObserveAndThatCallIsSaid(t *testing.T) {
	l := &Look{Table: &config.Table{}, Now: noon, Replicas: []service.Replica{{Name: "a", Observe: true, Seen: noon}, {Name: "b", Seen: noon}}}
	if text := l.Summary().Text; !strings.Contains(text, " · only some replicas observe · ") {
		t.Errorf("a mix: %s", text)
	}
	if s := l.Status(); !s.Replicas[0].Observes || s.Replicas[1].Observes {
		t.Errorf("a observes: %t, b: %t", s.Replicas[0].Observes, s.Replicas[1].Observes)
	}
	l.Replicas[1].Seen = noon.Add(-time.Hour)
	if text := l.Summary().Text; strings.Contains(text, "observe") {
		t.Errorf("the only one that calls is gone: %s", text)
	}
}

func TestAJobThatEveryReplicaRunsIsAsItWasOnEach(t *testing.T) {
	ran := func(replica, outcome string, seconds int) map[string]service.Entry {
		return map[string]service.Entry{"job": {Job: "job", Replica: replica, Outcome: outcome, Failed: outcome == "failed",
			Ended: noon.Add(time.Duration(seconds) * time.Second)}}
	}
	l := &Look{
		Table: &config.Table{}, Now: noon.Add(time.Minute), States: map[string]service.Ledger{"job": {Last: &service.Entry{Outcome: "of before"}}},
		Replicas: []service.Replica{
			{Name: "a", Ran: ran("a", "succeeded", 3), Seen: noon.Add(time.Minute)},
			{Name: "b", Ran: ran("b", "failed", 1), Seen: noon.Add(time.Minute), Twin: true},
			{Name: "c", Ran: ran("c", "failed", 2), Seen: noon.Add(time.Minute)},
			{Name: "gone", Ran: ran("gone", "failed", 4), Seen: noon, Twin: true},
			{Name: "new", Seen: noon.Add(time.Minute)},
		},
	}
	every, err := schedule.Parse("@yearly", schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l.Jobs = []config.Job{{Name: "job", Guarantee: config.EveryReplica, Schedule: every}}
	s := l.Status()
	var results []string
	for _, e := range s.Jobs[0].Results {
		results = append(results, e.Replica+" "+e.Outcome)
	}
	if want := []string{"c failed", "b failed", "a succeeded"}; !slices.Equal(results, want) || s.Jobs[0].Last.Replica != "a" {
		t.Errorf("the results are %q, the last of %+v; want %q", results, s.Jobs[0].Last, want)
	}
	for _, r := range s.Replicas {
		if r.SameName != (r.Replica == "b") { // of one that is gone, so is the other one
			t.Errorf("%s has the name of another: %t", r.Replica, r.SameName)
		}
	}
	l.Jobs[0].Guarantee = config.AtMostOnce
	if s := l.Status(); s.Jobs[0].Results != nil || s.Jobs[0].Last.Outcome != "of before" {
		t.Errorf("a job that is claimed: %+v", s.Jobs[0])
	}
}

func TestReplicasOfDifferentEnvironmentsAreSaid(t *testing.T) {
	l := &Look{Table: &config.Table{}, Now: noon, Replicas: []service.Replica{{Name: "a", Environment: "production", Seen: noon}, {Name: "b", Seen: noon}}}
	if text := l.Summary().Text; !strings.Contains(text, " · environments differ · ") {
		t.Errorf("a mix: %s", text)
	}
	l.Replicas[1].Environment = "production"
	if text := l.Summary().Text; strings.Contains(text, "environments") {
		t.Errorf("one environment: %s", text)
	}
}
