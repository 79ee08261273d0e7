package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// crowded is a status in which everything is long.
func crowded() status {
	now := morning.Add(9 * time.Hour)
	s := status{Look: &view.Look{Table: &config.Table{Service: "billing", Hash: "fedcba987654"}, Now: now, States: map[string]service.Ledger{}}}
	for n := range 3 {
		pod := fmt.Sprintf("billing-api-deployment-5d9c7b6f8d-x%dz9q", n)
		s.Replicas = append(s.Replicas, service.Replica{Name: pod, Version: "v0.2.0-rc.1", Table: fmt.Sprintf("%012d", n/2), Seen: now, Offset: 123 * time.Millisecond,
			Skips: map[string]service.Skip{}})
		job := fmt.Sprintf("send-the-monthly-invoices-to-all-customers-of-the-region-%d", n)
		s.Jobs = append(s.Jobs, config.Job{Name: job, Suspend: true, Guarantee: config.AtMostOnce})
		s.Replicas[n].Skips[job] = service.Skip{Tick: now, Reason: "overlap", At: now}
		s.States[job] = service.Ledger{
			Scheduled: &service.Entry{Job: job, Replica: pod, Outcome: "interrupted", Tick: now.Add(-26 * time.Hour), Took: time.Hour, Detail: strings.Repeat("long ", 50)},
			Running:   []service.RunState{{Since: now.Add(-time.Hour), LeaseEnd: now, Record: lock.Record{Replica: pod, Kind: "takeover", Attempt: 3}}},
			Paused:    &service.Pause{Reason: strings.Repeat("x", service.MaxReason)},
		}
	}
	return s
}

// textOf returns a status as it is printed on a terminal of that width, with the names of replicas shortened as there.
func textOf(s status, width int) string {
	return strings.Join(on(s, width).lines(), "\n") + "\n"
}

func TestStatusFitsTheTerminalAndKeepsNamesApart(t *testing.T) {
	for _, width := range []int{80, 100, 120} {
		text := textOf(crowded(), width)
		names := map[string]bool{}
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("%d columns are too many for %d: %s", n, width, line)
			}
			if strings.HasPrefix(line, "sen") && !strings.Contains(line, "PAUSED") {
				t.Errorf("at width %d it is not seen that a job is paused: %s", width, line)
			}
			if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(line, "sen") || strings.HasPrefix(line, "billing-") {
				names[name] = true
			}
		}
		if len(names) != 6 {
			t.Errorf("at width %d there are the names %v", width, names)
		}
	}
	wide := textOf(crowded(), 0)
	if !strings.Contains(wide, "send-the-monthly-invoices-to-all-customers-of-the-region-2  26h00m ago") {
		t.Errorf("without a terminal nothing is shortened:\n%s", wide)
	}
}

func TestAJobThatEveryReplicaRunsIsShownAsItWasOnEach(t *testing.T) {
	now := morning.Add(time.Hour)
	s := status{Look: &view.Look{Table: &config.Table{Service: "billing"}, Now: now, States: map[string]service.Ledger{"warm": {}}}}
	yearly, err := schedule.Parse("@yearly", schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Jobs = []config.Job{{Name: "warm", Guarantee: config.EveryReplica, Schedule: yearly}}
	ran := func(outcome, detail string) map[string]service.Entry {
		return map[string]service.Entry{"warm": {Job: "warm", Replica: fmt.Sprintf("app-%d", len(s.Replicas)+1),
			Outcome: outcome, Failed: outcome == "failed", Tick: now.Add(-9 * time.Second), Ended: now.Add(-5 * time.Second), Took: 4 * time.Second,
			Detail: detail}}
	}
	shows := func(words ...string) {
		t.Helper()
		text := textOf(s, 0)
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("no %q in\n%s", w, text)
			}
		}
	}
	add := func(outcome, detail string) {
		s.Replicas = append(s.Replicas, service.Replica{Name: fmt.Sprintf("app-%d", len(s.Replicas)+1), Seen: now, Ran: ran(outcome, detail)})
	}
	add("failed", "exit code 3")
	shows("warm  9s ago     app-1  failed   4.0s", "  failed on app-1 5s ago: exit code 3\n", "on every replica")
	add("succeeded", "")
	shows("warm  9s ago     2 replicas  failed on 1  4.0s", "  failed on app-1 5s ago: exit code 3\n")
	s.Replicas[1].Ran = ran("failed", "")
	s.Replicas[1].Twin, s.Replicas[1].Observe = true, true
	shows("2 replicas  failed  ", "  failed on app-3 5s ago\n",
		"\n  ANOTHER PROCESS HAS THE SAME NAME: give each its own name with --replica or POD_NAME\n",
		"\n  observes: it takes ticks, and calls no job\n", "\nONLY SOME REPLICAS OBSERVE: a tick that an observing replica takes is not fired.\n")
	add("failed", "exit code 3")
	shows("  failed on app-1, app-3 5s ago: exit code 3\n")
	s.States["warm"] = service.Ledger{Paused: &service.Pause{Reason: "incident", At: now}}
	shows("  PAUSED\n", "  paused 0s ago, until it is resumed: incident\n")
}

