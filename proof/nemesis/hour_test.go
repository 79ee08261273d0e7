package nemesis

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/results"
	"github.com/solotick/solotick/internal/testing/rig"
)

// TestScriptedHour plays an hour in which everything happens that can become of a tick, and accounts for each tick. By
// default the hour takes a minute; with -for 60m it takes its time.
func TestScriptedHour(t *testing.T) {
	if testing.Short() {
		t.Skip("the scripted hour takes a minute: not with -short")
	}
	t.Parallel()
	redis.SetLogger(quiet{})
	again := fmt.Sprintf("go -C proof test ./nemesis -run TestScriptedHour -v -timeout 3h -for %s", *length)
	t.Log("again: " + again)
	root, err := rig.Root()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "solotick")
	if err := rig.Build(root, rig.Package, binary); err != nil {
		t.Fatal(err)
	}
	h := newHour(t, binary, *length)
	run := results.Of(t, again)
	sum := h.account(h.play())
	run.Add(sum.ticks, "ticks")
	run.Add(sum.fates, "fates")
	run.Add(sum.right, "right")
	run.Details = sum.byName
}

// books are what Redis kept of a job of the hour, before it was emptied and after that, beside what the app got.
type books struct {
	*scene
	plan       hourJob
	course     course
	old, young *ledger
	runs, last int // how many there are; the last tick
}

// newBooks are those of a job that fires each second from noon on, four times.
func newBooks(name, ends string) *books {
	j := job{name: name, every: time.Second}
	b := &books{scene: newScene(j), plan: hourJob{job: j, ends: ends}, old: &ledger{counted: map[string]int{}}, young: &ledger{counted: map[string]int{}}, last: 4}
	b.course.kept = []map[string]*ledger{{name: b.old}, {name: &ledger{}}, {name: b.young}}
	for tick := range 4 {
		b.fires(b.young, float64(tick), ends)
	}
	return b
}

// fires adds a run of 4 ms that ends so.
func (b *books) fires(l *ledger, tick float64, ends string) {
	b.lasts(l, tick, tick+.002, tick+.006, ends)
}

// lasts adds a run from its arrival to its end.
func (b *books) lasts(l *ledger, tick, arrived, ended float64, ends string) {
	q := b.run(tick, arrived, ended, ends)
	b.runs++
	q.Run = fmt.Sprint(b.runs)
	b.history[len(b.history)-1].run = q.Run
	q.Failed, q.Left = ends == failed, ends == timedOut || ends == interrupted
	l.fates = append(l.fates, fate{at: at(ended + .001), what: ends, tick: at(tick), run: q.Run})
	l.counted[ends]++
}

// drop takes a tick's run away, with its fate.
func (b *books) drop(tick float64) {
	of := func(t time.Time) bool { return t.Equal(at(tick)) }
	for _, l := range []*ledger{b.old, b.young} {
		l.fates = slices.DeleteFunc(l.fates, func(f fate) bool {
			if of(f.tick) {
				l.counted[f.what] -= max(f.count, 1)
			}
			return of(f.tick)
		})
	}
	b.history = slices.DeleteFunc(b.history, func(e entry) bool { return of(e.tick) })
	b.requests = slices.DeleteFunc(b.requests, func(q rig.Request) bool { return of(q.Tick) })
}

// row gives ticks a fate that had no run.
func (b *books) row(l *ledger, what string, from, to float64) {
	n := int(to-from) + 1
	l.fates = append(l.fates, fate{at: at(to + 1), what: what, tick: at(to), first: at(from), count: n})
	l.counted[what] += n
}

// without gives ticks such a fate in place of their runs.
func (b *books) without(what string, ticks ...float64) {
	for _, tick := range ticks {
		b.drop(tick)
		b.row(b.young, what, tick, tick)
	}
}

