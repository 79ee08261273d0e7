package nemesis

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// Fates that only the scripted hour has.
const (
	paused   = "paused"
	timedOut = "timed_out"
	declined = "declined"
)

// `solotick why` tells these of a tick, besides its fate.
const (
	noTick      = "no_tick"
	suspended   = "suspended"
	everyone    = "every_replica"
	unknownTick = "unknown"
)

// emptied is a strike on Redis: from the last look at what it kept until its new ledgers have ticks.
const emptied harm = "emptied"

// hourJob is one row of the hour's table.
type hourJob struct {
	job
	ends string // how a run ends to which nothing happens
	keys string // of the row, besides those of job
	slot bool   // it has no slot of its own
}

// Jobs that play a part in one chapter.
const (
	theHeld      = "held"     // is paused, and leaves the table at the reload
	theWindowed  = "windowed" // has a start and an end
	theSqueezed  = "squeezed" // has no slot of its own, and gets another schedule at the reload
	theSuspended = "two"      // is suspended at the reload
	theAdded     = "added"    // comes with the reload
	theLong      = "forbid"   // is struck while it runs
	theSkipping  = "skip"     // fires nothing late
	theEvery     = "every"    // each replica runs it
	theHog       = "hog-"     // takes the slot of a replica that is shared
)

const (
	hogs     = 3 // as many as there are replicas, which have one such slot each
	hogTakes = 5 // units
)

// hour is the script: one stretch of time, on three replicas and a Redis, in which everything happens that can become
// of a tick. All its moments are given in units, of which the stretch has sixty: minutes, if it is an hour.
type hour struct {
	*world
	store   *single
	history *historian
	unit    time.Duration
	began   time.Time
	late    time.Duration // by how much the chapter began after its moment; play writes it
	changed bool          // the second table is in force
	left    time.Time     // when the replicas were told to end; play writes it
	plans   []hourJob     // of both tables
	course
}

// course is when the chapters happened that are no strike on a replica, and what Redis kept between them.
type course struct {
	pause, full, stop, empty, reload stretch
	// just before Redis was emptied, before the reload, and at the end
	kept []map[string]*ledger
}

// stretch is a time in which something held: surely from holds to ends, and perhaps from begins to over.
type stretch struct{ begins, holds, ends, over time.Time }

func (s stretch) surely(t time.Time) bool { return t.After(s.holds) && t.Before(s.ends) }
func (s stretch) perhaps(t time.Time) bool {
	return !t.Before(s.begins.Add(-edge)) && !t.After(s.over.Add(edge))
}

// chapter is one thing that the script does, and what it expects of the ticks that this concerns.
type chapter struct {
	name string
	at   int // unit
	play func(h *hour)
	// expect tells what may have become of a tick; nil = this chapter has no part in it.
	expect func(a *audit, tick time.Time) []string
}

// script is the hour. Between the chapters there is rest, and at the end of each it asks `solotick why`.
var script = []chapter{
	{"replica killed", 2, (*hour).killReplica, (*audit).behindAStrike},
	{"replica stalled", 12, (*hour).stallReplica, nil}, // as above
	{"job paused", 23, (*hour).pauseJob, (*audit).inThePause},
	{"window", 30, (*hour).lookAtTheWindow, nil}, // the schedule has no ticks outside
	{"slots full", 31, (*hour).fillSlots, (*audit).withoutSlot},
	{"Redis stopped", 40, (*hour).stopRedis, (*audit).withoutRedis},
	{"Redis emptied", 51, (*hour).emptyRedis, (*audit).afterTheEmptying},
	{"table reloaded", 56, (*hour).reloadTable, nil}, // the ticks are those of each table in its time
}

