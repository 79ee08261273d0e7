package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// herds are the sizes whose delays are measured, with the targets of each.
var herds = []struct {
	jobs, replicas, ticks int
	p99, cpu, redis       []target // redis are of its CPU, and of its commands for the one job
}{
	{jobs: 1, replicas: replicas, ticks: 15, p99: []target{ratioAtMost(0.4)},
		cpu: []target{ratioAtMost(1.4), oursAtMost(1.5)}, redis: []target{oursAtMost(14)}},
	{jobs: 100, replicas: replicas, ticks: 6, p99: []target{ratioAtMost(0.3)}, cpu: []target{ratioAtMost(0.8)},
		redis: []target{ratioAtMost(0.8)}},
	{jobs: 1000, replicas: replicas, ticks: 6, p99: []target{ratioAtMost(0.4), oursAtMost(100)},
		cpu: []target{ratioAtMost(0.6)}, redis: []target{ratioAtMost(0.8)}},
	{jobs: 100, replicas: 10, ticks: 6, p99: []target{ratioAtMost(0.2)}, cpu: []target{ratioAtMost(0.8)},
		redis: []target{ratioAtMost(0.8)}},
}

// furtherReplica is what one more replica may cost Redis, in µs of CPU per job and tick.
const furtherReplica = 3

// round is what one side did in one round.
type sideRound struct {
	took            []time.Duration // from each tick to its first request
	doubles, losses int
	spent           reading
	watched         time.Duration // in which it was spent
	ticks           float64       // of all jobs together
	replicas        int
}

// sides are the rounds of both, and what they are about.
type sides struct {
	about        string
	ours, theirs []sideRound
}

// turn adds a round of each side.
func (s *sides) turn(b *bench, at setting, every, ticks int) error {
	ours, err := b.oneRound(solotick, at, every, ticks)
	if err != nil {
		return err
	}
	theirs, err := b.oneRound(redsync, at, every, ticks)
	s.ours, s.theirs = append(s.ours, ours), append(s.theirs, theirs)
	return err
}

// row puts the same number of both sides beside each other.
func (s sides) row(what, unit string, number func(sideRound) float64, targets ...target) row {
	return compared(s.about+": "+what, unit, each(s.ours, number), each(s.theirs, number), targets...)
}

// delay measures how long after a tick the app is called, and what that costs. The sides take turns.
func (b *bench) delay() (part, error) {
	var p part
	perReplicas := map[int][]float64{} // Redis CPU of 100 jobs, by replicas
	for _, h := range herds {
		s := sides{about: fmt.Sprintf("%d jobs, %d replicas", h.jobs, h.replicas)}
		if h.jobs == 1 {
			s.about = fmt.Sprintf("1 job, %d replicas", h.replicas)
		}
		for range b.rounds {
			if err := s.turn(b, setting{replicas: h.replicas, jobs: herd(h.jobs, 1), warm: 2 * time.Second},
				1, b.few(h.ticks)); err != nil {
				return p, err
			}
		}
		p.Rows = append(p.Rows, s.delays(h.p99)...)
		if h.jobs == 1 {
			p.Rows = append(p.Rows, s.row("CPU of a replica per second", "ms", sideRound.replicaRate, h.cpu...),
				s.row("Redis commands per second", "", sideRound.commandRate, h.redis...))
		} else {
			p.Rows = append(p.Rows, s.costs(h.cpu, h.redis)...)
		}
		if h.jobs == 100 {
			perReplicas[h.replicas] = each(s.ours, sideRound.redisCPU)
		}
	}
	var further []float64
	for i, few := range perReplicas[replicas] {
		further = append(further, (perReplicas[10][i]-few)/(10-replicas))
	}
	p.Rows = append(p.Rows, row{What: "100 jobs: Redis CPU per job and tick for each further replica", Unit: "µs",
		Ours: of(further), Targets: []target{oursAtMost(furtherReplica)}, Note: "between 3 and 10 replicas"})
	return p, nil
}

// oneRound starts a contender's replicas and watches so many ticks of its jobs, which come every so many seconds.
func (b *bench) oneRound(c contender, s setting, every, ticks int) (r sideRound, err error) {
	w, err := b.open(c, s)
	if err != nil {
		return r, err
	}
	defer func() {
		if closeErr := w.close(); err == nil {
			err = closeErr
		}
	}()
	jobs := len(w.seats[0].jobs)
	begin := half(s.warm) // connections are open, and the first ticks over
	end := begin.Add(time.Duration(ticks*every) * time.Second)
	if err := b.sleep(begin); err != nil {
		return r, err
	}
	before, err := w.read()
	if err != nil {
		return r, err
	}
	w.app.Forget()
	if err := b.sleep(end); err != nil {
		return r, err
	}
	after, err := w.read()
	if err != nil {
		return r, err
	}
	if err := b.sleep(end.Add(time.Second)); err != nil { // what comes very late still counts
		return r, err
	}
	r = settle(w.app.Seen(), begin, end, jobs*ticks)
	r.spent, r.watched, r.replicas = after.since(before), end.Sub(begin), len(w.seats)
	return r, nil
}

