package sim

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
)

// queues: jobs whose runs take longer than the distance of their ticks queue, and Redis or replicas are away for a while.
func (p *Plan) queues(r *rand.Rand) {
	p.willing(r)
	p.MaxRunning, p.Ready = 0, false
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period, j.Policy, j.Missed = time.Duration(pick(r, 1, 2, 3))*time.Second, "Queue", pick(r, "latest", "latest", "all")
		j.Jitter = min(j.Jitter, j.Period/4)
		j.Takes = [2]time.Duration{11 * j.Period / 10, 16 * j.Period / 10}
		j.Timeout, j.Deadline, j.TTL = 20*time.Second, 0, 3*time.Second
		j.Guarantee = pick(r, "at-least-once", "at-most-once")
	}
	for at := 8 * time.Second; at < 34*time.Second; at += 5*time.Second + upTo(r, 3*time.Second) {
		p.Faults = append(p.Faults, Fault{At: at, Kind: pick(r, "redis refuses", redisStalls, "crash", "stop"), Replica: -1,
			For: 300*time.Millisecond + upTo(r, 3*time.Second)})
	}
}

// checkQueue asks Redis itself, as it has answered a claim under Queue: a tick is refused for good only while another one waits,
// behind a run or in the due set, and is made to wait only while none does. A list finds room beside all.
func (s *store) checkQueue(a *ask) {
	if a.policy != string(config.Queue) || !a.table {
		return
	}
	keys := "solotick:{" + serviceName + "}:"
	due, _ := s.mini.ZMembers(keys + "due")
	i := slices.IndexFunc(due, func(m string) bool {
		words := strings.Fields(m)
		return len(words) > 2 && words[1] == a.job && words[2] != "manual" && words[2] != "backfill"
	})
	switch behind := s.mini.HGet(keys+"job:"+a.job, "behind"); {
	case a.code == "QUEUED" && len(a.list) == 0:
		if i >= 0 || strings.Count(behind, "+") > 1 {
			s.world.violated("3: one tick waits", a.job, "tick %s was made to wait beside another: %q, due %q", stamp(a.tick), behind, due)
		}
	case a.code == "OVERLAP":
		if i < 0 && !strings.Contains(behind, "+") {
			s.world.violated("3: one tick waits", a.job, "tick %s was refused for good, and no tick waits: %q, due %q", stamp(a.tick), behind, due)
		}
	}
}