// newHour makes the world of the hour.
func newHour(t testing.TB, binary string, length time.Duration) *hour {
	s := newSingle(t, "always")
	h := &hour{store: s, unit: max(length/60, time.Second).Truncate(time.Second), history: newHistorian(s.client())}
	p := path{redis: s.server.Addr()}
	h.world = prepare(t, binary, nil, s, keepsAll, p, p, p)
	h.world.table = h.tableOf
	// the replicas have to be ready by then
	h.began = time.Now().Truncate(time.Second).Add(20*time.Second + 500*time.Millisecond)
	h.plans = h.rows()
	h.changed = true
	h.plans = append(h.plans, h.rows()[slices.IndexFunc(h.rows(), func(j hourJob) bool { return j.name == theAdded })])
	h.changed = false
	for _, j := range h.plans {
		h.jobs = append(h.jobs, j.job)
	}
	h.keep("first.yaml")
	h.start(h.replicas...)
	if late := time.Since(h.moment(1)); late > 0 {
		h.wrong("the replicas were ready %s too late for the script", late)
		t.SkipNow()
	}
	return h
}

// keep writes the table in force for `solotick next`.
func (h *hour) keep(name string) {
	h.t.Helper()
	h.check(os.WriteFile(filepath.Join(h.dir, name), []byte(h.tableOf(h.replicas[0], "")), 0o600))
}

// tableOf is the table of a replica in the first part of the hour, or in the second.
func (h *hour) tableOf(r *replica, listen string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "service: nemesis\nredis: %s\nlisten: %q\nadmin: \"\"\nmaxRunning: 1\n"+
		"defaults: {timeout: 1m, lock: {ttl: %s}}\njobs:\n", h.store.table(r.path.redis), listen, ttl)
	for _, j := range h.rows() {
		fmt.Fprintf(&b, "  - name: %s\n    schedule: %q\n    reserved: %t\n    http: {url: %q}\n", j.name, j.schedule,
			!j.slot, r.door.URL(j.name, j.take)+fmt.Sprintf("&fail=%d&decline=%t", j.fails, j.ends == declined))
		for _, key := range strings.Split(j.keys, "; ") {
			if key != "" {
				fmt.Fprintf(&b, "    %s\n", key)
			}
		}
	}
	return b.String()
}

// rows are the jobs of the table in force.
func (h *hour) rows() []hourJob {
	const each = "* * * * * *"
	second := func(unit int) string { return h.moment(unit).UTC().Truncate(time.Second).Format(time.RFC3339) }
	two := hourJob{job{name: theSuspended, schedule: "*/2 * * * * *", take: 300 * time.Millisecond},
		succeeded, "", false}
	held := hourJob{job{name: theHeld, schedule: "@every 1s", take: 20 * time.Millisecond}, succeeded, "", false}
	squeezed := hourJob{job{name: theSqueezed, schedule: "@every 1s", take: 20 * time.Millisecond}, succeeded, "", true}
	rows := []hourJob{
		{job{name: "second", schedule: each, take: 50 * time.Millisecond}, succeeded, "", false},
		{job{name: "five", schedule: "*/5 * * * * *", take: time.Second, again: true}, succeeded,
			"guarantee: at-least-once", false},
		{job{name: "all", schedule: "@every 1s", all: true}, succeeded, "missed: all", false},
		{job{name: theSkipping, schedule: "@every 2s", take: 100 * time.Millisecond}, succeeded, "missed: skip", false},
		{job{name: theLong, schedule: each, take: 2300 * time.Millisecond}, succeeded,
			"concurrencyPolicy: Forbid", false},
		{job{name: "queue", schedule: "@every 2s", take: 2700 * time.Millisecond, queue: true}, succeeded,
			"concurrencyPolicy: Queue", false},
		{job{name: "beside", schedule: "@every 2s", take: 2500 * time.Millisecond, allow: true}, succeeded,
			"concurrencyPolicy: Allow", false},
		{job{name: "fails", schedule: "*/5 * * * * *", take: 50 * time.Millisecond, fails: 9}, failed, "", false},
		{job{name: "times-out", schedule: "@every 5s", take: time.Minute}, timedOut, "timeout: 1s", false},
		{job{name: "declines", schedule: "2-59/5 * * * * *", take: 50 * time.Millisecond}, declined, "", false},
		{job{name: theEvery, schedule: "*/5 * * * * *"}, succeeded, "guarantee: every-replica", false},
		{job{name: theWindowed, schedule: each}, succeeded, "start: " + second(24) + "; end: " + second(29), false},
	}
	for n := range hogs {
		hog := job{name: fmt.Sprint(theHog, n+1), schedule: "@at " + second(31), take: hogTakes*h.unit + h.unit/2}
		rows = append(rows, hourJob{hog, succeeded, "timeout: 2h", true})
	}
	if !h.changed {
		return append(rows, two, held, squeezed)
	}
	two.keys = "suspend: true"
	squeezed.schedule = "1-59/2 * * * * *"
	return append(rows, two, squeezed,
		hourJob{job{name: theAdded, schedule: each, take: 20 * time.Millisecond}, succeeded, "", false})
}

