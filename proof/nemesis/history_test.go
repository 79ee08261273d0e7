package nemesis

import (
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
