package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
)

// class is a kind of trouble that some seeds are made for. It has dice of its own, so that all other seeds are as they
// would be without it.
type class struct {
	name string
	make func(*Plan, *rand.Rand)
}

// classes are drawn with the same chance each, the last but two with a sixth of it. The last two came when the hundred
// had been shared out, and are drawn before the others.
var classes = [...]class{
	{"Redis stalls", (*Plan).stalls},
	{"apps refuse", (*Plan).refusals},
	{"slots", (*Plan).slots},
	{"readiness", (*Plan).readiness},
	{"rollout", (*Plan).rollout},
	{"leaves and returns", (*Plan).leaves},
	{"timers", (*Plan).timers},
	{"far clock", (*Plan).farClock},
	{"memory", (*Plan).memory},
	{"failover", (*Plan).failovers},
	{"confirmed failover", (*Plan).confirmed},
	{"drain", (*Plan).drains},
	{"operator", (*Plan).operators},
	{"empty", (*Plan).empties},
	{"by hand", (*Plan).byHand},
	{"stands still as it starts", (*Plan).startsLate},
	{"edits", (*Plan).edits},
	{"queues", (*Plan).queues},
	{"cancels", (*Plan).cancels},
	{restartsInPlace, (*Plan).inPlace},
	{watchersRestart, (*Plan).restarts},
	{"limits", (*Plan).limits},
	{asyncRuns, (*Plan).async},
	{"calendars", (*Plan).calendars},
	{ignoresTheEnd, (*Plan).ignoring},
	{comesBack, (*Plan).older},
	{"takeovers", (*Plan).takeovers},
	{"resumes", (*Plan).resumes},
	{"contended slots", (*Plan).contended},
	{clocksApart, (*Plan).farApart},
	{changesUncounted, (*Plan).uncounted},
	{waitsByHand, (*Plan).waits},
	{changesFarAway, (*Plan).farAway},
	{atRest, (*Plan).rests},
	{asksFirst, (*Plan).asks},
	{leases, (*Plan).leases},
}

// plain is the class of all other seeds.
const plain = "nothing in particular"

// share is how many of a hundred seeds each class has. One is left, for the class at rest and for what has none.
const share = 3

// made makes the plan of a class; false when the seed is plain.
func (p *Plan) made() bool {
	r := rand.New(rand.NewPCG(p.Seed, 0xC1A55E5))
	n := r.IntN(100) / share
	switch late := rand.New(rand.NewPCG(p.Seed, 0xA5C5)).IntN(100) / share; {
	case late < 2:
		n = len(classes) - 2 + late
	case n == len(classes)-3 && r.IntN(2) == 0:
		p.Class = plain
		return false
	}
	p.Class = classes[n].name
	if len(p.Faults) > 1 || r.IntN(2) == 0 { // few faults, so that what comes of one is not excused by the next
		p.Faults, p.Orders = nil, nil
	}
	p.Local = false
	p.Lasts = 40*time.Second + upTo(r, 5*time.Second)
	classes[n].make(p, r)
	p.requests(r)
	for i := range p.Jobs { // a policy that came last meets what was there before
		if j := &p.Jobs[i]; j.Limit == 0 && r.IntN(3) == 0 {
			j.Limit = 1 + r.IntN(3)
		}
	}
	for _, f := range p.Faults {
		p.Lasts = max(p.Lasts, f.At+f.For+15*time.Second)
	}
	for _, o := range p.Orders {
		p.Lasts = max(p.Lasts, o.At+o.For+12*time.Second)
	}
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(p.Orders, func(a, b Order) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(p.Reloads, func(a, b Reload) int { return cmp.Compare(a.At, b.At) })
	return true
}

// requests are what an operator asks for in some of these seeds.
func (p *Plan) requests(r *rand.Rand) {
	if r.IntN(3) > 0 || p.Class == "operator" || p.Class == "by hand" {
		return
	}
	for range 1 + r.IntN(3) {
		p.Orders = append(p.Orders, Order{At: 9*time.Second + upTo(r, 20*time.Second),
			Kind: pick(r, "trigger", "trigger", "pause", "pause until", "backfill"),
			Job:  p.Jobs[r.IntN(len(p.Jobs))].Name, For: 500*time.Millisecond + upTo(r, 5*time.Second)})
	}
}

// willing makes all jobs such as begin wherever they are asked to, without retries, and locked.
func (p *Plan) willing(r *rand.Rand) {
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Refuses, j.Ignores, j.Retries = 0, false, 0
		if j.Guarantee == "every-replica" {
			j.Guarantee = pick(r, "at-most-once", "at-least-once")
		}
	}
}