// moment is when a unit begins. It lies between two seconds, and so between two ticks.
func (h *hour) moment(unit int) time.Time { return h.began.Add(time.Duration(unit) * h.unit) }

// until waits for a moment, or, if that is past, for one between two ticks. A chapter that began late is as long as
// another one.
func (h *hour) until(unit int) {
	if wait := time.Until(h.moment(unit).Add(h.late)); wait >= 0 {
		time.Sleep(wait)
	} else {
		h.betweenTicks()
	}
}

// betweenTicks waits for the next moment that lies between two ticks.
func (h *hour) betweenTicks() {
	time.Sleep(time.Until(time.Now().Add(250 * time.Millisecond).Round(time.Second).Add(500 * time.Millisecond)))
}

// play plays the script, and returns when all is quiet.
func (h *hour) play() (to time.Time) {
	h.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { h.history.run(ctx); close(done) }()
	defer func() { stop(); <-done }()
	for _, c := range script {
		h.late = 0
		h.until(c.at)
		h.late = max(0, time.Since(h.moment(c.at)))
		h.record.enter(c.name)
		h.t.Logf("%s %s", clock(time.Now()), c.name)
		c.play(h)
	}
	h.until(60)
	to = time.Now()
	time.Sleep(h.calm())
	h.left = time.Now()
	h.end()
	h.check(h.history.read(ctx))
	h.look(ctx)
	left, err := leftovers(ctx, h.store.client(), to)
	h.check(err)
	for _, l := range left {
		h.wrong("left behind in Redis: %s", l)
	}
	for _, odd := range h.app.Odd() {
		h.t.Error(odd)
	}
	return to
}

// look reads what Redis keeps of all jobs.
func (h *hour) look(ctx context.Context) {
	h.t.Helper()
	l, err := ledgers(ctx, h.store.client(), h.jobs)
	h.check(err)
	h.kept = append(h.kept, l)
}

// killReplica kills the replica that runs the long job, and starts it again after three units. The run is interrupted.
func (h *hour) killReplica() {
	r := h.runner()
	before, run := h.newest(theLong), h.last(theLong, r.name)
	over, struck := h.record.begin(killed, r.name), time.Now()
	r.process.Kill()
	time.Sleep(3 * h.unit)
	h.start(r)
	over()
	time.Sleep(time.Until(struck.Add(ttl + dying)))
	h.until(11)
	h.why(theLong, run.Tick, interrupted, r.name)
	h.why(theLong, before.Tick.Add(time.Second), overlapped, "the run of "+clockOf(before.Tick),
		"still going on on "+before.Replica)
}

