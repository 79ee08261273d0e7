package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
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

// pod is the name of a replica of the night.
func pod(n int) string {
	return fmt.Sprintf("billing-5d9c7b6f8d-%s", []string{"k2x9q", "mm4tz", "w8h5d"}[n])
}

// night is a service at 03:20 in the night. Some of its jobs need a person, and its table has as many as well that do
// not.
func night(t *testing.T, well int) status {
	t.Helper()
	now := morning.Add(3*time.Hour + 20*time.Minute)
	l := &view.Look{Table: &config.Table{Service: "billing", Hash: "fedcba987654"}, Now: now, States: map[string]service.Ledger{}}
	at := func(clock string) time.Time {
		tick, err := time.Parse(time.TimeOnly, clock)
		if err != nil {
			t.Fatal(err)
		}
		return morning.Add(tick.Sub(tick.Truncate(24 * time.Hour)))
	}
	for n := range 3 {
		l.Replicas = append(l.Replicas, service.Replica{Name: pod(n), Version: "v0.1.0", Table: "fedcba987654", Seen: now.Add(-2 * time.Second)})
	}
	add := func(name, cron string, state service.Ledger) *config.Job {
		s, err := schedule.Parse(cron, schedule.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l.Jobs = append(l.Jobs, config.Job{Name: name, Schedule: s, TimeZone: "UTC", Guarantee: config.AtMostOnce, Missed: config.Latest,
			ConcurrencyPolicy: config.Forbid, Timeout: 30 * time.Second, Exec: &config.Exec{Command: []string{"/app/work", "--token=s3cret"}}})
		if state.Tick.IsZero() {
			state.Tick = now
		}
		l.States[name] = state
		return &l.Jobs[len(l.Jobs)-1]
	}
	run := func(clock, outcome string, n int, took time.Duration) *service.Entry {
		return &service.Entry{Tick: at(clock), Run: fmt.Sprintf("%08d-2f60-4b57-8f0f-0d4f3c2b1a02", n+1), Replica: pod(n), Kind: "schedule", Attempt: 1, Outcome: outcome,
			Failed: outcome == "failed", Ended: at(clock).Add(took), Took: took}
	}
	ran := func(e *service.Entry) service.Ledger {
		return service.Ledger{Scheduled: e, Last: e, LastSuccess: e.Ended}
	}
	for n := range well {
		add(fmt.Sprintf("well-%02d", n), "*/10 * * * *", ran(run("03:20:00", "succeeded", n%3, 20*time.Millisecond)))
	}
	busy := ran(run("03:00:00", "succeeded", 1, time.Minute))
	busy.Running = []service.RunState{{Run: "99999999-2f60-4b57-8f0f-0d4f3c2b1a02", Since: at("03:18:00"), LeaseEnd: now.Add(time.Second),
		Record: lock.Record{Replica: pod(2), Tick: at("03:18:00"), Kind: "schedule", Attempt: 2}}}
	add("archive", "*/18 * * * *", busy)
	add("new", "0 12 * * *", service.Ledger{})

	lost := ran(run("02:00:00", "succeeded", 0, time.Second))
	lost.Missed = &service.Entry{First: at("02:10:00"), Tick: at("03:10:00"), Count: 7, Detail: "no replica was running"}
	lost.MissedToday = 7
	add("rates", "*/10 * * * *", lost)

	late := ran(run("03:00:00", "succeeded", 2, 1200*time.Millisecond))
	late.Tick = at("03:00:00")
	add("reports", "*/15 * * * *", late)

	bad := ran(run("03:00:00", "failed", 1, 11500*time.Millisecond))
	bad.Scheduled.Detail = "the app answered 500: authentication failed for user \"billing\" at db-1.internal.example.com, code 28P01"
	bad.Streak, bad.FailingSince, bad.LastSuccess, bad.LastFailure = 4, at("00:00:11").Add(123*time.Millisecond), morning.Add(-time.Hour), at("03:00:11")
	bad.Last = run("03:10:00", "succeeded", 0, 2*time.Second)
	bad.Last.Kind = "manual"
	bad.Paused = &service.Pause{At: at("03:15:00"), Until: at("06:00:00"), By: "anna@ops", Reason: "until the password is back"}
	j := add("invoices", "0 * * * *", bad)
	j.TimeZone, j.Owner, j.Runbook, j.Description, j.Retry.Limit, j.Retry.Backoff = "Europe/Berlin", "team-billing", "https://wiki.example.com/invoices",
		"sends the invoices", 2, 5*time.Second

	old := service.Skip{Tick: at("02:00:00"), Reason: "overlap", At: at("02:00:00")} // before the last run
	for n, skipped := range []time.Time{at("03:18:30"), at("03:18:30"), at("03:19:00")} {
		l.Replicas[n].Skips = map[string]service.Skip{"invoices": old, "archive": {Tick: skipped, Reason: "overlap", At: skipped}}
	}
	return status{Look: l}
}

// golden compares lines with those in a file.
func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	got, file := strings.Join(lines, "\n")+"\n", filepath.Join("testdata", "status", name)
	if os.Getenv("UPDATE_TRANSCRIPTS") != "" { // then read the difference
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it is\n%s\nand %s has\n%s", got, file, want)
	}
}

// on returns a status on a terminal of that width.
func on(s status, width int) status {
	s.width, s.prefix = width, commonPrefix(s.Replicas)
	return s
}

