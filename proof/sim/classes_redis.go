package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// The classes of seeds in which something befalls Redis.

// stalls: Redis stands still for some seconds, and then runs what it was sent.
func (p *Plan) stalls(r *rand.Rand) {
	p.willing(r)
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period = time.Duration(pick(r, 1, 1, 2, 3)) * time.Second
		j.Missed = pick(r, "latest", "all")
		j.Jitter = min(j.Jitter, j.Period/4)
		j.Takes = pick(r, [2]time.Duration{0, 100 * time.Millisecond}, [2]time.Duration{0, j.Period})
	}
	at := 8*time.Second + upTo(r, 4*time.Second)
	for range 1 + r.IntN(2) {
		f := Fault{At: at, Kind: redisStalls, For: 2*time.Second + upTo(r, 7*time.Second)}
		p.Faults = append(p.Faults, f)
		at += f.For + 12*time.Second
	}
}

// farClock: Redis' clock is set far off and back, or by seconds, with manual runs, pauses and timers under it.
func (p *Plan) farClock(r *rand.Rand) {
	p.willing(r)
	p.Faults, p.MaxRunning = nil, pick(r, 0, 0, 2)
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period = time.Duration(pick(r, 2, 3, 5)) * time.Second
		j.Takes = [2]time.Duration{0, 500 * time.Millisecond}
		j.Jitter = min(j.Jitter, j.Period/4)
	}
	by := pick(r, 90*time.Second+upTo(r, 5*time.Minute), 20*time.Minute+upTo(r, 2*time.Hour),
		-90*time.Second-upTo(r, time.Hour), 5*time.Second+upTo(r, 25*time.Second))
	at, lasts := 10*time.Second+upTo(r, 4*time.Second), 8*time.Second+upTo(r, 6*time.Second)
	p.Faults = append(p.Faults, Fault{At: at, Kind: redisSteps, By: by, For: time.Second},
		Fault{At: at + lasts, Kind: redisSteps, By: -by, For: time.Second})
	job := p.Jobs[0].Name
	for range 1 + r.IntN(3) {
		p.Orders = append(p.Orders, Order{At: at + time.Second + upTo(r, lasts+6*time.Second),
			Kind: "trigger", Job: job})
	}
	if r.IntN(2) == 0 {
		p.Orders = append(p.Orders, Order{At: at + time.Second, Kind: "pause", Job: p.Jobs[1].Name, For: lasts / 2})
	}
	if by > 20*time.Minute && r.IntN(2) == 0 {
		for i := range 4 {
			p.Timers = append(p.Timers, TimerPlan{ID: fmt.Sprintf("t%d", i+1), Set: 6 * time.Second,
				Due: 10 * time.Minute})
		}
	}
	p.Lasts = at + lasts + 26*time.Second
	if r.IntN(4) == 0 { // the table says `clock: local`, and a pause or two end while Redis is ahead
		p.Own, p.Settles = true, 13*time.Second // one that begins may be past a tick that is still to come for Redis
		for i := range p.Replicas {
			p.Replicas[i].Skew = p.Replicas[0].Skew + upTo(r, 50*time.Millisecond)
		}
		p.Orders = append(p.Orders, Order{At: at + 2*time.Second, Kind: "pause", Job: job, For: lasts - 3*time.Second})
	}
}

// memory: Redis is out of memory, or read-only, for a while.
func (p *Plan) memory(r *rand.Rand) {
	p.willing(r)
	for i := range p.Jobs {
		if j := &p.Jobs[i]; i < 2 {
			j.Period = time.Duration(pick(r, 3, 5)) * time.Second
			j.Jitter = min(j.Jitter, j.Period/4)
			j.busy(r)
		}
	}
	at := 9*time.Second + upTo(r, 5*time.Second)
	for range 1 + r.IntN(2) {
		f := Fault{At: at, Kind: pick(r, redisFull, redisFull, redisReadsOnly),
			For: 2*time.Second + upTo(r, 7*time.Second)}
		p.Faults = append(p.Faults, f)
		at += f.For + 12*time.Second
	}
}

