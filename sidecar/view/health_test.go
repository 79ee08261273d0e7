package view

import (
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// every five minutes, at noon and a minute
func healthLook(t *testing.T, state service.Ledger) (*Look, config.Job) {
	t.Helper()
	s, err := schedule.Parse("*/5 * * * *", schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j := config.Job{Name: "job", Schedule: s}
	return &Look{Table: &config.Table{}, Now: noon.Add(time.Minute), Jobs: []config.Job{j}, States: map[string]service.Ledger{"job": state}}, j
}

func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

func TestTheHealthOfAJobIsWhatAPersonShouldKnowFirst(t *testing.T) {
	good, bad := &service.Entry{Tick: at(0), Kind: "schedule", Outcome: "succeeded"}, &service.Entry{Tick: at(0), Kind: "schedule", Outcome: "failed", Failed: true}
	manual := &service.Entry{Tick: at(1), Kind: "manual", Outcome: "failed", Failed: true}
	missed := func(minute int) *service.Entry {
		return &service.Entry{First: at(-15), Tick: at(minute), Count: 2, Outcome: "missed"}
	}
	waits := func(kind string, minute int) []lock.Due { return []lock.Due{{Tick: at(minute), Kind: kind}} }
	for _, c := range []struct {
		why   string
		state service.Ledger
		want  Health
	}{
		{"it succeeded", service.Ledger{Tick: at(0), Scheduled: good, Last: good}, OK},
		{"it failed", service.Ledger{Tick: at(0), Scheduled: bad, Last: bad, Streak: 1}, Failing},
		{"it failed, then declined", service.Ledger{Tick: at(0), Scheduled: &service.Entry{Tick: at(0), Outcome: "declined"}, Streak: 1}, Failing},
		{"a run by hand failed", service.Ledger{Tick: at(0), Scheduled: good, Last: manual}, OK},
		{"only a run by hand is known, and it failed", service.Ledger{Tick: at(0), Last: manual}, OK},
		{"a tick was not claimed", service.Ledger{Tick: at(-5), Scheduled: good, Last: good}, Overdue},
		{"it failed, and a tick was not claimed", service.Ledger{Tick: at(-5), Scheduled: bad, Last: bad, Streak: 1}, Failing},
		{"a tick was not claimed while a run lives", service.Ledger{Tick: at(-5), Last: good, Running: []service.RunState{{}}}, OK},
		{"a tick was not claimed in a pause", service.Ledger{Tick: at(-5), Last: good, Paused: &service.Pause{}}, OK},
		{"a tick was not claimed in the pause of all", service.Ledger{Tick: at(-5), Last: good, PausedAll: &service.Pause{}}, OK},
		{"a tick was not claimed before the schedule changed", service.Ledger{Tick: at(-5), Last: good, Since: at(1)}, OK},
		{"a tick was not claimed before a pause ended", service.Ledger{Tick: at(-5), Last: good, PausedTo: at(1)}, OK},
		{"it waits for a replica that can start it", service.Ledger{Tick: at(0), Last: good, Waiting: waits("handover", 0)}, Overdue},
		{"it waits since a moment", service.Ledger{Tick: at(0), Last: good, Waiting: waits("handover", 1)}, OK},
		{"a run by hand waits", service.Ledger{Tick: at(0), Last: good, Waiting: waits("manual", 0)}, OK},
		{"a backfill waits", service.Ledger{Tick: at(0), Last: good, Waiting: waits("backfill", -60)}, OK},
		{"the newest was missed", service.Ledger{Tick: at(0), Scheduled: &service.Entry{Tick: at(-20)}, Missed: missed(0)}, Missed},
		{"nothing ran, and some were missed", service.Ledger{Tick: at(0), Missed: missed(0)}, Missed},
		{"the newest was missed, and was run after all", service.Ledger{Tick: at(0), Scheduled: good, Missed: missed(0)}, OK},
		{"some were missed before it ran", service.Ledger{Tick: at(0), Scheduled: good, Missed: missed(-5)}, OK},
		{"some were missed, and it is paused", service.Ledger{Tick: at(0), Missed: missed(0), Paused: &service.Pause{}}, OK},
		{"nothing is known", service.Ledger{Tick: at(0)}, NeverRan},
		{"nothing is known, and it is paused", service.Ledger{Tick: at(0), Paused: &service.Pause{}}, OK},
		{"its first run lives", service.Ledger{Tick: at(0), Running: []service.RunState{{}}}, OK},
	} {
		l, j := healthLook(t, c.state)
		if got := l.Health(j); got != c.want {
			t.Errorf("%s: it is %s, want %s", c.why, got, c.want)
		}
	}
}

func TestARunByHandIsNotTheLastOfTheSchedule(t *testing.T) {
	l, j := healthLook(t, service.Ledger{Last: &service.Entry{Kind: "manual"}, Scheduled: &service.Entry{Kind: "takeover"}})
	if got := l.LastScheduled(j); got.Kind != "takeover" {
		t.Errorf("it is %v", got)
	}
}

func TestATickIsOverdueWhenItsJitterAndSomePatienceAreOver(t *testing.T) {
	l, j := healthLook(t, service.Ledger{Tick: at(-5)})
	for _, c := range []struct {
		now    time.Duration
		jitter time.Duration
		want   bool
	}{{patience, 0, false}, {patience + 1, 0, true}, {patience + 1, 4 * time.Minute, false}, {5*time.Minute - 1, 4 * time.Minute, true}} {
		l.Now, j.Jitter = noon.Add(c.now), c.jitter
		if got := l.Overdue(j); got.IsZero() == c.want || c.want && !got.Equal(noon) {
			t.Errorf("%s after it, with a jitter of %s: %s is overdue", c.now, c.jitter, got)
		}
	}
	l, j = healthLook(t, service.Ledger{Tick: at(0), Waiting: []lock.Due{{Tick: at(0), Kind: "handover"}}})
	for jitter, want := range map[time.Duration]bool{0: true, 50*time.Second - 1: true, 50 * time.Second: false} {
		j.Jitter = jitter
		if got := l.Overdue(j); !got.IsZero() != want {
			t.Errorf("a minute after it was refused, with a jitter of %s: %s is overdue", jitter, got)
		}
	}
	j.Suspend = true
	if got := l.Overdue(j); !got.IsZero() {
		t.Errorf("suspended, %s is overdue", got)
	}
}

func TestAJobOfEveryReplicaFailsIfItFailsOnOne(t *testing.T) {
	l, j := healthLook(t, service.Ledger{})
	j.Guarantee, l.States = config.EveryReplica, nil
	if got := l.Health(j); got != NeverRan {
		t.Errorf("no replica ran it: %s", got)
	}
	l.Replicas = []service.Replica{{Name: "a", Seen: l.Now, Ran: map[string]service.Entry{"job": {Replica: "a", Failed: true}}},
		{Name: "b", Seen: l.Now, Ran: map[string]service.Entry{"job": {Replica: "b", Ended: noon}}}}
	if got := l.Health(j); got != Failing {
		t.Errorf("it fails on one of two: %s", got)
	}
	l.Replicas[0].Seen = l.Now.Add(-time.Hour)
	if got := l.Health(j); got != OK {
		t.Errorf("it failed on one that is gone: %s", got)
	}
}

func TestTheSummaryCountsWhatNeedsAPerson(t *testing.T) {
	l, j := healthLook(t, service.Ledger{})
	l.Jobs, l.States = nil, map[string]service.Ledger{}
	for name, state := range map[string]service.Ledger{
		"1-ok":      {Tick: at(0), Scheduled: &service.Entry{Tick: at(0)}, Last: &service.Entry{}, MissedToday: 2},
		"2-never":   {Tick: at(0)},
		"3-missed":  {Tick: at(0), Missed: &service.Entry{Tick: at(0)}, MissedToday: 5},
		"4-overdue": {Tick: at(-5), Last: &service.Entry{}},
		"5-failing": {Tick: at(-5), Last: &service.Entry{}, Streak: 3},
	} {
		l.States[name] = state
	}
	for _, name := range []string{"1-ok", "2-never", "3-missed", "4-overdue", "5-failing"} {
		j.Name = name
		l.Jobs = append(l.Jobs, j)
	}
	l.Replicas = []service.Replica{{Name: "a", Seen: l.Now, Table: "x"}, {Name: "b", Seen: l.Now, Table: "y", Ready: "no"}, {Name: "c", Seen: noon.Add(-time.Hour)}}
	s := l.Summary()
	if want := "1 of 5 failing · 2 overdue · 7 missed today · 1/2 replicas ready · 1 silent · tables differ · Redis ok"; s.Text != want {
		t.Errorf("%s\nwant %s", s.Text, want)
	}
	if (s != Summary{Text: s.Text, Failing: 1, Overdue: 2, NeverRan: 1, MissedToday: 7, Live: 2, Ready: 1}) || !s.Bad() {
		t.Errorf("%+v", s)
	}
	l.Replicas = l.Replicas[2:] // it is gone, or Redis refuses what it writes
	if s := l.Summary(); !strings.HasSuffix(s.Text, "0/0 replicas ready · 1 silent · Redis answers, but no replica writes to it") {
		t.Errorf("with no replica left: %s", s.Text)
	}
	var names []string
	for _, j := range l.ByNeed() {
		names = append(names, j.Name)
	}
	if got := strings.Join(names, " "); got != "5-failing 4-overdue 3-missed 2-never 1-ok" {
		t.Errorf("by need: %s", got)
	}
	for _, c := range []struct {
		s   Summary
		bad bool
	}{{Summary{Ready: 1}, false}, {Summary{}, true}, {Summary{Ready: 1, Overdue: 1}, true}, {Summary{Ready: 1, Failing: 1}, true}, {Summary{Ready: 1, MissedToday: 9, NeverRan: 2}, false}} {
		if c.s.Bad() != c.bad {
			t.Errorf("%+v is bad: %t", c.s, c.s.Bad())
		}
	}
}