// stallReplica stops the replica that runs the long job, for six units, which is longer than its lease. The run is
// interrupted.
func (h *hour) stallReplica() {
	r := h.runner()
	run := h.last(theLong, r.name)
	over := h.record.begin(stopped, r.name)
	h.check(r.process.Signal(syscall.SIGSTOP))
	time.Sleep(max(6*h.unit, ttl+dying))
	h.check(r.process.Signal(syscall.SIGCONT))
	over()
	h.until(22)
	h.why(theLong, run.Tick, interrupted, r.name)
	h.why("fails", h.newest("fails").Tick, failed, "500")
	h.why("times-out", h.unharmed("times-out").Tick, timedOut, "timed out")
	h.why("declines", h.newest("declines").Tick, declined, "declined by the app")
	h.why(theEvery, h.newest(theEvery).Tick, everyone, "each replica")
}

// behindAStrike expects of a run on the replica that was struck that it is interrupted, or run again under
// at-least-once, and that ticks that came meanwhile waited for nothing: they overlapped, were missed, or were fired
// late.
func (a *audit) behindAStrike(tick time.Time) []string {
	for _, s := range a.record.strikes {
		own, behind := a.concerned(tick, s.from, s.to, func(r *run) bool { return r.replica == s.target })
		switch {
		case own == nil && behind:
			return []string{a.plan.ends, overlapped, missed}
		case own == nil:
		case a.job.again:
			return []string{a.plan.ends}
		case own.started() && own.arrived.Before(s.from) &&
			(s.harm.kills() && own.left || s.harm == stopped && own.ended.After(s.from)):
			return []string{interrupted}
		default: // claimed, and perhaps not begun
			return []string{a.plan.ends, interrupted, missed}
		}
	}
	return nil
}

// concerned finds the run of a tick that was under way within [from, to], and reports whether the tick came behind
// another one that was. Only those count to which something happened then.
func (a *audit) concerned(tick, from, to time.Time, happened func(r *run) bool) (own *run, behind bool) {
	for _, r := range a.runs {
		switch {
		case r.begin().After(to) || r.end().Before(from.Add(-edge)) || !happened(r):
		case r.tick.Equal(tick):
			own = r
		case !a.job.allow && tick.After(r.tick) && !tick.After(r.end().Add(edge)):
			behind = true
		}
	}
	return own, behind
}

// pauseJob pauses a job for four units.
func (h *hour) pauseJob() {
	h.pause.begins = time.Now()
	h.solotick("pause", theHeld, "--by", "anna@ops", "--reason", "moving house")
	h.pause.holds = time.Now()
	h.until(27)
	h.pause.ends = time.Now()
	h.solotick("resume", theHeld, "--by", "anna@ops")
	h.pause.over = time.Now()
	h.until(29)
	h.why(theHeld, h.pause.ends.Truncate(time.Second), paused, "paused by anna@ops", "moving house")
}

// inThePause expects of each tick of the job that it was paused.
func (a *audit) inThePause(tick time.Time) []string {
	switch {
	case a.job.name != theHeld:
	case a.pause.surely(tick):
		return []string{paused}
	case a.pause.perhaps(tick):
		return []string{a.plan.ends, paused}
	}
	return nil
}

// lookAtTheWindow finds ticks from the window's start on, and none at its end.
func (h *hour) lookAtTheWindow() {
	h.why(theWindowed, h.moment(24).Truncate(time.Second), succeeded, "succeeded")
	h.why(theWindowed, h.moment(24).Truncate(time.Second).Add(-time.Second), noTick, "is no tick")
	h.why(theWindowed, h.moment(29).Truncate(time.Second), noTick, "is no tick")
}

