package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
)

// Redis' clock is one that replicas follow while it is less than a minute off theirs. Skews are at most half of the
// rest.
const (
	surelyBelieved = 45 * time.Second
	surelyNot      = 75 * time.Second
	skews          = 5 * time.Second // of the replicas' own clocks
)

// phase is a time in which Redis' clock was off by the same.
type phase struct {
	from, to, off time.Duration
	own           bool // the replicas follow their own clocks in any case, and Redis' is ahead
}

func (w *world) phases() []phase {
	all := []phase{{to: 1 << 62, own: w.plan.Own && w.stepped}}
	for _, f := range w.plan.Faults {
		if f.Kind == redisSteps {
			last := &all[len(all)-1]
			last.to = f.At
			all = append(all, phase{from: f.At, to: 1 << 62, off: last.off + f.By, own: last.own})
		}
	}
	return all
}

// far reports whether no replica follows Redis' clock.
func (p phase) far() bool { return p.own || p.off.Abs() > surelyNot }

// doubtful reports whether that is hard to say, or ticks are refused since Redis' clock is behind.
func (p phase) doubtful() bool {
	return p.off.Abs() > surelyBelieved && (!p.far() || p.off < 0) || p.own && p.off < 0
}

// steps says in which time less can be asked after Redis' clock was set: until it has caught up with what it was, or
// until the replicas have noticed that they do not follow it any more. Replicas cannot follow a clock while Redis does
// not answer.
func (w *world) steps(f Fault, now time.Duration) {
	heard := w.answersAgain(now)
	to := heard + max(f.By.Abs(), f.For) + recovery
	if f.By.Abs() > surelyBelieved || w.plan.Own {
		to = heard + 3*time.Second
	}
	w.span(-1, now-time.Second, to, f.Kind)
	for _, p := range w.phases() {
		if p.from == f.At && p.doubtful() {
			w.span(-1, now-time.Second, p.to, f.Kind)
		}
	}
}

// answersAgain is the end of the outages of Redis that lie over a time; the time itself when none does.
func (w *world) answersAgain(at time.Duration) time.Duration {
	for _, f := range w.plan.Faults { // in the order of their time
		if slices.Contains([]string{"redis refuses", "redis void", redisStalls}, f.Kind) &&
			f.At <= at && at < f.At+f.For {
			at = f.At + f.For
		}
	}
	return at
}

// wentBack reports whether Redis' clock has ever been ahead of what it shows now.
func (w *world) wentBack() bool {
	now := w.now()
	shows := now + w.offsetAt(now)
	return slices.ContainsFunc(w.phases(), func(p phase) bool { return p.to < now && p.to+p.off > shows })
}

// offsetAt is what Redis' clock was off by.
func (w *world) offsetAt(at time.Duration) (off time.Duration) {
	for _, p := range w.phases() {
		if p.from <= at {
			off = p.off
		}
	}
	return off
}

// dueAt is the world's time at which the clocks that replicas follow have all reached a tick for the first time; false
// when they were set over it.
func (w *world) dueAt(tick time.Time) (time.Duration, bool) {
	d, at := tick.Sub(w.began), time.Duration(0)
	for _, p := range w.phases() {
		at = d - p.off
		if p.far() {
			at = d + skews
		}
		if at >= p.from && at < p.to {
			return at, true
		}
	}
	return at, false
}

// cameDue is dueAt of the instant at which a tick of a job comes due by its jitter.
func (w *world) cameDue(j *config.Job, tick time.Time) time.Duration {
	if j.Jitter > 0 {
		tick = tick.Add(schedule.Jitter(j.Name, tick, j.Jitter))
	}
	at, _ := w.dueAt(tick)
	return at
}

// reached is the world's time, from one on, at which Redis' clock has reached an instant.
func (w *world) reached(t time.Time, from time.Duration) time.Duration {
	d := t.Sub(w.began)
	for _, p := range w.phases() {
		if p.to <= from {
			continue
		}
		if at := max(from, p.from, d-p.off); at < p.to {
			return at
		}
	}
	return from
}

// clocksApart is the class of clocks that are far off from the beginning.
const clocksApart = "clocks apart"

// farApart: the clock of one replica is far off among right ones, or Redis' clock is behind those of all. Meanwhile
// apps refuse, and ticks wait for slots and for the ends of runs. Redis grants a tick when its own clock has reached
// it, so the ticks come as in worlds whose clocks agree.
func (p *Plan) farApart(r *rand.Rand) {
	for len(p.Replicas) < 3 {
		p.Replicas = append(p.Replicas, Replica{Begins: upTo(r, 2*time.Second), Skew: upTo(r, 2*skews) - skews})
	}
	p.willing(r)
	p.Replicas, p.Faults, p.MaxRunning = p.Replicas[:3], nil, pick(r, 0, 1, 1, 2)
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period, j.Policy, j.Timeout = time.Duration(pick(r, 5, 7, 10))*time.Second,
			pick(r, "Forbid", "Queue", "Replace", "Replace"), 20*time.Second
		j.Jitter = min(j.Jitter, j.Period/4)
		j.Takes = pick(r, [2]time.Duration{time.Second, 2 * time.Second}, [2]time.Duration{0, 200 * time.Millisecond},
			[2]time.Duration{j.Period, 3 * j.Period / 2})
	}
	by := 66*time.Second + upTo(r, 15*time.Second)
	switch r.IntN(4) {
	case 0: // one replica is ahead
		p.Replicas[r.IntN(3)].Skew = by
	case 1: // or behind
		p.Behind = 1 + r.IntN(3)
		p.Replicas[p.Behind-1].Skew = -by
	case 2: // Redis is behind
		p.ahead(by)
	case 3: // and the table says `clock: local`
		p.Own, by = true, 2*skews+upTo(r, 40*time.Second)
		p.ahead(by)
	}
	p.Settles = by + 2*skews
	p.Lasts = p.Settles + 40*time.Second
	switch n := r.IntN(3); {
	case n == 0 && p.MaxRunning == 0: // who refuses leaves the slot to other jobs
		for i := range p.Jobs {
			p.Jobs[i].Refuses = 0.3
		}
	case n == 1:
		from := p.Settles + upTo(r, 5*time.Second)
		p.AppsDown = []Downtime{{pick(r, 0, 1, 2), from, from + 15*time.Second + upTo(r, 10*time.Second)}}
	}
}

// ahead sets the clocks of all replicas ahead.
func (p *Plan) ahead(by time.Duration) {
	for i := range p.Replicas {
		p.Replicas[i].Skew += by
	}
}