// audited compares the findings with those that are wanted.
func (b *books) audited(t *testing.T, want ...string) sheet {
	t.Helper()
	v := &verdict{byClass: map[string]*tally{}}
	b.plan.job = b.job
	runs := join(b.requests, b.history, at(100))
	a := newAudit(b.trial, v, b.course, b.plan, runs, byReplica(runs))
	a.ticks = b.job.ticks(at(0), at(float64(b.last)))
	if b.job.name == theEvery {
		a.everyReplica(at(3))
	} else {
		a.weigh(at(3))
	}
	found := len(v.findings) == len(want)
	for i := range want {
		found = found && strings.Contains(v.findings[i].what, want[i])
	}
	if !found {
		t.Errorf("found %+v, want %q", v.findings, want)
	}
	return a.sheet
}

func TestATickHasOneFate(t *testing.T) {
	b := newBooks("second", succeeded)
	if s := b.audited(t); s.ticks != 4 || s.fates != 4 || s.right != 4 || s.byName[succeeded] != 4 || s.counted != 4 {
		t.Errorf("got %+v", s)
	}
	b.fires(b.young, 4, succeeded) // after the end, and it has one
	if s := b.audited(t); s.ticks != 5 || s.right != 5 {
		t.Errorf("got %+v", s)
	}
	b.drop(1)
	if s := b.audited(t, "no fate"); s.ticks != 5 || s.right != 4 {
		t.Errorf("got %+v", s)
	}
	b.fires(b.young, 1, succeeded)
	b.lasts(b.young, 1, 1.5, 1.6, succeeded)
	b.audited(t, "2 fates")
	b = newBooks("second", succeeded)
	b.young.counted[succeeded]++
	b.audited(t, "4 ticks are succeeded, and 5 are counted")
	b = newBooks("second", succeeded)
	b.row(b.young, missed, 1, 3)
	b.audited(t, "a row of fates counts other ticks than it has")
	b = newBooks("second", succeeded)
	b.fires(b.young, 1.5, succeeded)
	b.audited(t, "the fate of no tick")
}

func TestAFateIsThatOfTheRun(t *testing.T) {
	for ends, other := range map[string]string{succeeded: failed, failed: declined, declined: timedOut, timedOut: succeeded} {
		b := newBooks("second", ends)
		b.audited(t)
		b.young.fates[2].what = other
		b.young.counted = map[string]int{ends: 3, other: 1}
		b.audited(t, other+", where the script expects "+ends)
		b.plan.ends = other // all the others are wrong then
		b.audited(t, ends+", where", ends+", where", "and the history has another end", ends+", where")
	}
	b := newBooks("second", succeeded)
	b.requests[1].Left = true
	b.audited(t, "the app knows better")
	b.requests[1].Left, b.requests[1].Failed = false, true
	b.audited(t, "the app knows better")
	b.requests = slices.Delete(b.requests, 1, 2)
	b.audited(t, "the app knows better")
	b = newBooks("second", failed)
	b.requests[1].Failed = false
	b.audited(t, "the app knows better")
	b = newBooks("second", timedOut)
	b.requests[1].Left = false
	b.audited(t, "the app knows better")
	b = newBooks("second", succeeded)
	b.young.fates[1].run = b.young.fates[2].run
	b.audited(t, "the fate by a run of another tick")
	b = newBooks("second", succeeded)
	b.run(1, 1.5, 1.6, succeeded)
	b.audited(t, "fired twice")
	b.job.again = true
	b.audited(t)
}

func TestATickIsNotMissedWhileNothingHappens(t *testing.T) {
	for _, what := range []string{missed, overlapped, paused} {
		b := newBooks("second", succeeded)
		b.without(what, 1)
		b.audited(t, what+", where the script expects succeeded (nothing in the way)")
	}
}

func TestATickBehindARunOverlaps(t *testing.T) {
	b := newBooks(theLong, succeeded)
	for _, tick := range []float64{0, 1, 2} {
		b.drop(tick)
	}
	b.lasts(b.young, 0, .002, 2.2, succeeded)
	b.row(b.young, overlapped, 1, 2)
	b.young.fates[len(b.young.fates)-1].behind = b.requests[len(b.requests)-1].Run
	b.audited(t)
	b.young.fates[len(b.young.fates)-1].behind = b.requests[0].Run // of the last tick
	b.audited(t, "no run was in its way", "no run was in its way")
	b.without(missed, 1, 2)
	b.audited(t, "missed, where the script expects overlapped (a run in the way)", "missed, where the script expects succeeded or overlapped")
}

