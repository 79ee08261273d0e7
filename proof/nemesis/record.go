package nemesis

import (
	"slices"
	"sync"
	"time"
)

// harm is what was done to a target.
type harm string

const (
	killed  harm = "killed"  // a replica: from SIGKILL until the next process is ready, in a new place
	crashed harm = "crashed" // a replica: the same in its old place, where it is known that the process before is dead
	stopped harm = "stopped" // a replica: from SIGSTOP to SIGCONT
	cut     harm = "cut"     // a replica: no way to Redis
	refused harm = "refused" // a replica: its app takes no connections
	drained harm = "drained" // a replica: from SIGTERM until the next process is ready
	away    harm = "away"    // Redis: no server that takes writes
	stalled harm = "stalled" // Redis: from SIGSTOP to SIGCONT
)

// kills reports whether a harm ends the process at once.
func (h harm) kills() bool { return h == killed || h == crashed }

// theRedis is the target of what is done to Redis; the others are names of replicas.
const theRedis = "redis"

// strike is one thing that the nemesis did, and how long it lasted.
type strike struct {
	harm     harm
	target   string
	from, to time.Time // a zero to is still to come
}

// touches reports whether it fell into [from, to].
func (s strike) touches(from, to time.Time) bool {
	return !s.from.After(to) && (s.to.IsZero() || !s.to.Before(from))
}

// phase is a stretch of time with one class of faults.
type phase struct {
	class string
	from  time.Time
}

// record is what the nemesis did. Nothing else excuses a tick.
type record struct {
	mu      sync.Mutex
	strikes []strike
	phases  []phase
	began   time.Time
	stills  []span // in which the machine did not keep time
}

// enter begins a phase.
func (r *record) enter(class string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phases = append(r.phases, phase{class, time.Now()})
}

// begin notes a strike that begins now, and returns what notes its end.
func (r *record) begin(h harm, target string) (over func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := len(r.strikes)
	r.strikes = append(r.strikes, strike{harm: h, target: target, from: time.Now()})
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.strikes[at].to = time.Now()
	}
}

// classAt is the class of the phase in which an instant lies.
func (r *record) classAt(t time.Time) string {
	class := ""
	for _, p := range r.phases {
		if class == "" || !p.from.After(t) {
			class = p.class
		}
	}
	return class
}

// on lists the strikes on a target within [from, to].
func (r *record) on(target string, from, to time.Time) []strike {
	var all []strike
	for _, s := range r.strikes {
		if s.target == target && s.touches(from, to) {
			all = append(all, s)
		}
	}
	return all
}

// struck reports whether a replica, or Redis, was struck within [from, to].
func (r *record) struck(replica string, from, to time.Time) bool {
	return r.hit(replica, from, to) || len(r.on(theRedis, from, to)) > 0
}

// hit reports whether a replica itself was struck within [from, to], and not its app alone. A replica that drains is
// not struck: it ends what it has begun.
func (r *record) hit(replica string, from, to time.Time) bool {
	return slices.ContainsFunc(r.on(replica, from, to), func(s strike) bool {
		return s.harm != drained && s.harm != refused
	})
}

// touched reports whether anything at all happened to a replica, or to Redis, within [from, to].
func (r *record) touched(replica string, from, to time.Time) bool {
	return len(r.on(replica, from, to)) > 0 || len(r.on(theRedis, from, to)) > 0
}

// gone reports whether Redis was killed within [from, to], and its connections with it. One that only stood still
// answers all that it was asked.
func (r *record) gone(from, to time.Time) bool {
	return slices.ContainsFunc(r.on(theRedis, from, to), func(s strike) bool { return s.harm == away })
}

// span is a stretch of time.
type span struct {
	from, to time.Time
	harm     harm // the mildest that explains it: refused (by all apps), stalled, or away for all else
}

// outages are the stretches until end in which there was no Redis, or no replica that was unharmed.
func (r *record) outages(replicas []string, end time.Time) []span {
	bounds := []time.Time{end}
	for _, s := range r.strikes {
		bounds = append(bounds, s.from)
		if !s.to.IsZero() {
			bounds = append(bounds, s.to)
		}
	}
	slices.SortFunc(bounds, time.Time.Compare)
	var all []span
	for i := 1; i < len(bounds); i++ {
		from, to := bounds[i-1], bounds[i]
		if !from.Before(to) || r.available(replicas, from.Add(to.Sub(from)/2)) {
			continue
		}
		h := r.cause(replicas, from.Add(to.Sub(from)/2))
		if n := len(all); n > 0 && all[n-1].to.Equal(from) {
			if all[n-1].to = to; all[n-1].harm != h {
				all[n-1].harm = away
			}
		} else {
			all = append(all, span{from, to, h})
		}
	}
	return all
}

// cause is why nothing is available at an instant.
func (r *record) cause(replicas []string, at time.Time) harm {
	switch {
	case r.gone(at, at):
		return away
	case len(r.on(theRedis, at, at)) > 0:
		return stalled
	case slices.ContainsFunc(replicas, func(name string) bool { return r.hit(name, at, at) }):
		return away
	}
	return refused
}

// available reports whether there was Redis and an unharmed replica.
func (r *record) available(replicas []string, at time.Time) bool {
	if len(r.on(theRedis, at, at)) > 0 {
		return false
	}
	return slices.ContainsFunc(replicas, func(name string) bool { return len(r.on(name, at, at)) == 0 })
}

// downtime is how much of [from, to] lies in the spans.
func downtime(spans []span, from, to time.Time) time.Duration {
	var sum time.Duration
	for _, s := range spans {
		a, b := s.from, s.to
		if a.Before(from) {
			a = from
		}
		if b.After(to) {
			b = to
		}
		sum += max(b.Sub(a), 0)
	}
	return sum
}