// settle finds the first request for each tick that lies between begin and end.
func settle(seen []rig.Request, begin, end time.Time, due int) sideRound {
	type tickOf struct {
		job  string
		tick time.Time
	}
	first := map[tickOf]time.Duration{}
	r := sideRound{ticks: float64(due)}
	for _, q := range seen {
		if q.Tick.Before(begin) || q.Tick.After(end) {
			continue
		}
		at := tickOf{q.Job, q.Tick.UTC()}
		if _, ok := first[at]; ok {
			r.doubles++
			continue
		}
		first[at] = q.Arrived.Sub(q.Tick)
	}
	for _, took := range first {
		r.took = append(r.took, took)
	}
	r.losses = due - len(first)
	return r
}

// delays puts both sides' quantiles over all rounds beside each other, with the spread of the rounds.
func (s sides) delays(p99 []target) []row {
	var rows []row
	o, t := pooled(s.ours), pooled(s.theirs)
	for _, q := range []float64{.5, .99, .999} {
		r := row{What: fmt.Sprintf("%s: tick to request, p%g", s.about, q*100), Unit: "ms"}
		if float64(len(o))*(1-q) < .99 && q > .99 {
			r.NotRun = fmt.Sprintf("%d ticks are too few for it", len(o))
			rows = append(rows, r)
			continue
		}
		quantiles := func(rounds []sideRound) []float64 {
			return each(rounds, func(r sideRound) float64 { return quantile(r.took, q) })
		}
		ourRounds, theirRounds := quantiles(s.ours), quantiles(s.theirs)
		r.Ours, r.Theirs = around(quantile(o, q), ourRounds), around(quantile(t, q), theirRounds)
		if ratios := ratio(ourRounds, theirRounds); ratios != nil && quantile(t, q) != 0 {
			r.Ratio = &figure{round(quantile(o, q) / quantile(t, q)), ratios.Low, ratios.High}
		}
		if q == .99 {
			r.Targets = p99
			r.Note = fmt.Sprintf("%d ticks a side", len(o))
		}
		rows = append(rows, r)
	}
	count := func(what string, number func(sideRound) float64) row {
		return row{What: s.about + ": " + what, Ours: one(sum(each(s.ours, number))),
			Theirs: one(sum(each(s.theirs, number))), Targets: []target{oursAtMost(0)}}
	}
	return append(rows,
		count("ticks doubled", func(r sideRound) float64 { return float64(r.doubles) }),
		count("ticks lost", func(r sideRound) float64 { return float64(r.losses) }))
}

// costs is what both sides spent, per job and tick: first CPU of both and Redis' commands, which are the steadiest.
func (s sides) costs(cpu, redis []target) []row {
	return []row{
		s.row("CPU of a replica per job and tick", "µs", sideRound.replicaCPU, cpu...),
		s.row("Redis CPU per job and tick", "µs", sideRound.redisCPU, redis...),
		s.row("Redis commands per job and tick", "", func(r sideRound) float64 { return r.spent.commands / r.ticks }),
		s.row("Redis reads per job and tick", "", func(r sideRound) float64 { return r.spent.reads / r.ticks }),
		s.row("Redis bytes per job and tick", "", func(r sideRound) float64 { return r.spent.bytes / r.ticks }),
	}
}

func (r sideRound) replicaCPU() float64 {
	return micros(r.spent.replicas) / r.ticks / float64(r.replicas)
}
func (r sideRound) redisCPU() float64 { return micros(r.spent.redis) / r.ticks }

// replicaRate is the CPU of one replica in ms a second, commandRate is how many commands Redis gets a second.
func (r sideRound) replicaRate() float64 {
	return 1000 * r.spent.replicas.Seconds() / r.watched.Seconds() / float64(r.replicas)
}
func (r sideRound) commandRate() float64 { return r.spent.commands / r.watched.Seconds() }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func each[T any](of []T, number func(T) float64) []float64 {
	numbers := make([]float64, len(of))
	for i, v := range of {
		numbers[i] = number(v)
	}
	return numbers
}

func sum(v []float64) (total float64) {
	for _, x := range v {
		total += x
	}
	return total
}

func pooled(rounds []sideRound) (took []time.Duration) {
	for _, r := range rounds {
		took = append(took, r.took...)
	}
	return took
}

// quantile in ms of durations that need not be sorted; q is within [0, 1].
func quantile(d []time.Duration, q float64) float64 {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return float64(d[min(int(q*float64(len(d))), len(d)-1)]) / float64(time.Millisecond)
}
