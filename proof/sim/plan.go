package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
)

// Plan is all that a seed decides beforehand: the table, the replicas and what befalls them.
type Plan struct {
	Seed     uint64
	Jobs     []Job
	Local    bool          // the table says `clock: local`
	Own      bool          // it does, and the replicas' clocks agree well enough for all checks to hold
	Settles  time.Duration // when Redis' clock has reached the ticks for which replicas that are ahead wake first
	Behind   int           // the replica (1 = the first) with a clock so far behind that ticks come late; 0 = none
	Replicas []Replica
	Far      time.Duration // longest way of a message in good times
	Faults   []Fault
	Orders   []Order
	Reloads  []Reload
	Lasts    time.Duration // until all replicas are told to end
	From     time.Duration // from the bubble's beginning to the world's
	versions []version     // of the table; the first from the beginning, and one more with each reload

	Class      string        // what the seed is made for; "" = nothing in particular
	Grace      time.Duration // the table's shutdownGrace
	MaxRunning int
	Ready      bool        // the table has `ready`
	DeafReaps  float64     // chance that the answer to a takeover is lost
	BusyApp    bool        // an app is not ready while it runs a job
	AppsDown   []Downtime  // in which an app refuses to start anything
	Unready    []Downtime  // in which an app says that it is not ready
	Confirms   int         // waitReplicas
	Timers     []TimerPlan // that an operator sets
	Calendars  []Calendar
	natures    map[string]*Job
}

// Downtime is a stretch of time at one place.
type Downtime struct {
	Place    int
	From, To time.Duration
}

// Job is a row of the table, and how the job behaves.
type Job struct {
	Name                      string
	Period                    time.Duration
	Guarantee, Policy, Missed string
	Limit                     int // under Allow: how many runs at once; 0 = any number
	TTL, Delay                time.Duration
	Retries                   int
	Backoff                   time.Duration
	Timeout, Deadline         time.Duration
	Jitter                    time.Duration
	Takes                     [2]time.Duration
	Ends                      string  // "", fails, declines, failsAlone
	Refuses                   float64 // chance that a replica cannot start it
	Ignores                   bool    // it does not end when its context does, until it is killed
	Zone                      string  // timeZone; "" = none is written
	Days                      *Days   // nil = none is written
	Reserved, Suspend         bool
	GivesUp                   bool // after one round of refusals: startRetries
	Priority                  int
	Async                     *config.Async // the app ends its runs by reports; nil = it does not
	Asks                      bool          // and its own scheduler runs the job, and asks first
	From, To                  time.Duration // start and end; 0 = none is written
	Lease                     bool          // and the job has no ticks: an app asks for it, and keeps it by its heartbeats
}

// Replica is one process of the service, or a row of them at the same place.
type Replica struct {
	Begins time.Duration
	Skew   time.Duration
}

// Fault is one thing that goes wrong.
type Fault struct {
	At      time.Duration
	Kind    string
	Replica int           // where; -1: where a job runs at that moment
	For     time.Duration // how long, or until a process is started again
	By      time.Duration // a clock, or how long the replication lags before a failover
	After   string        // the answer after which the replication lags
}

// Order is something that the operator does.
type Order struct {
	At   time.Duration
	Kind string
	Job  string
	For  time.Duration
	ID   string // of the request; "" = a new one
	N    int    // how many ticks a backfill is about; 0 = two
}

// recovery is how long after a fault the promise that no tick is lost is not asked of what the fault struck: a
// reconnect with its longest backoff, a look, and what a look finds.
const recovery = 6 * time.Second

// NewPlan is the plan of a seed.
func NewPlan(seed uint64) *Plan {
	r := rand.New(rand.NewPCG(seed, 0x501071C4))
	p := &Plan{Seed: seed, Grace: 2 * time.Second, Far: time.Duration(pick(r, 1, 1, 2, 2, 10, 100)) * time.Millisecond}
	p.Local = r.IntN(8) == 0
	for i := range 2 + r.IntN(3) {
		p.Jobs = append(p.Jobs, newJob(r, i))
	}
	for range 2 + r.IntN(3) {
		p.Replicas = append(p.Replicas, Replica{Begins: upTo(r, 2*time.Second),
			Skew: upTo(r, 10*time.Second) - 5*time.Second})
	}
	p.Lasts = 30*time.Second + upTo(r, 15*time.Second)
	if r.IntN(10) > 0 {
		p.misfortunes(r)
	}
	if r.IntN(4) == 0 { // not in all: the chance in a backoff is the sidecar's own, and no matter of the seed
		for i := range p.Jobs {
			p.Jobs[i].Retries = pick(r, 0, 2)
		}
	}
	if !p.made() {
		p.reloads()
	}
	if slices.ContainsFunc(p.Reloads, func(x Reload) bool {
		return x.Kind == "leaves" || x.Kind == "renamed" || x.Kind == "named back"
	}) {
		p.Lasts += 6 * time.Second // the lease of a job that has left is not known, and taken to be fifteen seconds
	}
	for _, f := range p.Faults { // a run whose lease is long is taken over as long after Redis is back
		for _, j := range p.Jobs {
			p.Lasts = max(p.Lasts, f.At+f.For+j.TTL+4*time.Second)
		}
	}
	p.tables()
	p.repeats(rand.New(rand.NewPCG(seed, 0x5C4ED)))
	return p
}