// busy makes a job run for longer than the distance of its ticks.
func (j *Job) busy(r *rand.Rand) {
	j.Takes = pick(r, [2]time.Duration{j.Period, 3 * j.Period}, [2]time.Duration{j.Period / 2, 3 * j.Period / 2})
	j.Timeout = 20 * time.Second
	j.Deadline = 0
}

// refusals: the apps of all replicas but one start nothing for a long time, and no readiness gate says so.
func (p *Plan) refusals(r *rand.Rand) {
	p.willing(r)
	for len(p.Replicas) < 3+r.IntN(3) {
		p.Replicas = append(p.Replicas, Replica{Begins: upTo(r, 2*time.Second),
			Skew: upTo(r, 10*time.Second) - 5*time.Second})
	}
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period = time.Duration(pick(r, 3, 5, 7, 10)) * time.Second
		j.Takes = [2]time.Duration{0, j.Period / 3}
	}
	good, from := r.IntN(len(p.Replicas)), 9*time.Second+upTo(r, 3*time.Second)
	to := from + 10*time.Second + upTo(r, 15*time.Second)
	for place := range p.Replicas {
		if place != good {
			p.AppsDown = append(p.AppsDown, Downtime{place, from, to})
		}
	}
	if r.IntN(3) > 0 {
		return
	}
	for i := range p.Jobs { // runs that nobody starts again when the one that had them dies
		j := &p.Jobs[i]
		j.GivesUp, j.Guarantee, j.Takes = true, "at-least-once", [2]time.Duration{j.Period / 3, j.Period}
	}
	p.Faults = append(p.Faults, Fault{At: from + 2*time.Second + upTo(r, 4*time.Second), Kind: "crash", Replica: good,
		For: 9 * time.Second})
}

// slots: the jobs themselves take the last slot of their replicas.
func (p *Plan) slots(r *rand.Rand) {
	p.willing(r)
	p.MaxRunning = pick(r, 1, 1, 2)
	p.Replicas = p.Replicas[:1+r.IntN(2)]
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period = time.Duration(pick(r, 2, 3, 5, 5, 7)) * time.Second
		j.Policy = pick(r, "Forbid", "Forbid", "Queue", "Replace", "Replace", "Allow")
		if j.Policy == "Allow" {
			j.Limit = 1 + r.IntN(2)
		}
		j.Reserved = r.IntN(3) == 0
		j.Jitter = min(j.Jitter, j.Period/4)
		if i == 0 || j.Reserved {
			j.busy(r)
		} else {
			j.Takes = [2]time.Duration{0, 200 * time.Millisecond}
		}
	}
	p.elsewhere()
}

// readiness: an app is not ready while it runs a job, or for a while.
func (p *Plan) readiness(r *rand.Rand) {
	p.slots(r)
	p.MaxRunning, p.Ready, p.BusyApp = 0, true, r.IntN(3) > 0
	for i := range p.Jobs {
		p.Jobs[i].Reserved = false
	}
	for place := range p.Replicas {
		if r.IntN(2) == 0 {
			from := 8*time.Second + upTo(r, 15*time.Second)
			p.Unready = append(p.Unready, Downtime{place, from, from + time.Second + upTo(r, 8*time.Second)})
			if r.IntN(3) == 0 {
				p.Orders = append(p.Orders, Order{At: from - upTo(r, time.Second),
					Kind: "backfill", Job: p.Jobs[r.IntN(len(p.Jobs))].Name, For: upTo(r, 5*time.Second)})
			}
		}
	}
	for place := range p.Replicas {
		if r.IntN(3) == 0 { // the app is new, too
			ready := upTo(r, 8*time.Second)
			p.Unready = append(p.Unready, Downtime{place, 0, ready})
			if r.IntN(2) == 0 { // and its replica stands still when it gets ready
				p.Faults = append(p.Faults, Fault{At: ready - min(ready, upTo(r, time.Second)),
					Kind: "stall", Replica: place, For: time.Second + upTo(r, 6*time.Second)})
			}
		}
	}
}