// failovers: Redis goes back to what a replica of it has, after every kind of answer.
func (p *Plan) failovers(r *rand.Rand) {
	p.willing(r)
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period = time.Duration(pick(r, 2, 3, 5)) * time.Second
		j.Jitter = min(j.Jitter, j.Period/4)
		j.Policy = pick(r, "Forbid", "Queue", "Replace", "Allow")
		if r.IntN(2) == 0 {
			j.busy(r)
		}
	}
	at := 10*time.Second + upTo(r, 3*time.Second)
	for range 1 + r.IntN(2) {
		f := Fault{At: at, Kind: failsOver, For: 100*time.Millisecond + upTo(r, time.Second),
			By: 5*time.Millisecond + upTo(r, 800*time.Millisecond),
			After: pick(r, "acquire WON", "acquire QUEUED", "acquire OVERLAP", "settle OK", "settle OK",
				"ask OK", "pause OK")}
		p.Faults = append(p.Faults, f)
		job := pick(r, p.Jobs...).Name
		switch f.After {
		case "ask OK":
			p.Orders = append(p.Orders, Order{At: at + 100*time.Millisecond, Kind: pick(r, "trigger", "backfill"),
				Job: job})
		case "pause OK":
			p.Orders = append(p.Orders, Order{At: at + 100*time.Millisecond, Kind: "pause", Job: job,
				For: 4 * time.Second})
		}
		at += 16 * time.Second
	}
}

// confirmed is failovers with waitReplicas.
func (p *Plan) confirmed(r *rand.Rand) {
	p.failovers(r)
	p.Confirms = 1
}

// older: Redis is killed, and comes back with a snapshot that is seconds old. In some seeds a replica is restarted
// then.
func (p *Plan) older(r *rand.Rand) {
	p.willing(r)
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period, j.Missed = time.Duration(pick(r, 2, 3, 5))*time.Second, pick(r, "latest", "all", "all")
		j.Guarantee, j.Policy = pick(r, "at-most-once", "at-most-once", "at-least-once"),
			pick(r, "Forbid", "Forbid", "Queue", "Replace", "Allow")
		j.Jitter, j.Deadline, j.Takes = min(j.Jitter, j.Period/4), 0, [2]time.Duration{0, j.Period / 2}
	}
	f := Fault{At: 10*time.Second + upTo(r, 6*time.Second), Kind: comesBackOlder,
		By: 2*time.Second + upTo(r, 15*time.Second), For: 100*time.Millisecond + upTo(r, 4*time.Second)}
	p.Faults = []Fault{f}
	if r.IntN(2) == 0 {
		p.Faults = append(p.Faults, Fault{At: f.At + f.By - upTo(r, time.Second), Kind: pick(r, "crash", "stop"),
			Replica: -1, For: f.For + upTo(r, 5*time.Second)})
	}
	p.Lasts = f.At + f.By + f.For + 25*time.Second
}

// empties: Redis is away for some seconds, and has lost all data when it is back.
func (p *Plan) empties(r *rand.Rand) {
	p.willing(r)
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Guarantee, j.Missed = pick(r, "at-least-once", "at-least-once", "at-most-once"),
			pick(r, "latest", "latest", "all")
		j.Period = time.Duration(pick(r, 5, 7, 10, 10)) * time.Second
		j.Jitter = min(j.Jitter, j.Period/4)
		j.Takes = pick(r, [2]time.Duration{j.Period / 3, 2 * j.Period / 3}, [2]time.Duration{0, j.Period / 3})
		j.Timeout = 20 * time.Second
		j.Deadline = 0
	}
	at, away := 12*time.Second+upTo(r, 6*time.Second), 2*time.Second+upTo(r, 9*time.Second)
	p.Faults = []Fault{{At: at, Kind: "redis refuses", For: away}, {At: at + away/2, Kind: forgets}}
}
