package sim

import (
	"testing"
	"time"

	"github.com/solotick/solotick/sidecar/execute"
)

// Each run is judged beside all that live, and not beside the one alone that ends last.
func TestTheJudgeComparesAllRunsThatLive(t *testing.T) {
	w := &world{plan: &Plan{natures: map[string]*Job{"x": {}}}, met: map[string]int{}, began: time.Now(), redis: &store{}}
	w.redis.claims = &claims{world: w, by: map[string]*claim{}}
	for _, r := range []struct {
		id, policy      string
		won, start, end time.Duration
	}{
		{"before", "Forbid", 1, 1, 10},
		{"beside it", "Forbid", 2, 4, 9},
		{"rightly beside both", "Allow", 3, 3, 20},
	} {
		cl := &claim{run: r.id, job: "x", policy: r.policy, won: r.won * time.Second, trust: time.Minute, replica: &replica{}}
		w.redis.claims.all, w.redis.claims.by[r.id] = append(w.redis.claims.all, cl), cl
		end := r.end * time.Second
		w.runs = append(w.runs, &run{Run: execute.Run{Job: "x", ID: r.id}, replica: cl.replica, start: r.start * time.Second, over: end,
			gone: end, end: end})
	}
	w.checkOverlap()
	if len(w.violations) != 1 {
		t.Errorf("found: %v", w.violations)
	}
}