// elsewhere moves the faults of replicas that there are not.
func (p *Plan) elsewhere() {
	for i := range p.Faults {
		if f := &p.Faults[i]; f.Replica >= len(p.Replicas) {
			f.Replica = 0
		}
	}
}

// rollout: a job changes under live runs, and some places see that much later.
func (p *Plan) rollout(r *rand.Rand) {
	p.willing(r)
	j := &p.Jobs[0]
	j.Period = time.Duration(pick(r, 2, 3, 4, 5)) * time.Second
	j.Policy, j.Missed = pick(r, "Forbid", "Queue", "Replace", "Allow"), pick(r, "latest", "all", "all")
	j.Jitter = min(j.Jitter, j.Period/4)
	j.busy(r)
	now, name, at := *j, j.Name, 9*time.Second+upTo(r, 3*time.Second)
	for range 1 + r.IntN(3) {
		x := Reload{At: at, Job: name, Kind: pick(r, "policy", "policy", "policy", "guarantee", "guarantee", "schedule",
			"zone", "jitter", "renamed")}
		switch x.Kind {
		case "policy":
			for x.To = now.Policy; x.To == now.Policy; x.To = pick(r, "Forbid", "Queue", "Replace", "Allow", "Allow") {
			}
			now.Policy = x.To
		case "guarantee":
			for x.To = now.Guarantee; x.To == now.Guarantee; {
				x.To = pick(r, "at-most-once", "at-least-once", "every-replica", "every-replica")
			}
			now.Guarantee = x.To
		case "schedule":
			x.To = (time.Duration(pick(r, 2, 3, 5, 7)) * time.Second).String()
		case "zone":
			x.To = pick(r, "Europe/Berlin", "Asia/Tokyo", "UTC")
		case "renamed":
			x.To = name + "b"
		}
		if r.IntN(2) == 0 {
			x.Late = map[int]time.Duration{}
			for place := range p.Replicas {
				if r.IntN(2) == 0 {
					x.Late[place] = 3*time.Second + upTo(r, 9*time.Second)
				}
			}
		}
		p.Reloads = append(p.Reloads, x)
		back := x
		back.At += 6*time.Second + upTo(r, 8*time.Second)
		switch x.Kind {
		case "guarantee":
			back.To, now.Guarantee = j.Guarantee, j.Guarantee
			p.Reloads = append(p.Reloads, back)
		case "renamed":
			back.Kind, back.Job, back.To = "named back", x.To, name
			p.Reloads = append(p.Reloads, back)
		}
		at = back.At + 6*time.Second
	}
	if x := p.Reloads[0]; len(x.Late) > 0 && r.IntN(2) == 0 { // who sees it late comes back to Redis before that
		for _, place := range slices.Sorted(maps.Keys(x.Late)) {
			p.Faults = append(p.Faults, Fault{At: x.At + upTo(r, 2*time.Second), Kind: "cut", Replica: place,
				For: 300*time.Millisecond + upTo(r, time.Second)})
		}
	}
	if late := rand.New(rand.NewPCG(p.Seed, 0x1A7E)); late.IntN(4) == 0 { // so does what a place then tells Redis
		x := p.Reloads[late.IntN(len(p.Reloads))]
		p.Faults = append(p.Faults, Fault{At: x.At, Kind: "late", Replica: late.IntN(len(p.Replicas)), For: 6 * time.Second})
	}
	p.Lasts = max(p.Lasts, at+14*time.Second)
}

// changesUncounted is the class of schedules that change as ticks of the one before are yet to be counted.
const changesUncounted = "changes while ticks are uncounted"