func newJob(r *rand.Rand, i int) Job {
	j := Job{
		Name:   fmt.Sprintf("j%d", i+1),
		Period: time.Duration(pick(r, 1, 2, 3, 5, 5, 7, 10, 10)) * time.Second,
		Guarantee: pick(r, "at-most-once", "at-most-once", "at-most-once", "at-most-once", "at-least-once",
			"at-least-once", "at-least-once", "every-replica"),
		Policy:  pick(r, "Forbid", "Forbid", "Forbid", "Allow", "Queue", "Replace"),
		Missed:  pick(r, "latest", "latest", "all", "skip"),
		Backoff: pick(r, 2*time.Millisecond, 500*time.Millisecond),
		TTL:     time.Duration(pick(r, 2, 3, 4, 5)) * time.Second,
		Delay:   pick(r, 0, time.Second, 2*time.Second),
		Timeout: time.Duration(pick(r, 3, 8, 20)) * time.Second,
		Refuses: pick(r, 0, 0, 0, 0.1, 0.5),
		Ignores: r.IntN(6) == 0,
		Ends:    pick(r, "", "", "", "", "fails", "declines"),
	}
	j.Takes = pick(r, [2]time.Duration{}, [2]time.Duration{0, 100 * time.Millisecond}, [2]time.Duration{0, j.Period},
		[2]time.Duration{j.Period / 2, 3 * j.Period / 2}, [2]time.Duration{j.Period, 3 * j.Period})
	switch n := r.IntN(8); {
	case n < 2 || i > 1: // where many wake at one instant, their order is no matter of the seed
		j.Jitter = j.Period / 4
	case n == 2:
		j.Deadline = time.Duration(pick(r, 1, 3, 8)) * time.Second
	}
	return j
}

// misfortunes draws the faults. Most seeds have few, so that what comes of one is not excused by the next.
func (p *Plan) misfortunes(r *rand.Rand) {
	for range pick(r, 1, 1, 2, 2, 3, 5) {
		f := Fault{At: 6*time.Second + upTo(r, p.Lasts-10*time.Second),
			Replica: r.IntN(len(p.Replicas)+2) % len(p.Replicas)}
		if r.IntN(2) == 0 {
			f.Replica = -1
		}
		f.For = 500*time.Millisecond + upTo(r, 10*time.Second)
		f.Kind = pick(r, "crash", "crash", "crash", "stop", "stall", "stall", "stall", "cut", "void", "lossy", "lossy",
			"late", "late", "jump", "redis refuses", "redis void", "redis lossy", "redis restarts", forgets,
			"redis steps")
		switch f.Kind {
		case "jump":
			f.By = upTo(r, 10*time.Second) - 5*time.Second
		case "redis steps":
			f.By = upTo(r, 40*time.Second) - 15*time.Second
		case "redis refuses", "redis void":
			if r.IntN(4) == 0 {
				f.For = time.Minute + upTo(r, time.Minute)
			}
		}
		p.Lasts = max(p.Lasts, f.At+f.For)
		p.Faults = append(p.Faults, f)
	}
	p.orders(r)
	p.Lasts += 14 * time.Second // until what came of the last one is over
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
}

// orders draws what the operator does.
func (p *Plan) orders(r *rand.Rand) {
	for range pick(r, 0, 0, 1, 2) {
		o := Order{At: 6*time.Second + upTo(r, 20*time.Second), For: 500*time.Millisecond + upTo(r, 10*time.Second)}
		o.Kind = pick(r, "trigger", "trigger", "pause", "pause until")
		if j := p.Jobs[r.IntN(len(p.Jobs))]; j.Guarantee != "every-replica" {
			o.Job = j.Name
			p.Orders = append(p.Orders, o)
		}
	}
}

// has reports whether there is a fault of a kind.
func (p *Plan) has(kind string) bool {
	return slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.Kind == kind })
}

// job is how a job behaves, or a timer. The versions hold what a reload changes.
func (p *Plan) job(name string) *Job {
	if strings.HasPrefix(name, "timer:") {
		return &timerNature
	}
	return p.natures[name]
}

// names are those of all jobs that any version has.
func (p *Plan) names() []string { return slices.Sorted(maps.Keys(p.natures)) }

func (p *Plan) ttl(job string) time.Duration { return p.job(job).TTL }

