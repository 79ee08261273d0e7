package sidecar

import (
	"testing"
	"time"
)

// A hosted Redis takes its price by the command, and most services have nothing to do for most of the day.
func TestAReplicaAtRestSendsHalfACommandASecond(t *testing.T) {
	simulate(t, "jobs:\n  - {name: nightly, schedule: '0 3 * * *', exec: {command: [x]}}", func(w *world) {
		w.replica(0)
		w.at(time.Minute)
		before := w.redis.CommandCount()
		w.at(11 * time.Minute)
		if n := w.redis.CommandCount() - before; n > 300 || n < 20 {
			t.Errorf("%d commands in ten minutes", n)
		}
	})
}