// uncounted: jobs are paused for some of their ticks, and resumed. Before the next tick that would count these, or
// before the end of the pause, the schedule changes, mostly to one with more ticks.
func (p *Plan) uncounted(r *rand.Rand) {
	p.willing(r)
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period, j.Deadline, j.Takes = time.Duration(pick(r, 3, 5, 7, 10))*time.Second, 0,
			[2]time.Duration{0, 200 * time.Millisecond}
		j.Jitter, j.Suspend = min(j.Jitter, j.Period/4), false
		for at := 9*time.Second + upTo(r, 5*time.Second); at < 34*time.Second; {
			lasts := j.Period + upTo(r, 2*j.Period)
			x := Reload{At: at + lasts - 2*time.Second + upTo(r, 4*time.Second), Job: j.Name,
				Kind: "schedule", To: pick(r, "1s", "1s", "2s", "7s", "20s")}
			if r.IntN(3) == 0 {
				x.Late = map[int]time.Duration{r.IntN(len(p.Replicas)): 2*time.Second + upTo(r, 6*time.Second)}
			}
			back := Reload{At: x.At + 5*time.Second + upTo(r, 5*time.Second), Job: j.Name,
				Kind: "schedule", To: j.Period.String()}
			p.Orders = append(p.Orders, Order{At: at, Kind: "pause", Job: j.Name, For: lasts})
			p.Reloads = append(p.Reloads, x, back)
			at = back.At + 5*time.Second + upTo(r, 5*time.Second)
		}
	}
}

// changesFarAway is the class of calendars that get and lose days in years to come.
const changesFarAway = "calendars change far away"

// farAway: the days of a calendar change far away, again and again, while ticks wait for slots.
func (p *Plan) farAway(r *rand.Rand) {
	p.slots(r)
	p.Calendars = []Calendar{{Name: closedDays, Dates: []string{"2031-12-25"}}}
	for i := range p.Jobs {
		p.Jobs[i].Days, p.Jobs[i].Missed = &Days{Weekday: -1, Exclude: closedDays}, pick(r, "latest", "all")
	}
	for at := 9 * time.Second; at < 34*time.Second; at += time.Second + upTo(r, 4*time.Second) {
		x := Reload{At: at, Kind: "calendar", Job: p.Jobs[0].Name, To: fmt.Sprintf("%d-12-25", 2032+int(at.Seconds()))}
		if r.IntN(3) == 0 {
			x.Late = map[int]time.Duration{r.IntN(len(p.Replicas)): 2*time.Second + upTo(r, 6*time.Second)}
		}
		p.Reloads = append(p.Reloads, x)
	}
}

// leaves: a job leaves the table with a live run and ticks that wait, and comes back.
func (p *Plan) leaves(r *rand.Rand) {
	p.willing(r)
	j := &p.Jobs[0]
	j.Period = time.Duration(pick(r, 3, 5, 7)) * time.Second
	j.Policy, j.Missed = pick(r, "Queue", "Queue", "Replace", "Forbid"), pick(r, "latest", "all")
	j.Jitter = min(j.Jitter, j.Period/4)
	j.busy(r)
	if r.IntN(3) == 0 {
		j.Refuses = 0.7
	}
	for at := 10*time.Second + upTo(r, 6*time.Second); at < 26*time.Second; at += 16 * time.Second {
		back := at + 2*time.Second + upTo(r, 9*time.Second)
		p.Reloads = append(p.Reloads, Reload{At: at, Kind: "leaves", Job: j.Name},
			Reload{At: back, Kind: "returns", Job: j.Name})
	}
}

// timers: many of them come due at once, and the answers to the claims are lost.
func (p *Plan) timers(r *rand.Rand) {
	p.willing(r)
	p.Jobs = p.Jobs[:1]
	p.Jobs[0].Period = 5 * time.Second
	due := 12*time.Second + upTo(r, 4*time.Second)
	for i := range pick(r, 20, 60, 120, 200) {
		p.Timers = append(p.Timers,
			TimerPlan{ID: fmt.Sprintf("t%d", i+1), Set: 6*time.Second + time.Duration(i)*10*time.Millisecond,
				Due: due + upTo(r, 30*time.Millisecond), Again: r.IntN(4) == 0, Deleted: r.IntN(20) == 0})
	}
	f := Fault{At: due, Kind: pick(r, "void", "void", "cut"), For: 17*time.Second + upTo(r, 4*time.Second),
		After: manyTimers}
	if r.IntN(4) == 0 {
		f = Fault{At: due - time.Second, Kind: "redis lossy", For: 4 * time.Second}
	}
	p.Faults = []Fault{f}
	p.Lasts = f.At + f.For + 24*time.Second
}