// fillSlots lets long runs take the slot of each replica that is not reserved. The first of them begin at once, and the
// last one when another job has given its slot back.
func (h *hour) fillSlots() {
	var runs []rig.Request
	h.check(rig.Until(hogTakes*h.unit+patience, "the end of the long runs", func() bool {
		runs = slices.DeleteFunc(h.app.Seen(), func(q rig.Request) bool {
			return !strings.HasPrefix(q.Job, theHog) || q.Ended.IsZero()
		})
		return len(runs) == hogs
	}))
	by := func(at func(q rig.Request) time.Time) (first, last time.Time) {
		slices.SortFunc(runs, func(a, b rig.Request) int { return at(a).Compare(at(b)) })
		return at(runs[0]), at(runs[hogs-1])
	}
	h.full.begins, h.full.holds = by(func(q rig.Request) time.Time { return q.Arrived })
	h.full.ends, h.full.over = by(func(q rig.Request) time.Time { return q.Ended })
	h.betweenTicks()
	told := h.why(theSqueezed, h.full.holds.Truncate(time.Second).Add(time.Second), missed, "was missed")
	h.gives(told, h.full.ends, "slots were taken")
}

// withoutSlot expects of a job without a slot that its ticks are missed, and of the newest one that it is fired late.
// On two replicas, second runs of other jobs may take all slots, too.
func (a *audit) withoutSlot(tick time.Time) []string {
	switch {
	case a.job.name != theSqueezed:
	case a.full.surely(tick) && a.full.surely(tick.Add(time.Second)):
		return []string{missed}
	case a.full.perhaps(tick), a.slots > 0 && !a.free(tick, tick.Add(hair), tick.Add(time.Second-edge), 0):
		return []string{a.plan.ends, missed}
	}
	return nil
}

// stopRedis stops Redis for four units, and lets it go on.
func (h *hour) stopRedis() {
	over := h.record.begin(stalled, theRedis)
	h.stop.begins = time.Now()
	h.store.server.Freeze()
	h.stop.holds = time.Now()
	h.until(44)
	h.stop.ends = time.Now()
	h.store.server.Thaw()
	h.stop.over = time.Now().Add(recovery)
	over()
	h.until(50)
	told := h.why("second", h.stop.ends.Truncate(time.Second).Add(-time.Second), missed, "was missed")
	h.gives(told, h.stop.ends, "Redis did not answer")
}

// lateAtOnce is how many missed ticks are fired late under missed: all; two more or less are a matter of moments.
const lateAtOnce = 101

// withoutRedis expects of ticks that they are missed, unless they are the newest one or, under missed: all, among the
// newest. Redis could not be told how the runs went on that were under way, nor tell of the ticks behind them.
func (a *audit) withoutRedis(tick time.Time) []string {
	own, behind := a.concerned(tick, a.stop.begins, a.stop.holds, func(*run) bool { return true })
	switch {
	case own != nil:
		return []string{a.plan.ends, interrupted, lostLock}
	case behind:
		return []string{a.plan.ends, missed, overlapped}
	}
	if !a.stop.perhaps(tick) {
		return nil
	}
	// ticks that came due before Redis went on, and the first one after that
	newer, next := 0, a.stop.over.Add(time.Hour)
	for _, t := range a.ticks {
		switch {
		case t.After(tick) && t.Before(a.stop.ends):
			newer++
		case t.After(tick) && t.Before(next):
			next = t
		}
	}
	surely := a.stop.surely(tick)
	switch {
	case surely && newer > 0 && !a.job.all, surely && newer >= lateAtOnce+2:
		return []string{missed}
	case surely && a.job.all && newer < lateAtOnce-2,
		surely && newer == 0 && next.After(a.stop.over) && a.job.name != theSkipping:
		return []string{a.plan.ends}
	}
	return []string{a.plan.ends, missed, overlapped}
}

// emptyRedis reads what Redis keeps, and takes it away.
func (h *hour) emptyRedis() {
	ctx := context.Background()
	over := h.record.begin(emptied, theRedis)
	h.empty.begins = time.Now()
	h.check(h.history.read(ctx))
	h.look(ctx)
	h.check(h.store.client().FlushAll(ctx).Err())
	h.empty.holds = time.Now()
	time.Sleep(recovery)
	over()
	h.until(55)
	h.look(ctx) // for the moment from which on the new ledgers have ticks
	h.why("second", h.empty.begins.Truncate(time.Second).Add(-5*time.Second), unknownTick, "before Redis knew the job")
	h.why("second", h.empty.holds.Truncate(time.Second).Add(time.Second), missed, "was missed")
}

