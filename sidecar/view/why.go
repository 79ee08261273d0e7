package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// Why tells what became of a tick, or how a job stands, in the JSON of `why -o json` and GET
// /v1/jobs/{job}/ticks/{tick}.
type Why struct {
	Job        string `json:"job"`
	Tick       string `json:"tick,omitempty"` // "" = it is about the job as it stands
	Fate       string `json:"fate"`
	Text       string `json:"text"` // for people
	Next       string `json:"next,omitempty"`
	First      string `json:"first,omitempty"` // of several ticks with this fate
	Last       string `json:"last,omitempty"`
	Ticks      int    `json:"ticks,omitempty"` // how many
	Run        string `json:"run,omitempty"`
	Replica    string `json:"replica,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Attempt    int    `json:"attempt,omitempty"`
	DelayMS    int64  `json:"delayMs,omitempty"` // from the tick to the start of its last run
	DurationMS int64  `json:"durationMs,omitempty"`
	Detail     string `json:"detail,omitempty"`
}

// A Why can tell these of a tick, besides its fate.
const (
	noTick    = "no_tick"   // the schedule has no such tick
	excluded  = "excluded"  // the schedule names it, and a calendar or every leaves it out
	future    = "future"    // it has not come due
	running   = "running"   // a run of it lives
	waiting   = "waiting"   // it waits for its run
	unclaimed = "unclaimed" // it has come due, and no replica has claimed it
	unknown   = "unknown"   // Redis knows nothing of it, any more or yet
	suspended = "suspended"
	everyone  = "every_replica"
	stands    = "stands" // how the job stands
)

// WhyStore is where Explain reads; a service.Store is one.
type WhyStore interface {
	Store
	TickFates(ctx context.Context, job string) (service.TickFates, error)
	Acts(ctx context.Context, job string, limit int) ([]service.Act, error)
	Awaited(ctx context.Context, timer string) (time.Time, error)
}

// actsRead is how many acts on a job Explain reads to name who paused it or had a tick run again.
const actsRead = 200

// Explain tells what became of a tick of a job or timer. If at is zero, it tells how the job stands, and what would
// make it fire. It reads Redis in five round trips, and of a timer in two more.
func Explain(ctx context.Context, s WhyStore, t *config.Table, j config.Job, at time.Time) (*Why, error) {
	look, err := Read(ctx, s, t, []config.Job{j})
	if err != nil {
		return nil, err
	}
	fates, err := s.TickFates(ctx, j.Name)
	if err != nil {
		return nil, err
	}
	acts, err := s.Acts(ctx, j.Name, actsRead)
	if err != nil {
		return nil, err
	}
	x := &explainer{Look: look, job: j, fates: fates, acts: acts, state: look.States[j.Name], zone: Zone(j.TimeZone)}
	if x.timer = service.IsTimer(j.Name); x.timer {
		if at, err = x.readTimer(ctx, s, at); err != nil {
			return nil, err
		}
	}
	w := x.stands()
	if !at.IsZero() {
		w = x.tick(at)
	}
	w.Text = text.OneLine(w.Text) // replicas and operators have written their names to Redis
	return w, nil
}

type explainer struct {
	*Look
	job   config.Job
	fates service.TickFates
	acts  []service.Act // the newest first
	state service.Ledger
	zone  *time.Location
	timer bool      // the job stands for a timer; without a schedule, it is sent once or does not wait
	waits time.Time // the oldest time for which the timer waits; zero = none
}

// readTimer reads what is known of a timer. Each of its times is one of all timers, so the ledger's newest tick is not
// its own. It returns the time that was meant: people leave the milliseconds out.
func (x *explainer) readTimer(ctx context.Context, s WhyStore, at time.Time) (meant time.Time, err error) {
	if x.waits, err = s.Awaited(ctx, x.job.Name); err != nil {
		return at, err
	}
	x.state.Since, x.state.Tick, meant = time.Time{}, x.waits.Add(-1), at
	for _, e := range append(x.fates, service.Entry{Tick: x.waits}) {
		if e.Tick.Truncate(time.Second).Equal(at) {
			meant = e.Tick
		}
	}
	return meant, nil
}

func (x *explainer) tick(at time.Time) *Why {
	w := &Why{Job: x.job.Name, Tick: Stamp(at)}
	say := func(fate, words string, args ...any) *Why {
		w.Fate, w.Text = fate, strings.TrimSpace(x.clock(at)+" "+fmt.Sprintf(words, args...))
		return w
	}
	e := x.fates.Fate(at)
	switch {
	case x.job.Guarantee == config.EveryReplica:
		return say(everyone, "is fired by each replica for itself, and has no fate of its own: "+
			"solotick history %s shows the runs.", x.job.Name)
	case e != nil && e.Count == 0:
		w.Run, w.Replica, w.Kind, w.Attempt = e.Run, e.Replica, e.Kind, e.Attempt
		w.DurationMS, w.Detail = e.Took.Milliseconds(), e.Detail
		if late := started(e).Sub(e.Tick); e.Took > 0 && late > 0 {
			w.DelayMS = late.Milliseconds()
		}
		return say(e.Outcome, "%s%s", x.runWords(e), x.againWords(at))
	case x.job.Schedule != nil && !x.job.Schedule.Next(at.Add(-time.Nanosecond)).Equal(at):
		next := x.job.Schedule.Next(at)
		w.Next = Stamp(next)
		if why, ok := x.job.Schedule.Excluded(at); ok {
			return say(excluded, "%s", x.excludedWords(why, next))
		}
		if next.IsZero() {
			return say(noTick, "is no tick of %q, and there is none after it.", x.job.Schedule)
		}
		return say(noTick, "is no tick of %q: the next is %s.", x.job.Schedule, x.clock(next))
	case e != nil:
		w.First, w.Last, w.Ticks, w.Detail = Stamp(e.First), Stamp(e.Tick), e.Count, e.Detail
		return say(e.Outcome, "%s%s", x.withoutRun(e), x.againWords(at))
	}
	for _, r := range x.state.Running {
		if r.Tick.Equal(at) && r.Kind != "manual" {
			w.Run, w.Replica, w.Kind, w.Attempt = r.Run, r.Replica, r.Kind, r.Attempt
			return say(running, "is running on %s since %s.", r.Replica, x.clock(r.Since))
		}
	}
	for _, d := range x.state.Waiting {
		if d.Tick.Equal(at) && d.Kind != "manual" {
			w.Kind, w.Attempt = d.Kind, d.Attempt
			return say(waiting, "waits for its run: %s.", x.waitWords(d))
		}
	}
	for _, b := range x.state.Behind {
		if b.Tick.Equal(at) {
			return say(waiting, "came due while %s was still going on. "+
				"It is fired only if that run turns out to have been dead.", x.presentRun())
		}
	}
	for _, g := range x.state.Gaps {
		if at.After(g.From) && at.Before(g.To) {
			return say(g.Fate, "%s", x.withoutRun(&service.Entry{Outcome: g.Fate, Count: 1, First: at, Tick: at}))
		}
	}
	switch {
	case x.timer && x.job.Schedule != nil && x.inWay(at) != "":
		return say(lock.Overlapped, "was skipped: %s was still going on.", x.inWay(at))
	case x.timer && (x.waits.IsZero() || at.Before(x.waits) || x.job.Schedule == nil && !at.Equal(x.waits)):
		return say(unknown, "is not known: the timer was set later, or changed, or does not wait any more, "+
			"and the history has nothing of it.")
	case x.job.Suspend:
		return say(suspended, "is not fired: the table suspends the job.")
	case at.After(x.Now):
		return say(future, "has not come yet: it is due in %s. %s", length(at.Sub(x.Now)), x.obstacle())
	case x.state.Born.IsZero():
		return say(unknown, "is not known: Redis does not know the job. A replica makes it known when it starts.")
	case !at.After(x.state.Since):
		return say(unknown, "came before Redis knew the job with this schedule, at %s: it has no fate.%s",
			x.clock(x.state.Since), x.againWords(at))
	case at.After(x.state.Tick):
		who := "no replica has claimed it"
		if x.job.Claim != nil {
			who = "no app has asked for it"
		}
		return say(unclaimed, "has come due, and %s. %s", who, x.obstacle())
	case len(x.fates) > 0 && at.Before(x.fates[0].Tick):
		return say(unknown, "is too long ago, or the app of the new job was not ready yet: "+
			"Redis has fates from %s on.%s", x.clock(x.fates[0].Tick), x.againWords(at))
	}
	return say(unknown, "was settled, and Redis keeps nothing of it: no app was ready yet, it came within a second of "+
		"the job's registration, or Redis has lost data.%s", x.againWords(at))
}

// inWay names the run during which a time of a timer came; "" if there was none. The history has the first such time.
func (x *explainer) inWay(at time.Time) string {
	for _, r := range x.state.Running {
		if at.After(r.Tick) && !at.After(x.Now) {
			return fmt.Sprintf("the run of %s on %s", x.clock(r.Tick), r.Replica)
		}
	}
	for _, e := range x.fates {
		if at.After(e.Tick) && at.Before(e.Ended) && e.Count == 0 {
			return fmt.Sprintf("the run of %s on %s", x.clock(e.Tick), e.Replica)
		}
	}
	return ""
}

// excludedWords tells why an instant of the schedule is no tick.
func (x *explainer) excludedWords(why schedule.Exclusion, next time.Time) string {
	days := x.job.Days
	words := ""
	switch {
	case why.Every:
		unit, n := "day", days.Every.Days
		if days.Every.Weeks > 0 {
			unit, n = "week", days.Every.Weeks
		}
		words = fmt.Sprintf("is excluded: every keeps one %s of %d, counted from %s, and %s is in another",
			unit, n, days.Every.From, why.Day)
	case why.Calendar != "":
		words = fmt.Sprintf("is excluded: calendar %s has %s", why.Calendar, why.Day)
	default:
		words = fmt.Sprintf("is excluded: %s is no day of %s", why.Day, strings.Join(days.Include, " or "))
	}
	switch {
	case !why.Moved.IsZero():
		return words + ". Its tick moved to " + x.clock(why.Moved) + "."
	case next.IsZero():
		return words + ". There is no tick after it."
	}
	return words + ". The next tick is " + x.clock(next) + "."
}

func started(e *service.Entry) time.Time { return e.Ended.Add(-e.Took) }

func (x *explainer) runWords(e *service.Entry) string {
	var b strings.Builder
	switch {
	case e.Outcome == "not_started":
		b.WriteString("could not be started by any replica")
	case e.Replica == "":
		fmt.Fprintf(&b, "waited for a replica that could start it, and %s", outcomeWords(e.Outcome))
	case e.Took == 0:
		fmt.Fprintf(&b, "was claimed by %s, and ended as %s", e.Replica, e.Outcome)
	case e.Outcome == "observed":
		fmt.Fprintf(&b, "was taken by %s, which called nothing, because the job is observed only", e.Replica)
	default:
		fmt.Fprintf(&b, "was fired by %s", e.Replica)
		if late := started(e).Sub(e.Tick); late >= time.Millisecond {
			fmt.Fprintf(&b, " %s late", length(late))
		}
		switch e.Kind {
		case "catchup":
			b.WriteString(" (a tick that had been missed or had waited)")
		case "handover":
			b.WriteString(" (another replica could not start it)")
		case "takeover":
			b.WriteString(" (once more, because its first run was cut short)")
		}
		b.WriteString(", and ")
		if e.Attempt > 1 {
			fmt.Fprintf(&b, "attempt %d ", e.Attempt)
		}
		fmt.Fprintf(&b, "%s after %s", outcomeWords(e.Outcome), length(e.Took))
	}
	return b.String() + text.Between(": ", text.OneLine(e.Detail), "") + "."
}

// outcomeWords says an outcome as a verb.
func outcomeWords(outcome string) string {
	return cmp.Or(map[string]string{
		"timed_out": "timed out", "lost_lock": "lost its lock", "replaced": "was replaced by a newer tick",
		"declined":    "was declined by the app, which was at this work already,",
		"interrupted": "was interrupted", "shutdown": "was cut short by a shutdown", "cancelled": "was cancelled",
	}[outcome], outcome)
}

// withoutRun tells of ticks that no replica fired.
func (x *explainer) withoutRun(e *service.Entry) string {
	var b strings.Builder
	switch e.Outcome {
	case lock.Overlapped:
		b.WriteString("was skipped: ")
		if run := x.fates.Run(e.Behind); run != nil {
			fmt.Fprintf(&b, "the run of %s was still going on on %s", x.clock(run.Tick), run.Replica)
		} else {
			b.WriteString("a run of the job was still going on, or another tick was waiting for its end")
		}
	case lock.PausedTick:
		b.WriteString("was not fired: the job was paused" + x.pauseWords(e.First))
	case lock.Displaced:
		b.WriteString("was not fired: it waited for the end of a run, and a newer tick took its place")
	case "interrupted":
		b.WriteString("was started, and its run was cut short. " +
			"It was not run again, because the job was suspended or its window had ended")
	default:
		b.WriteString("was missed")
	}
	if others := e.Count - 1; others > 0 {
		fmt.Fprintf(&b, ", with %s from %s to %s", text.Plural(others, "other"), x.clock(e.First), x.clock(e.Tick))
	}
	return b.String() + text.Between(": ", text.OneLine(e.Detail), "") + "."
}

// againWords tells of the runs of a tick that an operator asked for.
func (x *explainer) againWords(at time.Time) string {
	var b strings.Builder
	for _, e := range x.fates.Again(at) {
		fmt.Fprintf(&b, " %s had it run again: %s after %s on %s, at %s.",
			x.rerunBy(at), outcomeWords(e.Outcome), length(e.Took), e.Replica, x.clock(e.Ended))
	}
	return b.String()
}

// rerunBy names who had a tick run again.
func (x *explainer) rerunBy(at time.Time) string {
	for _, a := range x.acts {
		if (a.What == "rerun" || a.What == "backfill") && a.Tick.Equal(at) && a.By != "" {
			return a.By
		}
	}
	return "An operator"
}

// pauseWords tells who had paused the job when a tick came, until when, and why; "" if that is not known any more. The
// newest act on the job's own pause is what counts of it, and so for the pause of all jobs.
func (x *explainer) pauseWords(tick time.Time) string {
	known := map[bool]bool{} // by whether it is the pause of all jobs
	for _, a := range x.acts {
		all := a.All != ""
		if a.What != "pause" && a.What != "resume" || a.At.After(tick) || known[all] {
			continue
		}
		known[all] = true
		if a.What == "resume" || !a.Until.IsZero() && !a.Until.After(tick) {
			continue
		}
		return text.Between(" by ", text.OneLine(a.By), "") + x.until(a.Until) +
			text.Between(" (", text.OneLine(a.Reason), ")")
	}
	return ""
}

// until says when a pause ends; "" if it does not by itself.
func (x *explainer) until(end time.Time) string {
	if end.IsZero() {
		return ""
	}
	return " until " + x.clock(end)
}

func (x *explainer) waitWords(d lock.Due) string {
	switch d.Kind {
	case "handover":
		return d.RefusedBy()
	case "takeover":
		return "its run was cut short, and it is run again"
	case "backfill":
		return "an operator asked for it"
	}
	if run := x.presentRun(); run != "" {
		return run + " is still going on"
	}
	return "a replica takes it next"
}

// presentRun names the oldest run of the job; "" if there is none.
func (x *explainer) presentRun() string {
	if len(x.state.Running) == 0 {
		return ""
	}
	r := x.state.Running[0]
	return fmt.Sprintf("the run of %s on %s", x.clock(r.Tick), r.Replica)
}

// obstacle is what keeps the job from firing now; "" if nothing does.
func (x *explainer) obstacle() string {
	for i, p := range []*service.Pause{x.state.Paused, x.state.PausedAll} {
		if p == nil {
			continue
		}
		resume := "solotick resume " + []string{x.job.Name, "--all"}[i]
		words := "The job is paused" + text.Between(" by ", p.By, "") + " since " + x.clock(p.At) + x.until(p.Until) +
			text.Between(": ", p.Reason, "")
		if p.Until.IsZero() {
			return words + ". It fires again after " + resume + "."
		}
		return words + ". " + resume + " ends the pause at once."
	}
	live := x.Live()
	if len(live) == 0 {
		return "No replica is running: nothing fires until one starts."
	}
	if !slices.ContainsFunc(live, func(r service.Replica) bool { return r.Ready == "" }) {
		last := live[len(live)-1]
		return fmt.Sprintf("No replica takes ticks (%s: %s).", last.Name, text.OneLine(last.Ready))
	}
	for _, k := range x.Skips(x.job.Name) {
		if k.Tick.After(x.state.Tick) {
			return fmt.Sprintf("Replica %s skipped %s: %s.", k.Replica, x.clock(k.Tick), k.Reason)
		}
	}
	return ""
}

func (x *explainer) stands() *Why {
	next := x.Next(x.job)
	if x.timer && x.job.Schedule == nil && x.waits.After(x.Now) {
		next = x.waits
	}
	var all []string
	say := func(words string, args ...any) { all = append(all, fmt.Sprintf(words, args...)) }
	switch {
	case x.job.Suspend:
		say("The table suspends %s: it has no ticks until suspend is removed.", x.job.Name)
	case x.job.Guarantee == config.EveryReplica:
		say("Each replica fires %s for itself: solotick history %[1]s shows the runs.", x.job.Name)
	case x.state.Born.IsZero():
		say("Redis does not know %s yet. A replica makes it known when it starts.", x.job.Name)
	}
	for _, r := range x.state.Running {
		say("The run of %s is going on on %s since %s.", x.clock(r.Tick), r.Replica, x.clock(r.Since))
	}
	if n := len(x.fates); n > 0 {
		last := x.fates[n-1]
		words := x.withoutRun(&last)
		if last.Count == 0 {
			words = x.runWords(&last)
		}
		say("The last tick, %s, %s", x.clock(last.Tick), words)
		for _, e := range slices.Backward(x.fates) {
			if last.Failed && e.Outcome == "succeeded" {
				say("The last success was %s.", x.clock(e.Tick))
				break
			}
		}
	}
	if x.timer && len(x.state.Running) == 0 && !x.waits.IsZero() && !x.waits.After(x.Now) {
		say("The tick %s has come due, and no replica has claimed it.", x.clock(x.waits))
	}
	if o := x.obstacle(); o != "" {
		all = append(all, o)
	}
	if !next.IsZero() {
		say("The next tick is %s, in %s.", x.clock(next), length(next.Sub(x.Now)))
	} else if x.timer && x.waits.IsZero() && len(x.fates)+len(x.state.Running) == 0 {
		say("No timer of this id waits, and the history has nothing of it.")
	} else if !x.job.Suspend && !x.state.IsPaused() {
		say("There is no further tick.")
	}
	return &Why{Job: x.job.Name, Fate: stands, Next: Stamp(next), Text: strings.Join(all, " ")}
}

// clock writes an instant in the job's zone: without the date if it is today's, with the zone's name unless it is UTC.
func (x *explainer) clock(t time.Time) string {
	local, now := t.In(x.zone), x.Now.In(x.zone)
	layout := "15:04:05"
	if local.YearDay() != now.YearDay() || local.Year() != now.Year() {
		layout = "2006-01-02 15:04:05"
	}
	return local.Format(layout + " MST")
}

// length writes a duration for a sentence.
func length(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 24*time.Hour:
		return d.Round(time.Second).String()
	}
	return text.Plural(int(d/(24*time.Hour)), "day")
}