// drains: replicas drain while Redis is away, with a grace that is mostly longer than that.
func (p *Plan) drains(r *rand.Rand) {
	p.willing(r)
	p.Grace = 9*time.Second + upTo(r, 4*time.Second)
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period = time.Duration(pick(r, 5, 7, 10)) * time.Second
		j.TTL = 15 * time.Second
		j.Takes = [2]time.Duration{2 * time.Second, 5 * time.Second}
		j.Timeout, j.Deadline = 20*time.Second, 0
		j.Jitter = min(j.Jitter, j.Period/4)
	}
	at := 12*time.Second + upTo(r, 6*time.Second)
	p.Faults = nil
	if r.IntN(3) > 0 {
		p.Faults = append(p.Faults, Fault{At: at, Kind: pick(r, "redis refuses", "redis void"),
			For: 4500*time.Millisecond + upTo(r, 3*time.Second)})
	} else {
		for i := range p.Jobs {
			j := &p.Jobs[i]
			j.Ends, j.Retries, j.Backoff = "fails", 5, 200*time.Millisecond
			j.Takes = [2]time.Duration{300 * time.Millisecond, time.Second}
		}
	}
	p.Faults = append(p.Faults, Fault{At: at + 200*time.Millisecond + upTo(r, time.Second),
		Kind: pick(r, "stop", "drain"), Replica: -1, For: 14 * time.Second})
	if len(p.Faults) == 2 && r.IntN(3) == 0 { // Redis is back when the grace has just ended
		p.Grace = 2*time.Second + upTo(r, 2*time.Second)
		p.Faults[0].For = p.Faults[1].At - at + p.Grace + upTo(r, 400*time.Millisecond)
	}
}

// operators: one job is the object of many requests, some of which are made again much later.
func (p *Plan) operators(r *rand.Rand) {
	p.willing(r)
	p.Jobs[0].Period = 10 * time.Second
	p.Jobs[0].Takes = [2]time.Duration{0, 200 * time.Millisecond}
	job, at := p.Jobs[0].Name, 8*time.Second
	for i := range 2 {
		id := uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%d %d", p.Seed, i)).String()
		p.Orders = append(p.Orders, Order{At: at, Kind: "trigger", Job: job, ID: id})
		for range 4 + r.IntN(7) {
			at += 200*time.Millisecond + upTo(r, 600*time.Millisecond)
			p.Orders = append(p.Orders, Order{At: at, Kind: pick(r, "trigger", "trigger", "pause", "backfill"),
				Job: job, For: 500 * time.Millisecond})
		}
		at += time.Second + upTo(r, 2*time.Second)
		p.Orders = append(p.Orders, Order{At: at, Kind: "trigger", Job: job, ID: id})
	}
	p.batches(r)
}

// batches are requests that share an id, although they are not the same, and reruns that are asked for once more.
func (p *Plan) batches(r *rand.Rand) {
	if r.IntN(2) == 0 {
		p.Jobs[0].Ends = "fails"
	}
	for i := range 1 + r.IntN(3) {
		id := uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%d batch %d", p.Seed, i)).String()
		for at, n := 13*time.Second+upTo(r, 12*time.Second), 2+r.IntN(3); n > 0; n-- {
			p.Orders = append(p.Orders, Order{At: at, Kind: pick(r, "trigger", "rerun", "rerun", "backfill"),
				Job: pick(r, p.Jobs[0], p.Jobs[0], p.Jobs[1]).Name, ID: id})
			at += pick(r, 10*time.Millisecond, 300*time.Millisecond, 10*time.Second)
		}
	}
}

// cancels: runs of one job, which take long, are cancelled, some of them as their replicas die or before they start.
func (p *Plan) cancels(r *rand.Rand) {
	p.willing(r)
	j := &p.Jobs[0]
	j.Period = time.Duration(pick(r, 3, 5, 7)) * time.Second
	j.Guarantee, j.Policy = pick(r, "at-most-once", "at-least-once", "at-least-once"),
		pick(r, "Forbid", "Forbid", "Allow", "Queue", "Replace")
	j.busy(r)
	j.Jitter, j.Suspend, j.TTL = min(j.Jitter, j.Period/4), false, time.Duration(pick(r, 3, 15))*time.Second
	if r.IntN(3) == 0 {
		j.Retries, j.Backoff, j.Ends = 5, time.Second, "fails"
	}
	for at := 8 * time.Second; at < 30*time.Second; at += 500*time.Millisecond + upTo(r, 4*time.Second) {
		p.Orders = append(p.Orders, Order{At: at, Kind: "cancel", Job: j.Name})
		switch r.IntN(6) {
		case 0:
			p.Orders = append(p.Orders, Order{At: at - time.Second, Kind: "trigger", Job: j.Name})
		case 1: // it is cancelled when nobody is left to hear of it, or as it ends
			p.Faults = append(p.Faults, Fault{At: at - 100*time.Millisecond + upTo(r, 200*time.Millisecond),
				Kind: pick(r, "crash", "crash", "stop"), Replica: -1, For: 4 * time.Second})
		}
	}
}

