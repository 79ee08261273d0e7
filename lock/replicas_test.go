package lock_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/solotick/solotick/lock"
)

func TestAReplicasHeartbeatIsReadAsItWasSent(t *testing.T) {
	onEvery(t, func(w *world) {
		a, b := w.replica("a"), w.replica("b")
		at := w.now().Truncate(time.Millisecond).UTC()
		sent := lock.Replica{Name: "z", Version: "v1", Table: "abc", Offset: -1500 * time.Microsecond, Ready: "draining",
			Skips: map[string]lock.Skip{job: {Tick: w.tick(1).UTC(), Reason: "overlap", At: at}}}
		w.must(a.Beat(w.Context(), sent))
		w.must(b.Beat(w.Context(), lock.Replica{Name: "y"}))
		got, err := a.Replicas(w.Context())
		if err != nil || len(got) != 2 || got[0].Name != "y" {
			w.Fatalf("%+v, %v", got, err)
		}
		z := got[1]
		if age := z.Seen.Sub(at); age < -time.Millisecond || age > 2*time.Second {
			w.Errorf("seen at %s, sent after %s", z.Seen, at)
		}
		if !maps.Equal(z.Skips, sent.Skips) || z.Name != "z" || z.Version != "v1" || z.Table != "abc" || z.Offset != sent.Offset || z.Ready != "draining" {
			w.Errorf("%+v, want %+v", z, sent)
		}
		w.must(a.Leave(w.Context(), "z"))
		if got, err := a.Replicas(w.Context()); err != nil || len(got) != 1 {
			w.Errorf("after z left: %+v, %v", got, err)
		}
		if err := a.Beat(w.Context(), lock.Replica{Name: "two words"}); err == nil {
			w.Error("a name of two words was taken")
		}
	})
}

func TestSilentReplicasAreSeenForADay(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.replica("a")
		w.must(a.Beat(w.Context(), lock.Replica{Name: "old"}))
		w.pass(24*time.Hour - time.Second)
		w.must(a.Beat(w.Context(), lock.Replica{Name: "young"}))
		if got, err := a.Replicas(w.Context()); err != nil || len(got) != 2 {
			w.Errorf("after almost a day: %+v, %v", got, err)
		}
		w.pass(time.Minute)
		got, err := a.Replicas(w.Context())
		if err != nil || len(got) != 1 || got[0].Name != "young" {
			w.Errorf("after more than a day: %+v, %v", got, err)
		}
		if n := w.admin.HLen(w.Context(), "solotick:{svc}:replicas").Val(); n != 1 {
			w.Errorf("%d are kept", n)
		}
	})
}

func TestOfMoreThanAHundredSkipsTheNewestAreKept(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.replica("a")
		skips := map[string]lock.Skip{}
		for n := range 250 {
			skips[fmt.Sprint("job-", n)] = lock.Skip{Reason: "overlap", At: w.tick(n)}
		}
		w.must(a.Beat(w.Context(), lock.Replica{Name: "a", Skips: skips}))
		got, err := a.Replicas(w.Context())
		w.must(err)
		if n := len(got[0].Skips); n != 100 {
			w.Errorf("%d are kept", n)
		}
		for n := 150; n < 250; n++ {
			if _, ok := got[0].Skips[fmt.Sprint("job-", n)]; !ok {
				w.Fatalf("that of tick %d is not kept", n)
			}
		}
	})
}