func TestATickThatIsClaimedWhenTheRunInItsWayIsOverIsFired(t *testing.T) {
	b := newBooks(theLong, succeeded)
	b.drop(0)
	b.drop(1)
	b.lasts(b.young, 0, .002, 1.5, succeeded)
	b.lasts(b.young, 1, 1.51, 1.6, succeeded) // on a busy machine
	b.audited(t)
	b = newBooks(theLong, succeeded)
	b.drop(0)
	b.drop(1)
	b.lasts(b.young, 0, .002, 1.5, succeeded)
	b.lasts(b.young, 1, 1.4, 1.6, succeeded)
	b.audited(t, "succeeded, where the script expects overlapped (a run in the way)")
}

func TestARunOnAReplicaThatWasStruckIsInterrupted(t *testing.T) {
	for _, h := range []harm{killed, stopped} {
		b := newBooks(theLong, succeeded)
		b.drop(1)
		b.lasts(b.young, 1, 1.002, 1.5, interrupted)
		b.audited(t, "interrupted, where the script expects succeeded")
		b.strike(h, "r1", 1.2, 1.8)
		b.audited(t)
		b.record.strikes[0].target = "r2"
		b.audited(t, "interrupted, where the script expects succeeded")
		b.record.strikes[0].target = "r1"
		b.drop(1)
		b.lasts(b.young, 1, 1.002, 1.5, succeeded)
		b.requests[len(b.requests)-1].Left = h == killed
		b.audited(t, "succeeded, where the script expects interrupted")
		b.job.again = true
		b.drop(1)
		b.lasts(b.young, 1, 1.002, 1.5, interrupted)
		b.audited(t, "interrupted, where the script expects succeeded")
	}
	b := newBooks(theLong, succeeded)
	b.strike(killed, "r2", 1.2, 1.8) // no run of it
	b.without(missed, 1)
	b.audited(t, "missed, where the script expects succeeded")
}

func TestAPauseHasPausedTicksAlone(t *testing.T) {
	b := newBooks(theHeld, succeeded)
	b.course.pause = stretch{at(.4), at(.5), at(2.5), at(2.6)}
	b.audited(t, "succeeded, where the script expects paused", "succeeded, where the script expects paused")
	b.without(paused, 1, 2)
	b.audited(t)
	b.without(missed, 2)
	b.audited(t, "missed, where the script expects paused (job paused)")
	b.without(paused, 2, 3)
	b.audited(t, "paused, where the script expects succeeded")
	b = newBooks("second", succeeded)
	b.course.pause = stretch{at(.4), at(.5), at(2.5), at(2.6)} // of another job
	b.without(paused, 1)
	b.audited(t, "paused, where the script expects succeeded")
}

func TestWithoutASlotTicksAreMissedUpToTheNewest(t *testing.T) {
	b := newBooks(theSqueezed, succeeded)
	b.course.full = stretch{at(.4), at(.5), at(2.5), at(2.6)}
	b.audited(t, "succeeded, where the script expects missed (slots full)")
	b.without(missed, 1)
	b.audited(t)
	b.without(missed, 2)
	b.audited(t)
	b.without(missed, 3)
	b.audited(t, "missed, where the script expects succeeded")
	b.without(missed, 1)
	b.run(1, 1.002, 1.1, succeeded)
	b.audited(t, "missed, and it was fired", "missed, where")
	b = newBooks(theSqueezed, succeeded)
	b.course.full = stretch{at(.4), at(.5), at(1.5), at(2.1)}
	b.without(overlapped, 2)
	b.audited(t, "overlapped, where the script expects succeeded or missed (slots full)")
	b.drop(1)
	b.lasts(b.young, 1, 1.9, 2.05, succeeded)
	b.audited(t)
}