// ignoresTheEnd is the class of commands that ignore TERM.
const ignoresTheEnd = "commands that ignore TERM"

// ignoring: the commands of one job take long and ignore TERM. They are told to end, by their timeout, an operator or a
// newer tick, as their replica is cut off from Redis.
func (p *Plan) ignoring(r *rand.Rand) {
	p.willing(r)
	p.Faults = nil
	j := &p.Jobs[0]
	j.Period, j.TTL, j.Policy = time.Duration(pick(r, 3, 5, 7))*time.Second,
		time.Duration(pick(r, 3, 3, 5, 8))*time.Second, pick(r, "Forbid", "Queue", "Replace")
	j.Timeout, j.Takes, j.Ignores, j.Deadline = 4*time.Second+upTo(r, 4*time.Second),
		[2]time.Duration{10 * time.Second, 20 * time.Second}, true, 0
	j.Jitter, j.Suspend = min(j.Jitter, j.Period/4), false
	gap := func() time.Duration { return 8*time.Second + upTo(r, 3*time.Second) }
	for at := gap(); at < 32*time.Second; at += gap() {
		p.Faults = append(p.Faults, Fault{At: at, Kind: pick(r, "cut", "void", "cut", "redis refuses"),
			For: 2*time.Second + upTo(r, 7*time.Second), Replica: -1})
		if r.IntN(2) == 0 {
			p.Orders = append(p.Orders, Order{At: at - upTo(r, time.Second), Kind: "cancel", Job: j.Name})
		}
	}
}

// byHand: manual runs of jobs that are suspended or paused are cut short, and so are runs with many attempts.
func (p *Plan) byHand(r *rand.Rand) {
	p.willing(r)
	p.Faults = nil
	j, tried := &p.Jobs[0], &p.Jobs[1]
	j.Guarantee, j.Policy, j.TTL, j.Suspend = "at-least-once", pick(r, "Forbid", "Allow", "Queue"),
		3*time.Second, r.IntN(2) == 0
	j.Takes, j.Ends, j.Timeout, j.Deadline = [2]time.Duration{5 * time.Second, 9 * time.Second}, "", 20*time.Second, 0
	j.Period, j.Jitter = 10*time.Second, 0
	tried.Guarantee, tried.Policy, tried.Ends, tried.Retries, tried.Backoff = "at-least-once", pick(r, "Forbid",
		"Queue"), "fails", 5, 100*time.Millisecond
	tried.Period, tried.Jitter, tried.Takes, tried.Deadline = 10*time.Second, 0,
		[2]time.Duration{500 * time.Millisecond, 900 * time.Millisecond}, 0
	at := 11*time.Second + upTo(r, 4*time.Second)
	if !j.Suspend {
		p.Orders = append(p.Orders, Order{At: at - time.Second, Kind: "pause", Job: j.Name, For: 25 * time.Second})
	}
	p.Orders = append(p.Orders, Order{At: at, Kind: "trigger", Job: j.Name})
	p.Faults = append(p.Faults,
		Fault{At: at + 500*time.Millisecond + upTo(r, 2*time.Second), Kind: pick(r, "crash", "stop"), Replica: -1,
			For: 4 * time.Second},
		Fault{At: 30*time.Second + 2*time.Second + upTo(r, 2*time.Second), Kind: "crash", Replica: -1,
			For: 4 * time.Second})
}

// atRest is the class of seeds in which nothing happens for most of the time.
const atRest = "at rest"

