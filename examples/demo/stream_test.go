package main

import (
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
)

// told returns the lines of the stream for events, without the times at the beginning.
func told(t *testing.T, colour bool, events ...event) string {
	t.Helper()
	var out strings.Builder
	s := newStream(&out, colour)
	for i, e := range events {
		e.Time = start0.Add(time.Duration(i) * time.Millisecond)
		if e.Job != "" {
			e.Tick = start0
		}
		s.take(e)
		s.flushDue(time.Now())
	}
	s.flushDue(time.Now().Add(gather))
	return strings.ReplaceAll(out.String(), clock(start0), "T")
}

func TestALineSaysWhoFiredAndWhoSkipped(t *testing.T) {
	h := "heartbeat"
	for _, c := range []struct {
		name, want string
		events     []event
	}{
		{"one fires", "T  heartbeat      two    ● fired    one, three skipped\n", []event{
			{Msg: "skipped", Job: h, Reason: "fired_elsewhere", from: "three"}, {Msg: "fired", Job: h, from: "two"},
			{Msg: "skipped", Job: h, Reason: "fired_elsewhere", from: "one"}, {Msg: "finished", Job: h, Outcome: "succeeded", from: "two"}}},
		{"nobody fires", "T  heartbeat      –      ○ skipped: it still runs\n", []event{
			{Msg: "skipped", Job: h, Reason: "overlap", from: "three"}, {Msg: "skipped", Job: h, Reason: "overlap", from: "one"}}},
		{"one waits", "T  resize-images  –      ○ waits for the end of the run\nT  resize-images  three  ● fired T, which had to wait\n", []event{
			{Msg: "skipped", Job: queueing, Reason: "queued", from: "three"}, {Msg: "fired", Job: queueing, Kind: "catchup", from: "three"}}},
		{"one waits, and another one hears that it is taken", "T  resize-images  –      ○ waits for the end of the run\n", []event{
			{Msg: "skipped", Job: queueing, Reason: "fired_elsewhere", from: "three"}, {Msg: "skipped", Job: queueing, Reason: "queued", from: "one"}}},
		{"all fire", "T  warm-cache     all    ● fired on one, two, three\n", []event{
			{Msg: "fired", Job: everywhere, from: "three"}, {Msg: "fired", Job: everywhere, from: "one"}, {Msg: "fired", Job: everywhere, from: "two"}}},
		{"the app declines", "T  import-feed    one    ● fired, the app says 409\n", []event{
			{Msg: "fired", Job: "import-feed", from: "one"}, {Msg: "finished", Job: "import-feed", Outcome: "declined", from: "one"}}},
		{"a retry", "T  charge-cards   one    ● fired\nT  charge-cards   one    ✗ failed, tries again in 300ms\nT  charge-cards   one    ✓ done at attempt 2\n", []event{
			{Msg: "fired", Job: "charge-cards", from: "one"}, {Msg: "trying again", Job: "charge-cards", Wait: 300 * time.Millisecond, from: "one"},
			{Msg: "finished", Job: "charge-cards", Outcome: "succeeded", Attempt: 2, from: "one"}}},
		{"a death", "T                 two    ✗ killed with SIGKILL while it ran send-report\nT                 two    started again\nT  heartbeat      one    ✗ T died with two, is not run again\n", []event{
			{Msg: killed, Job: reported, from: "two"}, {Msg: back, from: "two"}, {Msg: "finished", Job: h, Outcome: "interrupted", Dead: "two", from: "one"}}},
		{"what is said before there is a log", "T                 two    error: no such table\n", []event{{Level: "ERROR", Msg: "error: no such table", from: "two"}}},
	} {
		if got := told(t, false, c.events...); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.name, got, c.want)
		}
	}
	// The takeover of a run whose start was logged names both replicas.
	got := told(t, false, event{Msg: "fired", Job: reported, from: "two"}, event{Msg: killed, Job: reported, from: "two"},
		event{Msg: "finished", Job: reported, Outcome: "interrupted", Dead: "two", from: "three"}, event{Msg: "fired", Job: reported, Kind: "takeover", from: "three"})
	if !strings.HasSuffix(got, "T  send-report    three  ↻ took over T from two, runs it again\n") {
		t.Errorf("a takeover: got\n%s", got)
	}
}

func TestOnlyATerminalGetsColours(t *testing.T) {
	e := event{Msg: killed, Job: reported, from: "two"}
	if got := told(t, false, e); strings.Contains(got, "\x1b") {
		t.Errorf("no terminal, and it got %q", got)
	}
	if got := told(t, true, e); !strings.Contains(got, "\x1b[31m") {
		t.Errorf("a terminal, and it got %q", got)
	}
}

func TestTheTableOfTheDemoIsOne(t *testing.T) {
	parsed, err := config.Parse("table.yaml", []byte(table("127.0.0.1:1", "127.0.0.1:2")), nil)
	if err != nil || len(parsed.Warnings) > 0 || len(parsed.Jobs) != len(jobs()) {
		t.Errorf("got %v, %v", parsed, err)
	}
	for _, name := range []string{everywhere, queueing, reported} {
		if !strings.Contains(table("", ""), "- name: "+name+" ") {
			t.Errorf("there is no job %s", name)
		}
	}
	for _, j := range jobs() {
		if line := "  " + j.name + "  " + j.about; len([]rune(line))+14 > 80 {
			t.Errorf("%q is too long for a narrow terminal", line)
		}
	}
}

func TestALineOfTheLogIsReadWithItsDurations(t *testing.T) {
	e, err := parse([]byte(`{"time":"2026-11-20T23:02:20Z","level":"INFO","msg":"finished","job":"x",` +
		`"durationSeconds":1.5,"waitSeconds":0.25,"replica":"two"}`))
	if err != nil || e.Msg != "finished" || e.Job != "x" || e.Duration != 1500*time.Millisecond ||
		e.Wait != 250*time.Millisecond || e.Dead != "two" {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := parse([]byte("panic: what is no log")); err == nil {
		t.Errorf("%+v", e)
	}
}