func TestWithoutRedisTheNewestTickIsFiredLate(t *testing.T) {
	b := newBooks("second", succeeded)
	b.course.stop = stretch{at(.4), at(.5), at(2.5), at(2.6)}
	b.strike(stalled, theRedis, .4, 2.6)
	b.audited(t, "succeeded, where the script expects missed (Redis stopped)")
	b.without(missed, 1)
	b.audited(t)
	b.without(missed, 2)
	b.audited(t, "missed, where the script expects succeeded (Redis stopped)")
	b.course.stop.over = at(4.5) // the next one came before anybody asked
	b.audited(t)
	b = newBooks("all", succeeded)
	b.job.all = true
	b.course.stop = stretch{at(.4), at(.5), at(2.5), at(2.6)}
	b.audited(t)
	b.without(missed, 1)
	b.audited(t, "missed, where the script expects succeeded (Redis stopped)")
}

func TestUnderAllOnlyTheNewestHundredAreFiredLate(t *testing.T) {
	b := newBooks("all", succeeded)
	b.job.all, b.last, b.to = true, 120, at(120)
	for tick := 4.0; tick <= 120; tick++ {
		b.fires(b.young, tick, succeeded)
	}
	b.course.stop = stretch{at(.4), at(.5), at(106.5), at(107)} // 106 ticks
	b.audited(t, "succeeded, where the script expects missed", "succeeded, where the script expects missed", "succeeded, where the script expects missed")
	b.without(missed, 1, 2, 3)
	b.audited(t)
	b.without(missed, 4, 5, 6, 7) // a matter of moments
	b.audited(t)
	b.without(missed, 8)
	b.audited(t, "missed, where the script expects succeeded")
}

func TestARunThatRedisDidNotHearOfMayBeInterrupted(t *testing.T) {
	b := newBooks(theLong, succeeded)
	b.course.stop = stretch{at(.4), at(.5), at(.8), at(.9)}
	b.strike(stalled, theRedis, .4, .9)
	b.drop(0)
	b.lasts(b.young, 0, .002, 1.5, interrupted)
	b.without(missed, 1)
	b.audited(t)
	b.without(missed, 2)
	b.audited(t, "missed, where the script expects succeeded")
	b = newBooks(theLong, succeeded)
	b.course.stop = stretch{at(1.4), at(1.5), at(1.8), at(1.9)}
	b.strike(stalled, theRedis, 1.4, 1.9)
	b.drop(0)
	b.drop(1)
	b.lasts(b.young, 0, .002, 1.2, succeeded) // just before
	b.lasts(b.young, 1, 1.201, 1.7, lostLock)
	b.audited(t)
	b.course.stop, b.record.strikes = stretch{}, nil
	b.audited(t, "lost_lock, where the script expects succeeded")
}

func TestAnEmptyRedisBeginsWithTicksThatWereMissed(t *testing.T) {
	b := newBooks("second", succeeded)
	b.course.empty = stretch{begins: at(1.4), holds: at(1.5)}
	b.course.kept[1]["second"].since = at(2.5)
	for _, tick := range []float64{0, 1} {
		b.drop(tick)
		b.fires(b.old, tick, succeeded)
	}
	b.audited(t, "succeeded, where the script expects missed (Redis emptied)")
	b.without(missed, 2)
	if s := b.audited(t); s.right != 4 || s.counted != 4 {
		t.Errorf("got %+v", s)
	}
	b.row(b.young, missed, 1, 1)
	if s := b.audited(t); s.again != 1 || s.right != 4 || s.counted != 5 {
		t.Errorf("got %+v", s)
	}
	b.row(b.young, missed, 0, 0)
	b.audited(t, "has the fate succeeded, and after Redis was emptied missed")
}