// afterTheEmptying expects of ticks until the new ledger begins that they are missed: it begins with them settled.
// Under at-least-once they may be fired.
func (a *audit) afterTheEmptying(tick time.Time) []string {
	switch {
	case !tick.After(a.empty.holds) || tick.After(a.kept[1][a.job.name].since):
	case a.job.again:
		return []string{a.plan.ends, missed}
	default:
		return []string{missed}
	}
	return nil
}

// reloadTable gives all replicas a table in which a job is suspended, another one has a new schedule, one is missing,
// and one is new.
func (h *hour) reloadTable() {
	hash := map[string]string{}
	for _, r := range h.replicas {
		hash[r.name] = h.hash(r)
	}
	h.changed = true
	h.keep("second.yaml")
	h.reload.begins = time.Now()
	for _, r := range h.replicas {
		path := filepath.Join(h.dir, r.name+".yaml")
		h.check(os.WriteFile(path+".new", []byte(h.tableOf(r, r.process.Listen)), 0o600))
		h.check(os.Rename(path+".new", path))
		h.check(r.process.Signal(syscall.SIGHUP))
	}
	for _, r := range h.replicas {
		h.check(rig.Until(patience, r.name+" to have the new table", func() bool { return h.hash(r) != hash[r.name] }))
	}
	h.reload.holds = time.Now()
	// the ledger of a new job has none in its first second
	h.reload.ends, h.reload.over = h.reload.holds, h.reload.holds.Add(time.Second)
	h.until(59)
	old := h.reload.over.Truncate(time.Second).Add(time.Second)
	if old.Second()%2 == 1 {
		old = old.Add(time.Second)
	}
	h.why(theSuspended, old, suspended, "the table suspends the job")
	h.why(theSqueezed, old, noTick, "is no tick")
	h.why(theAdded, h.newest(theAdded).Tick, succeeded, "succeeded")
}

// hash is that of the table that a replica has.
func (h *hour) hash(r *replica) string {
	samples, err := r.process.Metrics()
	h.check(err)
	for _, s := range samples {
		if s.Name == "solotick_table_info" {
			return s.Labels["hash"]
		}
	}
	h.t.Fatalf("%s tells nothing of its table", r.name)
	return ""
}

// runner waits for a run of the long job to begin, and returns the replica that runs it, between two ticks.
func (h *hour) runner() *replica {
	h.t.Helper()
	began, runner := time.Now(), 0
	h.check(rig.Until(patience, "a run of "+theLong, func() bool {
		all := h.app.Seen()
		at := slices.IndexFunc(all, func(q rig.Request) bool {
			return q.Job == theLong && q.Arrived.After(began) && q.Ended.IsZero()
		})
		if at >= 0 {
			runner = slices.IndexFunc(h.replicas, func(r *replica) bool { return r.name == all[at].Replica })
		}
		return at >= 0
	}))
	h.betweenTicks()
	return h.replicas[runner]
}

// last is the newest request of a job by a replica.
func (h *hour) last(job, replica string) rig.Request {
	all := slices.DeleteFunc(h.app.Seen(), func(q rig.Request) bool { return q.Job != job || q.Replica != replica })
	if len(all) == 0 {
		h.t.Fatalf("%s never ran %s", replica, job)
	}
	return all[len(all)-1]
}

// newest is the newest request of a job that is over. It waits for the first one.
func (h *hour) newest(job string) rig.Request {
	h.t.Helper()
	var all []rig.Request
	h.check(rig.Until(patience, "the end of a run of "+job, func() bool {
		all = slices.DeleteFunc(h.app.Seen(), func(q rig.Request) bool { return q.Job != job || q.Ended.IsZero() })
		return len(all) > 0
	}))
	return all[len(all)-1]
}