// Table is a version of the plan's table as its user would write it.
func (p *Plan) Table(v version) string {
	var b strings.Builder
	fmt.Fprintf(&b, "service: %s\nshutdownGrace: %s\n", serviceName, p.Grace)
	if p.MaxRunning > 0 {
		fmt.Fprintf(&b, "maxRunning: %d\n", p.MaxRunning)
	}
	if p.Ready {
		b.WriteString("ready: {url: \"http://127.0.0.1:1/ready\", interval: 300ms}\n")
	}
	if p.Local || p.Own {
		b.WriteString("clock: local\n")
	}
	if len(v.calendars) > 0 {
		b.WriteString("calendars:\n")
	}
	for i := range v.calendars {
		b.WriteString(v.calendars[i].text())
	}
	if len(v.jobs) == 0 {
		b.WriteString("jobs: []\n")
	} else {
		b.WriteString("jobs:\n")
	}
	for _, j := range v.jobs {
		j = j.inTable()
		fmt.Fprintf(&b, "  - name: %s\n%s    %s\n    guarantee: %s\n    timeout: %s\n",
			j.Name, j.text()+j.window(), j.does(), j.Guarantee, j.Timeout)
		if j.Guarantee != "every-replica" {
			fmt.Fprintf(&b, "    concurrencyPolicy: %s\n    lock: {ttl: %s, safetyDelay: %s}\n    missed: %s\n",
				j.Policy, j.TTL, j.Delay, j.Missed)
			b.WriteString("    notify: {url: \"http://127.0.0.1:1/ping\", change: {url: " +
				"\"http://127.0.0.1:1/change\"}}\n")
			if j.Limit > 0 && j.Policy == "Allow" {
				fmt.Fprintf(&b, "    concurrency: %d\n", j.Limit)
			}
		}
		if j.Retries > 0 {
			fmt.Fprintf(&b, "    retry: {limit: %d, backoff: %s}\n", j.Retries, j.Backoff)
		}
		if j.Deadline > 0 {
			fmt.Fprintf(&b, "    startingDeadline: %s\n", j.Deadline)
		}
		if j.Jitter > 0 {
			fmt.Fprintf(&b, "    jitter: %s\n", j.Jitter)
		}
		if j.Zone != "" {
			fmt.Fprintf(&b, "    timeZone: %s\n", j.Zone)
		}
		if j.Priority > 0 {
			fmt.Fprintf(&b, "    priority: %d\n", j.Priority)
		}
		if j.GivesUp {
			b.WriteString("    startRetries: 0\n")
		}
		if j.Reserved {
			b.WriteString("    reserved: true\n")
		}
		if j.Suspend {
			b.WriteString("    suspend: true\n")
		}
	}
	return b.String()
}

func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d (%s), %s, way %s\n%s", p.Seed, p.Class, p.Lasts, p.Far, p.Table(p.versions[0]))
	if p.Confirms > 0 {
		fmt.Fprintf(&b, "waitReplicas: %d\n", p.Confirms)
	}
	if p.DeafReaps > 0 {
		fmt.Fprintf(&b, "the answer to a takeover is lost with a chance of %g\n", p.DeafReaps)
	}
	if p.BusyApp {
		b.WriteString("an app is not ready while it runs a job\n")
	}
	for _, d := range p.AppsDown {
		fmt.Fprintf(&b, "the app of r%d refuses from %s to %s\n", d.Place+1, d.From, d.To)
	}
	for _, d := range p.Unready {
		fmt.Fprintf(&b, "the app of r%d is not ready from %s to %s\n", d.Place+1, d.From, d.To)
	}
	if n := len(p.Timers); n > 0 {
		fmt.Fprintf(&b, "%d timers, set from %s on, due from %s on\n", n, p.Timers[0].Set, p.Timers[0].Due)
	}
	for _, j := range p.Jobs {
		fmt.Fprintf(&b, "%s: takes %s to %s; %s; refuses %g; ignores its end: %t\n",
			j.Name, j.Takes[0], j.Takes[1], cmp.Or(j.Ends, "succeeds"), j.Refuses, j.Ignores)
	}
	for i, r := range p.Replicas {
		fmt.Fprintf(&b, "r%d: from %s, clock %+.3fs\n", i+1, r.Begins, r.Skew.Seconds())
	}
	for _, f := range p.Faults {
		fmt.Fprintf(&b, "fault at %s: %s, replica %d, for %s, by %s %s\n",
			f.At, f.Kind, f.Replica+1, f.For, f.By, f.After)
	}
	for _, o := range p.Orders {
		fmt.Fprintf(&b, "order at %s: %s %s for %s\n", o.At, o.Kind, o.Job, o.For)
	}
	for i, x := range p.Reloads {
		fmt.Fprintf(&b, "table at %s: %s %s %s", x.At, x.Kind, x.Job, x.To)
		for _, j := range p.versions[i+1].jobs {
			if j.Name == x.Job {
				fmt.Fprintf(&b, ": every %s, jitter %s, timeout %s, %s, %s, zone %q",
					j.Period, j.Jitter, j.Timeout, j.Policy, j.Guarantee, j.Zone)
			}
		}
		for place, lag := range x.Late {
			fmt.Fprintf(&b, "; r%d sees it %s later", place+1, lag)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
