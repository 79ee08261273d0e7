package nemesis

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestAnEntryIsReadWithTheTimeAtWhichRedisWroteIt(t *testing.T) {
	e, err := parseEntry(redis.XMessage{ID: "1795000000123-1", Values: map[string]any{
		"run": `{"job":"j","tick":1795000000000,"run":"u","replica":"r1","kind":"takeover","attempt":2,"outcome":"failed","ms":5,"detail":"why"}`}})
	want := entry{at: time.UnixMilli(1795000000123), job: "j", tick: time.UnixMilli(1795000000000).UTC(), run: "u", replica: "r1", kind: "takeover",
		attempt: 2, outcome: "failed", detail: "why"}
	if err != nil || e != want {
		t.Errorf("got %+v, %v, want %+v", e, err, want)
	}
}

func TestWhatIsNoEntryIsAnError(t *testing.T) {
	for _, m := range []redis.XMessage{{ID: "1-0"}, {ID: "x", Values: map[string]any{"run": "{}"}}} {
		if e, err := parseEntry(m); err == nil {
			t.Errorf("%+v: got %+v", m, e)
		}
	}
}

func TestATickThatWasHandedOnWaitsWheneverItComesDue(t *testing.T) {
	due := []string{"2000 j handover 1 1 0 r1,~r2 x", "3000 j catchup 1 0 0 x", "2999 j schedule 1 0 0 x"}
	want := []string{due[0], due[2]}
	if got := ofTicks(slices.Clone(due), time.UnixMilli(2999)); !slices.Equal(got, want) {
		t.Errorf("%q wait, not %q", got, want)
	}
}
