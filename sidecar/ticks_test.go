package sidecar

import (
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

// specOf is a spec with a tick each minute, or as expr says.
func specOf(t *testing.T, expr string, g config.Guarantee) *spec {
	t.Helper()
	j := every(t, expr, 0)
	j.spec.Guarantee, j.spec.Fingerprint = g, expr
	j.spec.end = func() {}
	return j.spec
}

// TestWhatTheNextSpecTakes: now is twenty seconds after ten minutes past midnight, and the tick of eleven is taken.
func TestWhatTheNextSpecTakes(t *testing.T) {
	at := func(minute int) time.Time { return midnight.Add(time.Duration(minute) * time.Minute) }
	const claimed, everywhere = config.AtMostOnce, config.EveryReplica
	for name, c := range map[string]struct {
		before, next string
		from, to     config.Guarantee
		settled      int // minute of the newest tick of which it is known what became of it
		want         int // minute of the newest tick that is not the next spec's to take
		wantSettled  int // -1 = nothing is known
	}{
		"other ticks, claimed":                            {"* * * * *", "*/5 * * * *", claimed, claimed, 10, 10, -1},
		"every replica's tick is not fired under a claim": {"* * * * *", "* * * * * ", everywhere, claimed, 11, 11, 11},
		"nor one that lies in the future":                 {"* * * * *", "* * * * * ", everywhere, claimed, 30, 30, 30},
		"nor by every replica again":                      {"* * * * *", "*/5 * * * *", everywhere, everywhere, 30, 30, 30},
		"a claimed tick is not fired by every replica":    {"* * * * *", "* * * * * ", claimed, everywhere, 11, 11, 11},
		"one that the next has not is no matter":          {"* * * * *", "*/5 * * * *", claimed, everywhere, 11, 10, -1},
	} {
		t.Run(name, func(t *testing.T) {
			known := ticks{taken: at(11), knownTo: at(c.settled), maxLedgerTick: at(c.settled), since: at(1), registered: at(1), asking: 1}
			got := known.follow(specOf(t, c.before, c.from), specOf(t, c.next, c.to), at(10).Add(20*time.Second))
			want := ticks{taken: at(c.want)}
			if c.from == everywhere {
				want.fingerprint = lock.NoTicks
			}
			if c.wantSettled >= 0 {
				want.knownTo = at(c.wantSettled)
			}
			if got != want {
				t.Errorf("it begins with\n%+v, want\n%+v", got, want)
			}
		})
	}
}

func TestATickIsOwedWhenNothingIsKnownOfIt(t *testing.T) {
	at := func(minute int) time.Time { return midnight.Add(time.Duration(minute) * time.Minute) }
	owes := ticks{taken: at(5), knownTo: at(4), since: at(1), pausedTo: at(3), registered: at(1)}
	for name, change := range map[string]func(*ticks){
		"":                             func(*ticks) {},
		"a wake asks for it":           func(k *ticks) { k.asking = 1 },
		"it is settled":                func(k *ticks) { k.knownTo = at(5) },
		"it lies in a pause":           func(k *ticks) { k.pausedTo = at(6) },
		"it is from before the series": func(k *ticks) { k.since = at(5) },
		"Redis knows nothing":          func(k *ticks) { k.registered = time.Time{} },
	} {
		known := owes
		change(&known)
		if got := known.missedTick(&specOf(t, "* * * * *", config.AtMostOnce).series, at(6)); got != (name == "") {
			t.Errorf("%q: owed: %t", name, got)
		}
	}
}

func TestASeriesThatComesBackIsAnotherOne(t *testing.T) {
	j := &job{name: "j"}
	a, b := specOf(t, "* * * * *", config.AtMostOnce), specOf(t, "*/5 * * * *", config.AtMostOnce)
	j.put(a, midnight)
	first, ok := j.take(midnight.Add(time.Minute))
	if !ok {
		t.Fatal("it has taken no tick")
	}
	j.put(b, midnight.Add(61*time.Second))
	again := specOf(t, "* * * * *", config.AtMostOnce)
	j.put(again, midnight.Add(62*time.Second))
	if second, ok := j.take(midnight.Add(2 * time.Minute)); !ok || !second.refresh() {
		t.Error("the new series has no wake")
	}
	if first.refresh() {
		t.Error("a wake of the first series goes on with the third")
	}
	first.close(true)
	if n := j.known(again).asking; n != 1 {
		t.Errorf("%d wakes of the third series ask, want 1", n)
	}
	if got := j.known(a); got != (ticks{}) {
		t.Errorf("of the first series is known %+v", got)
	}
}
