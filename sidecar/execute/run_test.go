package execute

import (
	"regexp"
	"strings"
	"testing"
)

func told(r Run) map[string]string {
	m := map[string]string{}
	for _, f := range r.facts() {
		m[f.header] = f.value
		m[f.env] = f.value
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
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if got["traceparent"] == "" || got["TRACEPARENT"] == "" || len(got) != 20 {
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

func TestTheKeyIsTheSameForEveryAttemptAndReplica(t *testing.T) {
	a, b := aRun(), aRun()
	b.Attempt, b.Replica, b.Kind, b.ID, b.Token = 7, "pod-9", "takeover", "other", 1234
	if told(a)["Idempotency-Key"] != told(b)["Idempotency-Key"] {
		t.Error("the key differs")
	}
}

func TestTheTraceIsTheRunAndEveryAttemptASpanOfIt(t *testing.T) {
	form := regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`)
	for _, id := range []string{
		"0190b6f2-1c2d-4e3f-8a4b-5c6d7e8f9a0b", "0190B6F2-1C2D-4E3F-8A4B-5C6D7E8F9A0B",
		"", "not a uuid", "00000000-0000-0000-0000-000000000000", strings.Repeat("ab", 40),
	} {
		r := aRun()
		r.ID = id
		one, two := r.traceparent(), r.traceparent()
		if !form.MatchString(one) || strings.Contains(one, strings.Repeat("0", 32)) {
			t.Errorf("run %q: %q is no traceparent", id, one)
		}
		if one[:35] != two[:35] || one[36:52] == two[36:52] {
			t.Errorf("run %q: %q and %q are not two spans of one trace", id, one, two)
		}
	}
	if got := aRun().traceparent(); !strings.HasPrefix(got, "00-0190b6f21c2d4e3f8a4b5c6d7e8f9a0b-") {
		t.Errorf("%q does not carry the run id", got)
	}
}

func TestEveryStatusHasAName(t *testing.T) {
	names := map[string]bool{}
	for s := Succeeded; s <= Canceled; s++ {
		names[s.String()] = true
	}
	if len(names) != 5 || names["status(0)"] || Status(0).String() != "status(0)" {
		t.Errorf("names: %v", names)
	}
}