// rests: ticks are far apart, and while the replicas rest Redis loses its data, or a run by hand begins and its replica
// dies, or a timer is set. Of some messages nothing comes.
func (p *Plan) rests(r *rand.Rand) {
	p.willing(r)
	p.Faults, p.Orders = nil, nil
	p.Replicas = p.Replicas[:2+r.IntN(len(p.Replicas)-1)]
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period, j.Jitter, j.Deadline, j.Timeout = time.Duration(pick(r, 40, 60, 60))*time.Second, 0, 0, 20*time.Second
		j.Takes, j.Ends, j.TTL = pick(r, [2]time.Duration{0, time.Second},
			[2]time.Duration{5 * time.Second, 9 * time.Second}), "", time.Duration(pick(r, 3, 3, 15))*time.Second
	}
	for at := 15 * time.Second; at < 110*time.Second; at += 10*time.Second + upTo(r, 30*time.Second) {
		switch r.IntN(3) {
		case 0:
			p.Faults = append(p.Faults, Fault{At: at, Kind: pick(r, forgets, flushed)})
			at += 10 * time.Second
		case 1:
			switch place := r.IntN(len(p.Replicas)); r.IntN(4) {
			case 0: // it does not hear of the run
				p.Faults = append(p.Faults, Fault{At: at - 100*time.Millisecond, Kind: "cut", Replica: place,
					For: 500 * time.Millisecond})
			case 1, 2: // nor of anything afterwards, if it does not notice
				p.Faults = append(p.Faults, Fault{At: at, Kind: "void", Replica: place, For: 4 * time.Second})
				p.Orders = append(p.Orders,
					Order{At: at + time.Second, Kind: "trigger", Job: p.Jobs[r.IntN(len(p.Jobs))].Name})
				at += 15 * time.Second
			}
			p.Orders = append(p.Orders, Order{At: at, Kind: "trigger", Job: p.Jobs[r.IntN(len(p.Jobs))].Name})
			p.Faults = append(p.Faults, Fault{At: at + 300*time.Millisecond + upTo(r, 3*time.Second),
				Kind: pick(r, "crash", "stall"), Replica: -1, For: 6 * time.Second})
		case 2:
			p.Timers = append(p.Timers, TimerPlan{ID: fmt.Sprintf("t%d", len(p.Timers)+1), Set: at,
				Due: at + upTo(r, 35*time.Second), Again: r.IntN(2) == 0})
		}
	}
	if r.IntN(2) == 0 { // the others have slept since before the tick whose run is left
		tick := time.Duration(pick(r, 60, 80)) * time.Second
		crash := tick + 300*time.Millisecond + upTo(r, 3*time.Second)
		if r.IntN(2) == 0 { // nor does the other hear of it, and its claim gets no answer at first
			crash, p.Replicas, p.Faults = tick+8*time.Second, p.Replicas[:2], nil
			for i := range p.Jobs {
				p.Jobs[i].Takes, p.Jobs[i].TTL = [2]time.Duration{9 * time.Second, 12 * time.Second}, 3*time.Second
			}
			p.Faults = append(p.Faults, Fault{At: tick - 50*time.Millisecond, Kind: "void",
				Replica: r.IntN(len(p.Replicas)), For: 600*time.Millisecond + upTo(r, time.Second/2)})
		} else if r.IntN(2) == 0 { // and something else comes due before their first look
			p.Orders = append(p.Orders, Order{At: crash + upTo(r, time.Second), Kind: "trigger", Job: p.Jobs[r.IntN(len(p.Jobs))].Name})
		}
		p.Faults = append(p.Faults, Fault{At: crash, Kind: "crash", Replica: -1, For: 6 * time.Second})
	} else if r.IntN(3) == 0 { // nothing but timers, set after the last look, of which nobody is told
		p.Faults, p.Orders, p.Timers = nil, nil, nil
		for i := range p.Jobs {
			p.Jobs[i].Period, p.Jobs[i].Takes = 60*time.Second, [2]time.Duration{0, time.Second}
		}
		for i := range 5 {
			at := 61*time.Second + upTo(r, 3*time.Second)
			p.Timers = append(p.Timers, TimerPlan{ID: fmt.Sprintf("t%d", i+1), Set: at,
				Due: at + 31*time.Second + upTo(r, 3*time.Second)})
		}
	}
	p.Lasts = 130 * time.Second
}

