package call

import (
	"regexp"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// TestAKeyCanBeAUUIDOfTheTick: the same for each attempt and replica, another one for another tick, and for ever the
// same.
func TestAKeyCanBeAUUIDOfTheTick(t *testing.T) {
	a := newApp(t, nil)
	key := func(form config.KeyForm, r execute.Run) string {
		t.Helper()
		wantStatus(t, New(config.HTTP{URL: a.URL, IdempotencyKey: form}, Options{}).Execute(t.Context(), r), execute.Succeeded)
		return a.last(t).Header.Get("Idempotency-Key")
	}
	first := aRun()
	again, next, other := first, first, first
	again.Attempt, again.Replica, again.Token, again.ID = 7, "another", first.Token+1, "0a4c51f2-3f68-4a7e-9d21-6f1c2b7e8d90"
	next.Tick = first.Tick.Add(time.Second)
	other.Key = "3a1e6c58"
	got := key(config.KeyUUID, first)
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(got) {
		t.Errorf("%q is no UUID of version 5", got)
	}
	if key(config.KeyUUID, again) != got || key(config.KeyUUID, next) == got || key(config.KeyUUID, other) == got {
		t.Error("the key does not go by the tick")
	}
	if want := "bc8c583d-6813-5215-973a-5760cf5fb3b6"; got != want { // a release that changes it has ticks done twice
		t.Errorf("the key of %s is %s, and was %s", first.Stamp(), got, want)
	}
	if text := key(config.KeyText, first); text != `"billing/send-invoices/`+first.Stamp()+`"` || key("", first) != text {
		t.Errorf("as text it is %s", text)
	}
}
