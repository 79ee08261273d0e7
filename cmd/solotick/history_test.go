package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// A tick goes round three replicas, and the third one starts it.
func TestHistoryShowsHandoversUnderTheirRun(t *testing.T) {
	mini := miniredis.RunT(t)
	rdb := lock.NewClient(redis.UniversalOptions{Addrs: []string{mini.Addr()}}, 10*time.Second)
	defer rdb.Close()
	s, err := service.New(rdb, "billing", lock.Options{Timeout: 10 * time.Second})
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	must(err)
	_, err = s.Locks.Register(t.Context(), "send-invoices", "")
	must(err)
	for tick := range 3 {
		d, err := s.Trigger(t.Context(), "send-invoices", fmt.Sprintf("c2f1d0e9-8b7a-4c6d-9e5f-4a3b2c1d0e0%d", tick))
		must(err)
		for i := range 3 {
			if i > 0 {
				seen, err := s.Look(t.Context(), 1)
				must(err)
				d = seen.Due[0]
			}
			l, _, err := s.Locks.Acquire(t.Context(), lock.Claim{Job: d.Job, Tick: d.Tick, Replica: fmt.Sprintf("app-%d", i+1), TTL: 15 * time.Second,
				Kind: d.Kind, Attempt: d.Attempt, Refused: d.Refused, Member: d.Member()})
			must(err)
			e := &service.Entry{Job: d.Job, Tick: d.Tick, Run: l.Run(), Replica: fmt.Sprintf("app-%d", i+1), Kind: d.Kind,
				Attempt: 1, Outcome: service.HandedOver, Detail: "connection refused"}
			if i < 2 {
				_, err = l.Handover(t.Context(), 0, e.Ending())
			} else {
				e.Outcome, e.Detail = "succeeded", ""
				_, err = l.Finish(t.Context(), 0, e.Ending())
			}
			must(err)
		}
	}
	table := filepath.Join(t.TempDir(), "table.yaml")
	must(os.WriteFile(table, []byte(documented["table.yaml"]), 0o600))
	run := func(args ...string) string {
		var out, errOut bytes.Buffer
		args = append(args, "-c", table, "--redis", "redis://"+mini.Addr()+"/0")
		if code := commandLine(args, &out, &errOut); code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, &errOut)
		}
		return out.String()
	}
	for n, want := range map[string]int{"2": 2, "20": 3} { // as many runs as were asked for, whatever went before them
		text := run("history", "-n", n)
		if got := strings.Count(text, "\n  handed over 2 times before, by app-1, app-2: connection refused\n"); got != want ||
			strings.Count(text, "succeeded") != want || strings.Contains(text, "handed_over") {
			t.Errorf("-n %s shows\n%s", n, text)
		}
	}
	var entries []view.Entry
	must(json.Unmarshal([]byte(run("history", "-n", "3", "-o", "json")), &entries))
	if len(entries) != 3 || entries[0].Outcome != "succeeded" || entries[1].Outcome != "handed_over" || entries[1].Failed {
		t.Errorf("as JSON: %+v", entries)
	}
	if text := run("status"); strings.Contains(text, "handed_over") || !strings.Contains(text, "succeeded") {
		t.Errorf("the status is\n%s", text)
	}
}

func TestHistorySinceATimeHasAllRuns(t *testing.T) {
	mini := miniredis.RunT(t)
	for n := range 25 {
		entry := fmt.Sprintf(`{"job":"send-invoices","run":"r%d","outcome":"succeeded"}`, n)
		if _, err := mini.XAdd("solotick:{billing}:history:send-invoices", "*", []string{"run", entry}); err != nil {
			t.Fatal(err)
		}
	}
	var out, errOut bytes.Buffer
	code := commandLine(strings.Fields("history send-invoices -n 26 --service billing --redis redis://"+mini.Addr()+"/0"), &out, &errOut)
	if code != 0 || strings.Contains(out.String(), "at most failures") {
		t.Errorf("exit code %d, some are gone: %s%s", code, &out, &errOut)
	}
	for args, want := range map[string]int{"": 20, "--since -1h": 25, "--since -1h -n 20": 20} {
		var out, errOut bytes.Buffer
		words := strings.Fields("history -o json --service billing --redis redis://" + mini.Addr() + "/0 " + args)
		code := commandLine(words, &out, &errOut)
		if got := strings.Count(out.String(), `"run":`); code != 0 || got != want {
			t.Errorf("%q: exit code %d, %d runs, want %d: %s", args, code, got, want, &errOut)
		}
	}
}

func TestHistorySaysWhatIsGone(t *testing.T) {
	mini := miniredis.RunT(t)
	mini.SetTime(time.Date(2027, 3, 28, 9, 0, 0, 0, time.UTC))
	for n := range 200 {
		entry := fmt.Sprintf(`{"job":"often","run":"r%d","outcome":"succeeded"}`, n)
		if _, err := mini.XAdd("solotick:{billing}:history:often", "*", []string{"run", entry}); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]bool{"": true, "--replica other": true, "-n 20": false, "--since 2027-03-28T09:00:00Z": false,
		"--since 2027-03-28T08:00:00Z": true, "-o json": false} {
		var out, errOut bytes.Buffer
		words := strings.Fields("history often -n 300 --service billing --redis redis://" + mini.Addr() + "/0 " + args)
		code := commandLine(words, &out, &errOut)
		said := strings.HasSuffix(out.String(),
			"\nOf often, Redis has all since 2027-03-28T09:00:00Z, and of the time before at most failures (redis.history in the table).\n")
		if code != 0 || said != want {
			t.Errorf("%q: exit code %d, said %t: %.500s%s", args, code, said, &out, &errOut)
		}
	}
}
