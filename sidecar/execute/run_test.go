package execute

import (
	"testing"
	"time"
)

var tick = time.Date(2026, 1, 2, 16, 4, 5, 678_900_000, time.FixedZone("CET", 3600))

func aRun() Run {
	return Run{
		Service: "billing", Job: "send-invoices", Tick: tick,
		Since: tick.Add(-time.Hour),
		ID:    "0190b6f2-1c2d-4e3f-8a4b-5c6d7e8f9a0b", Attempt: 2, Token: 41, Replica: "pod-1", Kind: "schedule",
	}
}

func told(r Run) map[string]string {
	m := map[string]string{}
	for _, f := range r.Facts() {
		m[f.Header] = f.Value
		m[f.Env] = f.Value
	}
	return m
}

func TestTheJobIsToldItsRun(t *testing.T) {
	got := told(aRun())
	for name, want := range map[string]string{
		"Idempotency-Key":          `"billing/send-invoices/2026-01-02T15:04:05.678Z"`,
		"Solotick-Service":         "billing",
		"Solotick-Job":             "send-invoices",
		"Solotick-Tick":            "2026-01-02T15:04:05.678Z",
		"Solotick-Run":             "0190b6f2-1c2d-4e3f-8a4b-5c6d7e8f9a0b",
		"Solotick-Attempt":         "2",
		"Solotick-Fencing-Token":   "41",
		"Solotick-Replica":         "pod-1",
		"Solotick-Kind":            "schedule",
		"SOLOTICK_IDEMPOTENCY_KEY": `"billing/send-invoices/2026-01-02T15:04:05.678Z"`,
		"SOLOTICK_SERVICE":         "billing",
		"SOLOTICK_JOB":             "send-invoices",
		"SOLOTICK_TICK":            "2026-01-02T15:04:05.678Z",
		"SOLOTICK_RUN":             "0190b6f2-1c2d-4e3f-8a4b-5c6d7e8f9a0b",
		"SOLOTICK_ATTEMPT":         "2",
		"SOLOTICK_FENCING_TOKEN":   "41",
		"SOLOTICK_REPLICA":         "pod-1",
		"SOLOTICK_KIND":            "schedule",
		"Solotick-Since":           "2026-01-02T14:04:05.678Z",
		"SOLOTICK_SINCE":           "2026-01-02T14:04:05.678Z",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if len(got) != 20 { // no traceparent among them: there is no span that it could name
		t.Errorf("not the twenty names expected: %v", got)
	}
}

func TestARunWithoutATokenIsToldNone(t *testing.T) {
	r := aRun()
	r.Token = 0
	got := told(r)
	if _, there := got["Solotick-Fencing-Token"]; there || len(got) != 18 {
		t.Errorf("a token was told: %v", got)
	}
}

func TestARunWithNoSuccessBeforeItIsToldNone(t *testing.T) {
	r := aRun()
	r.Since = time.Time{}
	if got := told(r); len(got) != 18 || got["Solotick-Since"] != "" {
		t.Errorf("told %v", got)
	}
}

func TestTheKeyIsTheSameForEveryAttemptAndReplica(t *testing.T) {
	a, b := aRun(), aRun()
	b.Attempt, b.Replica, b.Kind, b.ID, b.Token = 7, "pod-9", "takeover", "other", 1234
	if told(a)["Idempotency-Key"] != told(b)["Idempotency-Key"] {
		t.Error("the key differs")
	}
}

func TestAKeyOfItsOwnStandsBehindTheTick(t *testing.T) {
	r := aRun()
	r.Key = "3a1e6c58"
	const want = `"billing/send-invoices/2026-01-02T15:04:05.678Z/3a1e6c58"`
	if got := told(r); got["Idempotency-Key"] != want || got["SOLOTICK_IDEMPOTENCY_KEY"] != want ||
		got["Solotick-Tick"] != "2026-01-02T15:04:05.678Z" {
		t.Errorf("told %v", got)
	}
}

func TestEveryStatusHasAName(t *testing.T) {
	names := map[string]bool{}
	for _, s := range []Status{Succeeded, Failed, Declined, NotStarted, Observed, Interrupted, Canceled} {
		names[s.String()] = true
	}
	if len(names) != 7 || names[""] {
		t.Errorf("names: %v", names)
	}
}
