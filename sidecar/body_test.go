package sidecar

import (
	"fmt"
	"testing"
	"time"
)

// sending is a table whose job sends a body.
func sending(body string) string {
	return fmt.Sprintf(`
jobs:
  - {name: minute, schedule: "* * * * *", guarantee: at-least-once, missed: skip, timeout: 40s, lock: {ttl: 6s},
     http: {url: "http://127.0.0.1/", body: %q}}
`, body)
}

// TestATakeoverWithAnotherBodyHasAnotherKey: an app that compares bodies refuses a known key with another body, and the tick
// would be lost. If the first body comes back, it is sent under the first key.
func TestATakeoverWithAnotherBodyHasAnotherKey(t *testing.T) {
	for _, c := range []struct {
		name    string
		bodies  [3]string // of each replica in turn; the first two die while they run the tick
		changed [3]bool   // whether the key differs from the first
	}{
		{"the same", [3]string{"a", "a", "a"}, [3]bool{}},
		{"a rollout", [3]string{"a", "b", "b"}, [3]bool{false, true, true}},
		{"a rollout that is taken back", [3]string{"a", "b", "a"}, [3]bool{false, true, false}},
		{"a body at last", [3]string{"", "", "b"}, [3]bool{false, false, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, sending(c.bodies[0]), func(w *world) {
				for i, body := range c.bodies {
					w.reload(sending(body))
					w.replica(35 * time.Second)
					w.at(time.Duration(2+12*i) * time.Second)
					if i < 2 {
						w.replicas[i].crash()
					}
				}
				s := w.started("minute")[w.origin()]
				if len(s) != 3 {
					t.Fatalf("started as %+v\n%s", s, w.log())
				}
				for i := range s {
					if got := s[i].run.Key != ""; got != c.changed[i] {
						t.Errorf("run %d has the key %q", i, s[i].run.Key)
					}
				}
				if c.bodies[1] == c.bodies[2] && s[1].run.Key != s[2].run.Key {
					t.Errorf("one body has two keys: %q and %q", s[1].run.Key, s[2].run.Key)
				}
			})
		})
	}
}

// TestAHandoverWithAnotherBodyHasTheKey: nothing was sent under that key before.
func TestAHandoverWithAnotherBodyHasTheKey(t *testing.T) {
	simulate(t, sending("a"), func(w *world) {
		refuses := w.replica(time.Second)
		refuses.mu.Lock()
		refuses.work = nil
		refuses.mu.Unlock()
		w.at(500 * time.Millisecond)
		w.reload(sending("b"))
		w.replica(time.Second)
		w.at(30 * time.Second)
		s := w.started("minute")[w.origin()]
		if len(s) != 1 || s[0].run.Kind != "handover" || s[0].run.Key != "" {
			t.Errorf("started as %+v\n%s", s, w.log())
		}
	})
}

// TestAShutdownHandsOnWhichBodyWasSent, also under a key of the tick's own.
func TestAShutdownHandsOnWhichBodyWasSent(t *testing.T) {
	a := &spec{}
	for own, want := range map[string]string{"": "", "3a1e6c58": "3a1e6c58/"} {
		a.Job = &parse(t, sending("a")).Jobs[0]
		w := &wake{spec: a}
		w.of.Key = own
		if w.key() != own {
			t.Errorf("the first key is %q", w.key())
		}
		w.of.Key = w.againKey()
		b := &spec{}
		b.Job = &parse(t, sending("b")).Jobs[0]
		next := &wake{spec: b, of: w.of}
		if w.key() != own || next.key() != want+b.body() || next.againKey() != w.of.Key {
			t.Errorf("after %q the keys are %q and %q, and %q is handed on", w.of.Key, w.key(), next.key(), next.againKey())
		}
	}
}
