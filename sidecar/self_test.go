package sidecar

import (
	"strings"
	"testing"
	"time"
)

// While Redis is away, a replica tells since when, why, and what it ran itself.
func TestAReplicaKnowsItsOwnRunsAndTheTroubleWithoutRedis(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(20 * time.Second)
		w.at(10 * time.Second)
		own := r.OwnRuns("minute")
		if len(own.Running) != 1 || own.Last != nil || !own.Running[0].Tick.Equal(w.origin()) || own.Running[0].Run == "" ||
			own.Running[0].Replica != "r1" || own.Running[0].Kind != "schedule" || own.Running[0].Since.Sub(w.origin()) > time.Millisecond {
			t.Errorf("in its first run: %+v", own)
		}
		if trouble := r.RedisTrouble(); trouble != nil {
			t.Errorf("Redis answers, and is in trouble: %+v", trouble)
		}
		w.at(30 * time.Second)
		first := own.Running[0].Run
		own = r.OwnRuns("minute")
		if len(own.Running) != 0 || own.Last == nil || own.Last.Run != first || own.Last.Outcome != "succeeded" {
			t.Errorf("after it: %+v", own)
		}
		r.disconnect(true)
		for _, later := range []time.Duration{40 * time.Second, 3 * time.Minute} {
			w.at(later)
			trouble := r.RedisTrouble()
			if trouble == nil || !strings.HasPrefix(trouble.Says, "does not answer") {
				t.Fatalf("at %s Redis is away, and the trouble is %+v", later, trouble)
			}
			if since := trouble.Since.Sub(w.origin()); since < 30*time.Second || since > 40*time.Second {
				t.Errorf("at %s it is away since %s", later, since)
			}
		}
		r.disconnect(false)
		w.at(3*time.Minute + 30*time.Second)
		if trouble := r.RedisTrouble(); trouble != nil {
			t.Errorf("Redis is back, and in trouble: %+v", trouble)
		}
	})
}
