package sim

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
)

// queues: jobs whose runs take longer than the distance of their ticks queue, and Redis or replicas are away for a
// while.
func (p *Plan) queues(r *rand.Rand) {
	p.willing(r)
	p.MaxRunning, p.Ready = 0, false
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period, j.Policy, j.Missed = time.Duration(pick(r, 1, 2, 3))*time.Second, "Queue",
			pick(r, "latest", "latest", "all")
		j.Jitter = min(j.Jitter, j.Period/4)
		j.Takes = [2]time.Duration{11 * j.Period / 10, 16 * j.Period / 10}
		j.Timeout, j.Deadline, j.TTL = 20*time.Second, 0, 3*time.Second
		j.Guarantee = pick(r, "at-least-once", "at-most-once")
	}
	for at := 8 * time.Second; at < 34*time.Second; at += 5*time.Second + upTo(r, 3*time.Second) {
		p.Faults = append(p.Faults, Fault{At: at, Kind: pick(r, "redis refuses", redisStalls, "crash", "stop"),
			Replica: -1, For: 300*time.Millisecond + upTo(r, 3*time.Second)})
	}
}

// checkQueue asks Redis itself, as it has answered a claim under Queue: a tick is refused for good only while another
// one waits, behind a run or in the due set, and is made to wait only while none does. A list finds room beside all.
func (s *store) checkQueue(a *ask) {
	if a.policy != string(config.Queue) || !a.table {
		return
	}
	keys := "solotick:{" + serviceName + "}:"
	due, _ := s.mini.ZMembers(keys + "due")
	i := slices.IndexFunc(due, func(m string) bool {
		words := strings.Fields(m)
		if len(words) <= memberKind || words[memberJob] != a.job {
			return false
		}
		kind := kindIn(words[memberKind])
		return kind != "manual" && kind != "backfill"
	})
	switch open := s.mini.HGet(keys+"job:"+a.job, "open"); {
	case a.code == "QUEUED" && len(a.list) == 0:
		if i >= 0 || strings.Count(open, "~+") > 1 {
			s.world.violated("3: one tick waits", a.job, "tick %s was made to wait beside another: %q, due %q",
				stamp(a.tick), open, due)
		}
	case a.code == "OVERLAP":
		if i < 0 && !strings.Contains(open, "~+") {
			s.world.violated("3: one tick waits", a.job, "tick %s was refused for good, and no tick waits: %q, due %q",
				stamp(a.tick), open, due)
		}
	}
}

// limits: runs of a job take longer than the distance of its ticks, and some of them run at once.
func (p *Plan) limits(r *rand.Rand) {
	p.willing(r)
	j := &p.Jobs[0]
	j.Period, j.Policy, j.Limit, j.Missed = time.Duration(pick(r, 1, 2, 3))*time.Second, "Allow", 1+r.IntN(3),
		pick(r, "latest", "all")
	j.Jitter, j.Suspend, j.TTL = min(j.Jitter, j.Period/4), false, time.Duration(pick(r, 3, 5))*time.Second
	j.Takes = [2]time.Duration{j.Period, 5 * j.Period}
	j.Timeout, j.Deadline = 20*time.Second, 0
	j.Guarantee = pick(r, "at-least-once", "at-most-once")
	p.MaxRunning = pick(r, 0, 0, 1, 2)
	for at := 8 * time.Second; at < 34*time.Second; at += 5*time.Second + upTo(r, 5*time.Second) {
		p.Faults = append(p.Faults, Fault{At: at, Kind: pick(r, "redis refuses", redisStalls, "crash", "crash", "stop"),
			Replica: -1, For: 300*time.Millisecond + upTo(r, 3*time.Second)})
	}
}

// limitOf is how many runs a policy allows at once; 0 = it does not count them.
func limitOf(policy string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(policy, string(config.Allow)+":")) // not a number: no limit
	return n
}

// checkLimit asks Redis itself, as it has answered a claim under a limit: so many runs live, and no more, or the tick
// is refused.
func (s *store) checkLimit(a *ask) {
	limit := limitOf(a.policy)
	if limit == 0 {
		return
	}
	live := strings.Count(s.mini.HGet("solotick:{"+serviceName+"}:job:"+a.job, "open"), "=")
	if a.code == "WON" && live > limit || a.code == "OVERLAP" && live < limit {
		s.world.violated("3: a limit", a.job, "%s for tick %s: %d runs live, and %d may",
			a.code, stamp(a.tick), live, limit)
	}
}