// unharmed is the newest request of a job that was over two seconds ago, and during which its replica was not struck.
func (h *hour) unharmed(job string) rig.Request {
	all := slices.DeleteFunc(h.app.Seen(), func(q rig.Request) bool {
		return q.Job != job || q.Ended.IsZero() || time.Since(q.Ended) < 2*time.Second ||
			h.record.touched(q.Replica, q.Arrived.Add(-edge), q.Ended.Add(edge))
	})
	if len(all) == 0 {
		h.t.Fatalf("%s never ran without harm", job)
	}
	return all[len(all)-1]
}

// solotick runs a command with the first replica's table.
func (h *hour) solotick(args ...string) []byte {
	h.t.Helper()
	return h.with(filepath.Join(h.dir, h.replicas[0].name+".yaml"), args...)
}

func (h *hour) with(table string, args ...string) []byte {
	h.t.Helper()
	out, err := exec.Command(h.binary, append(args, "-c", table)...).Output()
	if err != nil {
		said := ""
		if exit, ok := err.(*exec.ExitError); ok {
			said = string(exit.Stderr)
		}
		h.t.Fatalf("solotick %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return out
}

// why asks what became of a tick, and wants to hear its fate and these words.
func (h *hour) why(job string, tick time.Time, fate string, words ...string) (w because) {
	h.t.Helper()
	missing := ""
	_ = rig.Until(20*time.Second, "the fate of a tick", func() bool { // a busy machine decides it late
		h.check(json.Unmarshal(h.solotick("why", job, stamp(tick), "-o", "json"), &w))
		missing = unsaid(w.Fate, w.Text, fate, words)
		return missing == ""
	})
	h.t.Logf("solotick why %s %s\n  %s", job, stamp(tick), w.Text)
	if missing != "" {
		h.wrong("why %s %s: %s: %s: %s", job, stamp(tick), w.Fate, w.Text, missing)
	}
	return w
}

// gives demands that no other reason is given for missed ticks than the one that held until an instant. Ticks that are
// missed together have the reason of the last one, and on a busy machine that one was due until after the end. None is
// given if the replica that counts them has let a newer tick go meanwhile: it knows why it did that, and no more.
func (h *hour) gives(told because, ends time.Time, reason string) {
	h.t.Helper()
	if told.Last.Add(time.Second).Before(ends) && strings.Contains(told.Text, "skipped it") &&
		!strings.Contains(told.Text, reason) {
		h.wrong("it does not say %q: %s", reason, told.Text)
	}
}

// because is what `solotick why` tells of a tick.
type because struct {
	Fate, Text string
	Last       time.Time // of several ticks with this fate
}

// unsaid is what is missing in an answer; "" = nothing.
func unsaid(fate, text, wanted string, words []string) string {
	if fate != wanted {
		return "want " + wanted
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			return fmt.Sprintf("it does not say %q", word)
		}
	}
	return ""
}

// clockOf is how `solotick why` writes a time of today.
func clockOf(t time.Time) string { return t.UTC().Format("15:04:05") }

// next are the ticks of each job of a table, after an instant and until another one, as `solotick next` has them.
func (h *hour) next(table string, from, to time.Time) map[string][]time.Time {
	h.t.Helper()
	var rows []struct {
		Job  string
		Tick time.Time
	}
	n := int(to.Sub(from)/time.Second) + 2 // no job has more than one in a second
	out := h.with(table, "next", "-n", fmt.Sprint(n), "--from", from.UTC().Format(time.RFC3339Nano), "-o", "json")
	h.check(json.Unmarshal(out, &rows))
	all := map[string][]time.Time{}
	for _, r := range rows {
		if !r.Tick.After(to) {
			all[r.Job] = append(all[r.Job], r.Tick)
		}
	}
	return all
}