// startsLate: a replica that has won a tick stands still before it starts the job, mostly until its lease is over.
func (p *Plan) startsLate(r *rand.Rand) {
	p.willing(r)
	p.Faults = nil
	for at := 8 * time.Second; at < 30*time.Second; at += 9*time.Second + upTo(r, 4*time.Second) {
		p.Faults = append(p.Faults, Fault{At: at, Kind: "stall", For: time.Second + upTo(r, 6*time.Second),
			After: wins})
	}
}

// edits: the table is edited again and again, in what is no matter of its ticks, as one of them comes due.
func (p *Plan) edits(r *rand.Rand) {
	p.willing(r)
	for i := range p.Jobs {
		p.Jobs[i].Period, p.Jobs[i].Jitter = time.Duration(pick(r, 1, 1, 2))*time.Second, 0
	}
	for at := 8 * time.Second; at < 30*time.Second; at += time.Duration(1+r.IntN(3)) * time.Second {
		x := Reload{At: at - 40*time.Millisecond + upTo(r, 50*time.Millisecond),
			Kind: "content", Job: p.Jobs[r.IntN(len(p.Jobs))].Name}
		p.Reloads = append(p.Reloads, x)
	}
}

// takeovers: replicas die or stand still with runs, and the answers to those who take these over are lost. In some
// seeds most replicas lack the job that dies.
func (p *Plan) takeovers(r *rand.Rand) {
	p.willing(r)
	p.Faults, p.DeafReaps = nil, 0.6
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period, j.TTL = time.Duration(pick(r, 3, 5, 7, 10))*time.Second,
			time.Duration(pick(r, 2, 3, 3, 5, 15))*time.Second
		j.Jitter, j.Deadline, j.Timeout = min(j.Jitter, j.Period/4), 0, 20*time.Second
		j.Takes, j.Ends = [2]time.Duration{j.Period / 2, j.Period}, pick(r, "", "", "fails")
	}
	if r.IntN(3) == 0 {
		j, late := &p.Jobs[0], map[int]time.Duration{}
		j.Period, j.TTL, j.Guarantee, j.Takes = 3*time.Second, time.Duration(pick(r, 5, 15, 15))*time.Second,
			"at-most-once", [2]time.Duration{5 * time.Second, 9 * time.Second}
		for place := range p.Replicas[1:] {
			late[place+1] = 2 * time.Minute
		}
		p.Reloads = []Reload{{At: 7 * time.Second, Kind: "leaves", Job: j.Name},
			{At: 10 * time.Second, Kind: "returns", Job: j.Name, Late: late}}
		at := 20*time.Second + upTo(r, 4*time.Second)
		p.Faults = []Fault{{At: at, Kind: "crash", Replica: 0,
			For: pick(r, time.Second, 4*time.Second, 4*time.Second, 50*time.Second)}}
		p.Lasts = at + 55*time.Second
		return
	}
	for at := 9 * time.Second; at < 30*time.Second; at += 6*time.Second + upTo(r, 4*time.Second) {
		f := Fault{At: at, Kind: "crash", Replica: -1, For: time.Second + upTo(r, 6*time.Second)}
		if r.IntN(4) == 0 {
			f.Kind, f.After = "stall", wins
		}
		p.Faults = append(p.Faults, f)
	}
}

// resumes: jobs are resumed as their ticks come due, mostly with one replica to ask for them.
func (p *Plan) resumes(r *rand.Rand) {
	p.willing(r)
	p.Replicas, p.Faults = p.Replicas[:pick(r, 1, 1, 1, 2)], nil
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period, j.Jitter, j.Deadline = time.Duration(pick(r, 3, 5, 7))*time.Second, 0, 0
		j.Takes, j.Suspend = [2]time.Duration{0, 200 * time.Millisecond}, false
	}
	for _, j := range p.Jobs {
		for tick := 2 * j.Period; tick < 36*time.Second; tick += j.Period * time.Duration(pick(r, 1, 2, 3)) {
			if at := tick - upTo(r, 35*time.Millisecond); at > 9*time.Second {
				lasts := min(j.Period, time.Second) + upTo(r, 2*j.Period)
				p.Orders = append(p.Orders, Order{At: at - lasts, Kind: "pause", Job: j.Name, For: lasts})
				tick += lasts.Truncate(j.Period) + j.Period
			}
		}
	}
}
