package call

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/solotick/solotick/sidecar/execute"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for an answer before it fails.
const patience = time.Minute

var tick = time.Date(2026, 1, 2, 16, 4, 5, 678_900_000, time.FixedZone("CET", 3600))

func aRun() execute.Run {
	return execute.Run{
		Service: "billing", Job: "send-invoices", Tick: tick,
		ID: "0190b6f2-1c2d-4e3f-8a4b-5c6d7e8f9a0b", Attempt: 2, Token: 41, Replica: "pod-1", Kind: "schedule",
	}
}

func wantStatus(t *testing.T, res execute.Result, want execute.Status) {
	t.Helper()
	if res.Status != want {
		t.Fatalf("status %v (err %v, code %d, output %q), want %v", res.Status, res.Err, res.Code, res.Output, want)
	}
	if (res.Err == nil) != (want == execute.Succeeded) {
		t.Fatalf("status %v with error %v", res.Status, res.Err)
	}
}
