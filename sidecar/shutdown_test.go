package sidecar

import (
	"strings"
	"testing"
	"time"
)

const graceful = "shutdownGrace: 20s" + minutely

func TestShutdownLetsARunEndAndLeavesNothing(t *testing.T) {
	simulate(t, graceful, func(w *world) {
		r := w.replica(10 * time.Second)
		w.at(time.Second)
		r.stop()
		if err := awaited(r, 30*time.Second); err != "" {
			t.Error(err)
		}
		if took := time.Since(w.origin()); took > 10100*time.Millisecond {
			t.Errorf("the replica ended at +%s, want at the end of its run, not of its safety delay", took)
		}
		w.expect(1, "runs_total", "succeeded")
		time.Sleep(2 * time.Second)
		if w.redis.Exists("solotick:{test}:lock:minute") || w.redis.Exists("solotick:{test}:running") {
			t.Errorf("left behind: %q", w.redis.Keys())
		}
	})
}

func TestShutdownCancelsARunWhenTheGraceIsOver(t *testing.T) {
	simulate(t, graceful, func(w *world) {
		r := w.replica(39 * time.Second)
		w.at(time.Second)
		r.stop()
		if err := awaited(r, 30*time.Second); err != "" {
			t.Error(err)
		}
		if took := time.Since(w.origin()); took < 21*time.Second || took > 22*time.Second {
			t.Errorf("the replica ended at +%s, want at +21s", took)
		}
		w.expect(1, "runs_total", "shutdown")
		if !strings.Contains(r.logs.String(), `cause="the shutdown grace is over: shutdownGrace is 20s"`) {
			t.Errorf("the log does not name the key and its value:\n%s", r.logs)
		}
	})
}

func TestADrainingReplicaLeavesTicksToOthers(t *testing.T) {
	simulate(t, graceful, func(w *world) {
		first := w.replica(15 * time.Second)
		w.at(-50 * time.Second)
		second := w.replica(time.Second)
		w.at(-time.Second)
		second.disconnect(true)
		w.at(time.Second) // the tick is the first one's
		second.disconnect(false)
		first.stop()
		w.at(2 * time.Minute)
		w.once("minute", time.Minute, 2*time.Minute, 3*time.Second)
		if err := first.Ready(); err == nil {
			t.Error("a draining replica says that it is ready")
		}
		if err := second.Ready(); err != nil {
			t.Error(err)
		}
	})
}

func TestAWakeThatWaitsForRedisEndsAsDraining(t *testing.T) {
	simulate(t, graceful, func(w *world) {
		r := w.replica(time.Second)
		w.at(-time.Second)
		r.disconnect(true)
		w.at(5 * time.Second)
		r.stop()
		if err := awaited(r, 30*time.Second); err != "" {
			t.Error(err)
		}
		w.expect(1, "skips_total", "draining")
	})
}

// awaited waits for a replica's end, and says so when it does not come.
func awaited(r *replica, limit time.Duration) string {
	select {
	case <-r.done:
		return ""
	case <-time.After(limit):
		return "the replica did not end within " + limit.String()
	}
}
