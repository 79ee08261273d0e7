package sim

import (
	"math/rand/v2"
	"time"
)

// watchersRestart is the class of seeds in which no replica lives for as long as a lease while a run waits for its
// takeover.
const watchersRestart = "watchers restart"

// tellsBy is how long a run may wait, after its replica died, for watchers that are restarted every few seconds: until
// its lease is overdue, and then until their lives, in which they see it, are a lease together.
const tellsBy = 45 * time.Second

// restarts: a replica that runs something dies for good, and the others are killed and come back again and again.
func (p *Plan) restarts(r *rand.Rand) {
	p.willing(r)
	p.Faults = nil
	for len(p.Replicas) < 3 {
		p.Replicas = append(p.Replicas, Replica{Begins: upTo(r, 2*time.Second),
			Skew: upTo(r, 10*time.Second) - 5*time.Second})
	}
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period, j.TTL, j.Timeout, j.Deadline = time.Duration(pick(r, 5, 7, 10))*time.Second,
			15*time.Second, time.Minute, 0
		j.Takes, j.Jitter = [2]time.Duration{20 * time.Second, 40 * time.Second}, min(j.Jitter, j.Period/4)
	}
	at := 11*time.Second + upTo(r, 4*time.Second)
	p.Faults = append(p.Faults, Fault{At: at, Kind: "crash", Replica: -1, For: tellsBy + 10*time.Second})
	for place := range p.Replicas {
		for next := at + upTo(r, 3*time.Second); next < at+tellsBy+5*time.Second; {
			p.Faults = append(p.Faults, Fault{At: next, Kind: "crash", Replica: place,
				For: 50*time.Millisecond + upTo(r, 500*time.Millisecond)})
			next += 3*time.Second + upTo(r, 2*time.Second)
		}
	}
}

// judgeWatchers: what one watcher has seen of a lease counts for the next one.
func (w *world) judgeWatchers(c *claim) {
	died := c.replica.diedAt()
	if w.plan.Class != watchersRestart || died == 0 || c.won >= died || died+tellsBy > w.plan.Lasts {
		return
	}
	w.met["waited for watchers that are restarted"]++
	if c.settled == 0 || c.settled > died+tellsBy {
		w.violatedAt(died, "prompt", c.job, "tick %s was left by a replica that died at %s, and taken over at %s, "+
			"although there were watchers", stamp(c.tick), died, c.settled)
	}
}