// without returns a status without the jobs of the given names.
func without(s status, names ...string) status {
	look := *s.Look
	look.Jobs = slices.DeleteFunc(slices.Clone(look.Jobs), func(j config.Job) bool { return slices.Contains(names, j.Name) })
	s.Look = &look
	return s
}

func TestStatusBeginsWithWhatNeedsAPerson(t *testing.T) {
	golden(t, "all", on(night(t, 2), 120).lines())
	golden(t, "all-80", on(night(t, 2), 80).lines())
}

func TestStatusFailedShowsOnlyJobsThatNeedAPerson(t *testing.T) {
	s := on(night(t, 2), 120)
	s.failed = true
	golden(t, "failed", s.lines())
	golden(t, "failed-none", without(s, "invoices", "reports", "rates").lines())
}

func TestStatusWideLeavesNothingOut(t *testing.T) {
	s := night(t, 1)
	s.wide = true
	golden(t, "wide", s.lines())
}

func TestStatusOfAJobIsAllAboutIt(t *testing.T) {
	for _, job := range []string{"invoices", "rates", "reports", "archive", "new"} {
		s := on(night(t, 1), 100)
		s.job = []string{job}
		lines := s.lines()
		golden(t, job, lines)
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > 100 {
				t.Errorf("%d columns are too many: %s", n, line)
			}
			if strings.Contains(line, "s3cret") {
				t.Errorf("an argument may be a secret: %s", line)
			}
		}
	}
}

func TestStatusCheckIsBadIfAJobFailsOrIsOverdueOrNoReplicaIsReady(t *testing.T) {
	s := on(night(t, 2), 120)
	s.check = true
	golden(t, "check", s.lines())
	only := func(job string) status {
		s := s
		s.job = []string{job}
		return s
	}
	unready := without(s, "invoices", "reports")
	unready.Replicas = slices.Clone(s.Replicas)
	for n := range unready.Replicas {
		unready.Replicas[n].Ready = "the app is not ready"
	}
	for _, c := range []struct {
		what string
		s    status
		bad  bool
	}{
		{"all", s, true},
		{"without the failing job", without(s, "invoices"), true},
		{"without the failing and the overdue job", without(s, "invoices", "reports"), false},
		{"the failing job", only("invoices"), true},
		{"the overdue job", only("reports"), true},
		{"a job that missed ticks", only("rates"), false},
		{"a job that never ran", only("new"), false},
		{"no replica is ready", unready, true},
	} {
		if got := c.s.bad(); got != c.bad {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	golden(t, "check-unready", unready.lines())
}

func TestColoursTellTheStateOnATerminalThatWantsThem(t *testing.T) {
	s := on(night(t, 1), 80)
	s.colourful = true
	coloured := map[string]string{}
	for _, line := range s.lines() {
		if escape, rest, ok := strings.Cut(line, "m"); ok && strings.HasPrefix(escape, "\x1b[") {
			word, _, _ := strings.Cut(rest, " ")
			coloured[word] = escape + "m"
			if !strings.HasSuffix(line, "\x1b[0m") || utf8.RuneCountInString(line) > 80+len("\x1b[31m\x1b[0m") {
				t.Errorf("%q", line)
			}
		}
	}
	want := map[string]string{"1": "\x1b[31m", "invoices": "\x1b[31m", "reports": "\x1b[31m", "rates": "\x1b[33m"}
	if !maps.Equal(coloured, want) {
		t.Errorf("coloured are %q, want %q", coloured, want)
	}
	s = without(s, "invoices", "reports")
	if got := s.lines()[0]; !strings.HasPrefix(got, "\x1b[33m0 of ") {
		t.Errorf("ticks were missed today: %q", got)
	}
	if got := without(s, "rates").lines()[0]; !strings.HasPrefix(got, "\x1b[32m0 of ") {
		t.Errorf("all is well: %q", got)
	}
}

func TestNamesOfReplicasLoseWhatTheyHaveInCommon(t *testing.T) {
	for names, want := range map[string]string{
		"": "", "billing-5d9c7b6f8d-k2x9q": "", "app-1 app-2": "",
		"billing-5d9c7b6f8d-k2x9q billing-5d9c7b6f8d-kx9q8":       "billing-5d9c7b6f8d-",
		"billing-5d9c7b6f8d-k2x9q billing-6c7d8e9f0a-k2x9q":       "billing-",
		"billing-5d9c7b6f8d-k2x9q reports-5d9c7b6f8d-k2x9q":       "",
		"billing-5d9c7b6f8d billing-5d9c7b6f8d-k2x9q":             "billing-",
		"billing-5d9c7b6f8d- billing-5d9c7b6f8d-k2x9q":            "billing-5d9c7b6f8d-",
		"host01.example.com.internal host02.example.com.internal": "",
	} {
		var replicas []service.Replica
		for _, name := range strings.Fields(names) {
			replicas = append(replicas, service.Replica{Name: name})
		}
		got := commonPrefix(replicas)
		if got != want {
			t.Errorf("%s: %q, want %q", names, got, want)
		}
		shown := map[string]bool{}
		for _, r := range replicas {
			shown[status{prefix: got}.replica(r.Name)] = true
		}
		if len(shown) != len(replicas) || shown[""] {
			t.Errorf("%s: shown as %v", names, shown)
		}
	}
}