func TestARunWhoseReplicaMayBeGoneIsDoubted(t *testing.T) {
	s := crowded()
	r := s.States[s.Jobs[0].Name].Running[0]
	if got := s.doubt(r); got != "" {
		t.Errorf("a live one: %q", got)
	}
	r.LeaseEnd = s.Now.Add(-time.Millisecond)
	if got := s.doubt(r); got != " (lease over)" {
		t.Errorf("its lease is over: %q", got)
	}
	s.Replicas[0].Seen = s.Now.Add(-service.HeartbeatTimeout - time.Millisecond)
	if got := s.doubt(r); got != " (silent)" {
		t.Errorf("its replica is silent: %q", got)
	}
}

func TestSpansAndOffsetsAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0s", 0: "0s", 59999 * time.Millisecond: "59s", time.Minute: "1m", 59*time.Minute + 59*time.Second: "59m",
		time.Hour: "1h00m", 47*time.Hour + 59*time.Minute: "47h59m", 48 * time.Hour: "2d", 400 * 24 * time.Hour: "400d"} {
		if got := formatDuration(d); got != want {
			t.Errorf("span of %s: %s, want %s", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "+0.0ms", -1500 * time.Microsecond: "-1.5ms", 999 * time.Millisecond: "+999.0ms", time.Second: "+1.0s", -time.Minute: "-60.0s"} {
		if got := offset(d); got != want {
			t.Errorf("offset of %s: %s, want %s", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "-", time.Millisecond: "1ms", 999 * time.Millisecond: "999ms",
		time.Second: "1.0s", 1040 * time.Millisecond: "1.0s", time.Minute: "1m0s", 90*time.Second + 400*time.Millisecond: "1m30s"} {
		if got := took(d); got != want {
			t.Errorf("a run of %s: %s, want %s", d, got, want)
		}
	}
}

func TestAClockTellsTheDateUnlessItIsToday(t *testing.T) {
	now := morning.Add(time.Hour)
	for want, at := range map[string]time.Time{
		"00:00:00Z":            morning,
		"23:59:59.25Z":         morning.Add(24*time.Hour - 750*time.Millisecond).In(time.FixedZone("", 7200)),
		"2027-03-27T23:59:59Z": morning.Add(-time.Second),
		"2026-03-28T01:00:00Z": now.AddDate(-1, 0, 0),
	} {
		if got := formatClock(now, at); got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
}

func TestTextIsWrappedBetweenWords(t *testing.T) {
	for _, c := range []struct {
		said  string
		width int
		want  []string
	}{
		{"", 10, []string{""}},
		{"one two  three", 0, []string{"one two three"}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one two three", 6, []string{"one", "two", "three"}},
		{"äöü abcdefgh ij", 4, []string{"äöü", "abcd", "efgh", "ij"}},
	} {
		if got := wrap(c.said, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d columns: %q", c.said, c.width, got)
		}
	}
}
