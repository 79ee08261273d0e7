package sim

import (
	"fmt"
	"strings"
	"time"
)

// note is one line of the trace.
type note struct {
	at                    time.Duration
	who, what             string
	job, tick, run, extra string
}

func (n note) String() string {
	s := fmt.Sprintf("%11.6f %-6s %-9s", n.at.Seconds(), n.who, n.what)
	if n.job != "" {
		s += " " + n.job
	}
	if n.tick != "" {
		s += " " + n.tick
	}
	if n.run != "" {
		s += " run " + short(n.run)
	}
	return s + " " + n.extra
}

// violation is a promise that was broken.
type violation struct {
	promise, job, text string
	at                 time.Duration // about when
}

func (w *world) note(r *replica, what, job, tick, run, extra string) {
	who := "world"
	if r != nil {
		who = r.process
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, note{at: w.now(), who: who, what: what, job: job, tick: tick, run: run, extra: extra})
}

func (w *world) violated(promise, job, format string, a ...any) {
	w.violatedAt(w.now(), promise, job, format, a...)
}

// violatedAt is for what is found when all is over.
func (w *world) violatedAt(at time.Duration, promise, job, format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	w.note(nil, "VIOLATION", job, "", "", promise+": "+text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, violation{promise, job, text, at})
}

func (w *world) result() Result {
	r := Result{Seed: w.plan.Seed, Class: w.plan.Class, Lasted: w.now(), Faults: len(w.plan.Faults),
		Starts: len(w.runs), Scripts: w.redis.scripts}
	for _, j := range w.plan.Jobs {
		r.Ticks += int(w.plan.Lasts / j.Period)
	}
	for _, v := range w.violations {
		r.Violations = append(r.Violations, "promise "+v.promise+": "+v.job+": "+v.text)
	}
	r.Met = w.met
	r.Hash = w.hash()
	r.Whole = w.story(0)
	if len(w.violations) > 0 {
		r.Story = w.story(around)
	}
	return r
}

// hash is equal for two plays of a seed that went the same way. UUIDs differ from play to play.
func (w *world) hash() uint64 {
	var h uint64
	for _, n := range w.trace { // without an order, which there is none of within an instant
		h += dice(0).throw(uint64(n.at), text(n.who), text(n.what), text(n.job), text(n.tick))
	}
	return h
}

// around is how much of the trace before and after a violation is told.
const around = 8 * time.Second

// story is the plan and the trace: of the jobs that a promise was broken to, around that time; with 0 all of it.
func (w *world) story(around time.Duration) string {
	var b strings.Builder
	b.WriteString(w.plan.String())
	for _, n := range w.trace {
		if around == 0 || w.concerns(n, around) {
			b.WriteString(n.String())
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (w *world) concerns(n note, around time.Duration) bool {
	for _, v := range w.violations {
		if (n.job == v.job || n.job == "" || v.job == "") && (n.at-v.at).Abs() <= around {
			return true
		}
	}
	return false
}