func TestWhatWasInFlightWhenRedisWasEmptiedIsCountedApart(t *testing.T) {
	b := newBooks(theLong, succeeded)
	b.course.empty = stretch{begins: at(2.4), holds: at(2.5)}
	b.strike(emptied, theRedis, 2.4, 2.5)
	b.drop(0)
	b.drop(1)
	b.drop(2)
	b.fires(b.old, 0, succeeded)
	b.run(1, 1.002, 2.45, lostLock)
	if s := b.audited(t); s.emptied != 2 || s.ticks != 2 || s.right != 2 || s.stray != 0 {
		t.Errorf("got %+v", s)
	}
	b.course.empty = stretch{begins: at(2.9), holds: at(2.95)} // it was over
	b.audited(t, "no fate", "no fate")
}

// The machine is busy, so a tick that waited has not begun when the next one has: that one goes first.
func TestATickThatWaitedMayBePassedWhenRedisIsEmptied(t *testing.T) {
	b := newBooks("queue", succeeded)
	b.job.queue = true
	b.course.empty = stretch{begins: at(2.4), holds: at(2.5)}
	b.strike(emptied, theRedis, 2.4, 2.5)
	b.drop(1)
	b.drop(2)
	b.run(2, 2.002, 2.45, lostLock)
	if s := b.audited(t); s.emptied != 2 || s.ticks != 2 || s.right != 2 {
		t.Errorf("got %+v", s)
	}
	b.course.empty = stretch{begins: at(2.9), holds: at(2.95)} // the next one was over
	b.audited(t, "no fate", "no fate")
}

// The hour ends before the run in the way does. The tick that waited has no fate, the one behind it has.
func TestATickThatWaitedWhenTheHourEndedIsNotRunAnyMore(t *testing.T) {
	b := newBooks("queue", succeeded)
	b.job.queue, b.last = true, 5
	b.drop(3)
	b.lasts(b.young, 3, 3.002, 5.1, succeeded)
	b.row(b.young, overlapped, 5, 5) // behind that of second 4
	b.left = at(5.05)
	b.audited(t)
	b.left = at(5.6)
	b.audited(t, "overlapped, and no run was in its way")
}

func TestAChangedScheduleHasNoFatesBesideTheReload(t *testing.T) {
	b := newBooks(theSqueezed, succeeded)
	b.drop(1)
	b.course.reload = stretch{at(.9), at(1.1), at(1.1), at(1.2)}
	if s := b.audited(t); s.reloaded != 1 || s.ticks != 3 {
		t.Errorf("got %+v", s)
	}
	b = newBooks("second", succeeded)
	b.drop(1)
	b.course.reload = stretch{at(.9), at(1.1), at(1.1), at(1.2)}
	b.audited(t, "no fate")
}

func TestEachReplicaFiresForItself(t *testing.T) {
	b := newBooks(theEvery, succeeded)
	b.young.fates, b.young.counted = nil, nil
	b.replicas = []string{"r1"}
	if s := b.audited(t); s.each != 4 {
		t.Errorf("got %+v", s)
	}
	b.fires(&ledger{counted: map[string]int{}}, 1, succeeded)
	b.audited(t, "r1 fired it 2 times")
	b.drop(1)
	b.audited(t, "r1 fired it 0 times")
	b.strike(killed, "r1", .9, 1.1)
	b.audited(t)
	b.young.counted = map[string]int{succeeded: 1}
	b.audited(t, "a fate of a job that every replica fires")
}

func TestAnAnswerSaysItsFateAndItsCause(t *testing.T) {
	if got := unsaid(paused, "paused by anna", paused, []string{"by anna"}); got != "" {
		t.Error(got)
	}
	for _, got := range []string{unsaid(missed, "by anna", paused, nil), unsaid(paused, "paused", paused, []string{"by anna"})} {
		if got == "" {
			t.Error("an answer that does not say it is taken")
		}
	}
}

func TestTheTicksOfTwoTablesAreThoseOfBothOnce(t *testing.T) {
	got := ticksOf([]time.Time{at(0), at(1), at(2)}, []time.Time{at(2), at(3)}, at(0))
	if !slices.Equal(got, []time.Time{at(1), at(2), at(3)}) {
		t.Errorf("got %v", got)
	}
}
