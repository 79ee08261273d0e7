package nemesis

import (
	"slices"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// kept is a scene in which Redis has kept the fates of the job's ticks.
type kept struct {
	*scene
	ledger *ledger
}

// keeps is a job that fires each second from noon on, four times, with all its fates.
func keeps(j job) *kept {
	k := &kept{newScene(j), &ledger{newest: at(3), counted: map[string]int{}}}
	k.ledgers, k.left = map[string]*ledger{j.name: k.ledger}, at(4.5)
	for tick := range 4 {
		k.ends(float64(tick), float64(tick)+.002, float64(tick)+.004, succeeded)
	}
	return k
}

// ends is a run that was its tick's last.
func (k *kept) ends(tick, arrived, ended float64, outcome string) *rig.Request {
	q := k.run(tick, arrived, ended, outcome)
	k.ledger.fates = append(k.ledger.fates, fate{at: at(ended + .001), what: outcome, tick: at(tick), run: q.Run})
	k.ledger.counted[outcome]++
	return q
}

// row is a fate of ticks without a run.
func (k *kept) row(what string, from, to float64) *fate {
	n := int(to-from) + 1
	k.ledger.fates = append(k.ledger.fates, fate{at: at(to + 1), what: what, tick: at(to), first: at(from), count: n})
	k.ledger.counted[what] += n
	return &k.ledger.fates[len(k.ledger.fates)-1]
}

// unfired takes the run of a tick away, with its fate.
func (k *kept) unfired(tick float64) {
	k.requests = slices.DeleteFunc(k.requests, func(q rig.Request) bool { return q.Tick.Equal(at(tick)) })
	k.history = slices.DeleteFunc(k.history, func(e entry) bool { return e.tick.Equal(at(tick)) })
	k.forget(tick)
}

// forget takes the fate of a tick away that had a run.
func (k *kept) forget(tick float64) {
	k.ledger.fates = slices.DeleteFunc(k.ledger.fates, func(f fate) bool {
		if f.tick.Equal(at(tick)) {
			k.ledger.counted[f.what]--
		}
		return f.tick.Equal(at(tick))
	})
}

// says is another fate of a tick that had a run.
func (k *kept) says(tick float64, what string) *fate {
	i := slices.IndexFunc(k.ledger.fates, func(f fate) bool { return f.tick.Equal(at(tick)) })
	f := &k.ledger.fates[i]
	k.ledger.counted[f.what]--
	k.ledger.counted[what]++
	f.what = what
	return f
}

// weighed compares the findings about fates with those that are wanted, and returns the account.
func (k *kept) weighed(t *testing.T, want ...string) account {
	t.Helper()
	v := &verdict{byClass: map[string]*tally{}, fates: account{byName: map[string]int{}}}
	c := &court{trial: k.trial, verdict: v, job: k.job, calls: k.requests, queries: k.questions,
		runs: join(k.requests, k.history, at(100)), byTick: map[time.Time][]*run{}}
	for _, r := range c.runs {
		c.byTick[r.tick] = append(c.byTick[r.tick], r)
	}
	c.weigh()
	var got []string
	for _, f := range v.findings {
		got = append(got, f.what)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	return v.fates
}

func TestEachTickHasTheFateOfItsRun(t *testing.T) {
	k := keeps(brief)
	if got := k.weighed(t); got.ticks != 4 || got.right != 4 || got.wrong != 0 || got.byName[succeeded] != 4 {
		t.Errorf("got %+v", got)
	}
	k.forget(1)
	if got := k.weighed(t, "no fate"); got.ticks != 4 || got.right != 3 || got.wrong != 1 {
		t.Errorf("got %+v", got)
	}
	k = keeps(brief)
	k.ends(1, 1.5, 1.6, succeeded)
	k.weighed(t, "more than one fate")
	k = keeps(brief)
	k.ledger.fates = append(k.ledger.fates, fate{what: succeeded, tick: at(1.5), run: "x"})
	k.ledger.counted[succeeded]++
	k.weighed(t, "the fate of no tick")
	k = keeps(brief)
	k.ledger.counted[succeeded]++
	k.weighed(t, "4 ticks are succeeded, and 5 are counted")
	k = keeps(brief)
	k.ledger.fates[1].run = k.ledger.fates[2].run
	k.weighed(t, "its run succeeded, and its fate is succeeded")
}

func TestAFateSaysHowItsRunEnded(t *testing.T) {
	for _, other := range []string{failed, interrupted, lostLock, notStarted, "on_the_moon"} {
		k := keeps(brief)
		k.says(1, other)
		k.weighed(t, "its run succeeded, and its fate is "+other)
	}
	k := keeps(brief)
	k.requests[1].Left = true // so nothing is sure
	k.weighed(t, "succeeded, and the app did not finish it")
	k.says(1, failed)
	k.weighed(t, "failed, and the history has another end of the run")
	k.history[1].outcome = failed
	k.weighed(t)
	k.says(1, lostLock)
	k.history[1].outcome = lostLock
	k.weighed(t, "lost_lock, and nothing had happened")
	k.strike(stalled, theRedis, .5, 1.5)
	k.weighed(t)
	k.says(1, notStarted)
	k.history[1].outcome = notStarted
	k.weighed(t, "not started, and it was")
	k.says(1, "on_the_moon")
	k.history[1].outcome = "on_the_moon"
	k.weighed(t, "on_the_moon, which nobody did")
}

func TestAFateIsThatOfTheLastRun(t *testing.T) {
	k := keeps(again)
	k.history[1].outcome, k.requests[1].Left = interrupted, true
	k.says(1, interrupted)
	k.strike(killed, "r1", 1.001, 1.1)
	k.weighed(t)
	q := k.run(1, 1.5, 1.6, succeeded)
	q.Attempt, q.Kind = 2, "takeover"
	k.history[len(k.history)-1].attempt, k.history[len(k.history)-1].kind = 2, "takeover"
	k.weighed(t, "its run succeeded, and its fate is interrupted")
}

func TestARowOfTicksHasOneFateForEach(t *testing.T) {
	k := keeps(brief)
	k.strike(stalled, theRedis, .5, 2.9)
	k.unfired(1)
	k.unfired(2)
	k.row(missed, 1, 2)
	if got := k.weighed(t); got.right != 4 || got.byName[missed] != 2 {
		t.Errorf("got %+v", got)
	}
	k.ledger.fates[2].count, k.ledger.counted[missed] = 3, 3
	k.weighed(t, "a row of fates counts other ticks than it has")
	k = keeps(brief)
	k.row(missed, 1, 1)
	k.weighed(t, "a row of fates counts other ticks than it has")
	k = keeps(brief)
	k.unfired(1)
	k.row("on_the_moon", 1, 1)
	k.weighed(t, "on_the_moon, which nobody did")
}

func TestOverlappedIsATickThatARunWasInTheWayOf(t *testing.T) {
	k := keeps(slow)
	for tick := range 4 {
		k.unfired(float64(tick))
	}
	first := k.ends(0, .002, 1.5, succeeded)
	k.ends(2, 2.002, 3.5, succeeded)
	k.row(overlapped, 1, 1).behind = first.Run
	k.row(overlapped, 3, 3)
	k.weighed(t)
	k.ledger.fates[2].behind = k.requests[1].Run // the next one
	k.weighed(t, "overlapped, and no run was in its way")
	k.ledger.fates[2].what, k.ledger.counted = missed, map[string]int{succeeded: 2, overlapped: 1, missed: 1}
	k.weighed(t, "missed, and a run was in its way")
	k = keeps(brief)
	k.unfired(1)
	k.row(overlapped, 1, 1)
	k.weighed(t, "overlapped, and no run was in its way")
	k = keeps(brief)
	k.forget(1)
	k.row(overlapped, 1, 1)
	k.weighed(t, "its run succeeded, and its fate is overlapped")
}

func TestInterruptedWithoutARunOfItsOwnWasNotRunAgain(t *testing.T) {
	k := keeps(again)
	k.strike(killed, "r1", 1.001, 1.1)
	k.history[1].outcome, k.requests[1].Left = interrupted, true
	k.forget(1)
	k.row(interrupted, 1, 1)
	k.weighed(t)
	k.job.again = false
	k.weighed(t, "interrupted, and no run was")
}

func TestAnEndThatRedisHeardLateIsBesideTheTakeover(t *testing.T) {
	k := keeps(brief)
	k.strike(stopped, "r1", 1.001, 1.1)
	k.history[1].outcome = interrupted
	k.weighed(t) // the app finished it, and its replica said so only then
	k.record.strikes = nil
	k.weighed(t)
	k.requests[1].Failed = true
	k.weighed(t, "succeeded, and the history has another end of the run")
}

func TestATickThatWasMissedLastIsNotCountedYet(t *testing.T) {
	lately := func(j job) *kept {
		k := keeps(j)
		k.unfired(3)
		k.ledger.newest = at(2)
		k.strike(stalled, theRedis, 2.5, 5)
		k.left = at(3.5)
		return k
	}
	if got := lately(brief).weighed(t); got.excused != 1 || got.right != 3 {
		t.Errorf("got %+v", got)
	}
	k := lately(brief)
	k.left = at(4.5) // a newer one came due
	k.weighed(t, "no fate")
	k = lately(brief)
	k.ledger.newest = at(3) // and is decided
	k.weighed(t, "no fate")
	k.ledger.gaps = []gap{{at(2), at(3.001)}}
	k.weighed(t)
	k = lately(brief)
	k.run(3, 3.002, 3.004, succeeded)
	k.weighed(t, "no fate")
}

func TestATickWhoseRunHadNeverBegunMayHaveTwoFates(t *testing.T) {
	twice := func() *kept {
		k := keeps(again)
		k.strike(stopped, "r1", .9, 1.4)
		k.says(1, interrupted)
		k.history[1].outcome = interrupted
		k.ends(1, 1.5, 1.6, succeeded)
		k.ledger.counted[succeeded]--                // it was counted with the first one
		k.requests = slices.Delete(k.requests, 1, 2) // which never began
		return k
	}
	if got := twice().weighed(t); got.excused != 1 {
		t.Errorf("got %+v", got)
	}
	k := twice()
	k.record.strikes[0].target = "r2"
	k.weighed(t, "more than one fate", "4 ticks are succeeded, and 3 are counted")
}

func TestOnlyARedisThatForgetsMayForgetFates(t *testing.T) {
	k := keeps(brief)
	k.strike(away, theRedis, 1.5, 1.9)
	k.forget(1)
	k.weighed(t, "no fate")
	k.memory = forgets
	if got := k.weighed(t); got.excused != 1 {
		t.Errorf("got %+v", got)
	}
	k.record.strikes = nil
	k.weighed(t, "no fate")
}

func TestTheTicksOfALedgerBeginWithIt(t *testing.T) {
	k := keeps(brief)
	k.forget(0)
	k.ledger.since = at(0)
	if got := k.weighed(t, "no fate"); got.ticks != 4 { // it is among those that count
		t.Errorf("got %+v", got)
	}
	k = keeps(brief)
	k.ledger.since, k.from = at(-1), at(1)
	if got := k.weighed(t); got.ticks != 4 { // those before them have fates, too
		t.Errorf("got %+v", got)
	}
}

func TestWhatRedisKeepsOfAJobIsRead(t *testing.T) {
	l, err := parseLedger(map[string]string{"since": "1000", "tick": "5000", "gaps": "2000-3000 4000-5000:paused", "fate:missed": "3"}, nil)
	if err != nil || !l.since.Equal(time.UnixMilli(1000)) || !l.newest.Equal(time.UnixMilli(5000)) || len(l.gaps) != 2 || l.counted["missed"] != 3 {
		t.Errorf("got %+v, %v", l, err)
	}
	for _, fields := range []map[string]string{{"since": "x"}, {"gaps": "1-x"}, {"fate:missed": "many"}} {
		if _, err := parseLedger(fields, nil); err == nil {
			t.Errorf("%v is read", fields)
		}
	}
}

func TestAnAppThatStoodStillMayHaveFinishedWhatIsInterrupted(t *testing.T) {
	async := brief
	async.async, async.ttl = true, asyncLease
	k := keeps(async)
	k.says(1, interrupted)
	k.history[1].outcome = interrupted
	k.requests[1].Work = rig.Work{Heartbeat: time.Second, Late: 300 * time.Millisecond}
	k.weighed(t, "interrupted, and the app finished it")
	k.requests[1].Work.Late = 400 * time.Millisecond
	k.weighed(t)
}

func TestAFateMayBeTheLastThingThatAStrikeLeftTrue(t *testing.T) {
	for what, found := range map[string]string{failed: "failed, and the app finished it", interrupted: "interrupted, and the app finished it"} {
		k := keeps(brief)
		k.says(1, what)
		k.history[1].outcome = what
		k.strike(stopped, "r1", 1.0055, 1.1) // after the fate was written: so it is no reason
		k.weighed(t, found)
		k.record.strikes[0].from = at(1.001)
		k.weighed(t)
	}
	k := keeps(brief)
	k.strike(stopped, "r1", 1.001, 1.1)
	k.forget(1)
	k.row(missed, 1, 1)
	k.weighed(t, "missed, and it was fired")
	k = keeps(brief)
	k.strike(stopped, "r1", 1.001, 1.1)
	k.ledger.fates[1].run = k.ledger.fates[2].run
	k.weighed(t, "the fate by a run of another tick")
	k = keeps(brief)
	k.strike(stopped, "r1", 1.001, 1.1)
	k.history[1].outcome = failed
	k.weighed(t, "succeeded, and the history has another end of the run")
	k = keeps(again)
	k.strike(stopped, "r1", .9, 1.4)
	k.says(1, interrupted)
	k.history[1].outcome = interrupted
	k.run(1, 1.5, 1.6, interrupted) // which has no fate
	k.weighed(t, "its fate is older than its last run")
}

func TestNeitherASecondFailureNorARunThatBeganExcusesTwoFates(t *testing.T) {
	for _, c := range []struct {
		first string
		began bool
	}{{failed, false}, {interrupted, true}} {
		k := keeps(again)
		k.strike(stopped, "r1", .9, 1.4)
		k.says(1, c.first)
		k.history[1].outcome = c.first
		k.ends(1, 1.5, 1.6, succeeded)
		if !c.began {
			k.requests = slices.Delete(k.requests, 1, 2)
		}
		k.weighed(t, "more than one fate")
	}
}

func TestARowThatSaysInterruptedIsOfARunThatWas(t *testing.T) {
	k := keeps(again)
	k.strike(stopped, "r1", 1.001, 1.1)
	k.history[1].outcome, k.requests[1].Failed = failed, true
	k.forget(1)
	k.row(interrupted, 1, 1)
	k.weighed(t, "interrupted, and no run was")
}

func TestTicksAfterThoseThatCountAreJudgedIfTheyHaveAFate(t *testing.T) {
	k := keeps(brief)
	k.ends(5, 5.002, 5.004, succeeded)
	if got := k.weighed(t); got.ticks != 5 || got.right != 5 {
		t.Errorf("got %+v", got)
	}
	k.says(5, "on_the_moon")
	k.weighed(t, "its run succeeded, and its fate is on_the_moon")
}

func TestTheShortestRowIsTheTicksOwn(t *testing.T) {
	k := keeps(brief)
	k.strike(stalled, theRedis, .5, 2.9)
	k.unfired(1)
	k.unfired(2)
	k.row(missed, 1, 1).first = at(.5)
	k.ledger.fates[2].tick = at(2)
	k.ledger.fates[2].count = 1 // it is of the first one alone: the other one lies in a shorter row
	k.row(missed, 2, 2)
	k.weighed(t, "the fate of no tick")
	k.ledger.fates[2].first = at(1)
	k.weighed(t)
	slices.Reverse(k.ledger.fates) // whichever is read first
	k.weighed(t)
}

func TestOnlyARedisThatForgetsMayCountARowWrongly(t *testing.T) {
	k := keeps(brief)
	k.strike(away, theRedis, .5, 2.9)
	k.unfired(1)
	k.unfired(2)
	k.row(missed, 1, 2).count = 3
	k.ledger.counted[missed] = 3
	k.weighed(t, "a row of fates counts other ticks than it has")
	k.memory = forgets
	k.weighed(t)
	k.record.strikes[0].harm = stalled
	k.weighed(t, "a row of fates counts other ticks than it has")
}

func TestACounterWithoutAnEntryIsFound(t *testing.T) {
	k := keeps(brief)
	k.ledger.counted[paused] = 2
	k.weighed(t, "0 ticks are paused, and 2 are counted")
}

func TestTwoFatesAreNoExcuseForAWrongOne(t *testing.T) {
	k := keeps(again)
	k.strike(stopped, "r1", .9, 1.4)
	k.says(1, interrupted)
	k.history[1].outcome = interrupted
	k.ends(1, 1.5, 1.6, succeeded)
	k.ledger.counted[succeeded]--
	k.requests = slices.Delete(k.requests, 1, 2)
	last := &k.ledger.fates[len(k.ledger.fates)-1]
	last.what, k.ledger.counted = failed, map[string]int{succeeded: 3, interrupted: 1}
	k.weighed(t, "more than one fate")
}

func TestAGapHoldsOnlyTheTicksBetweenItsBounds(t *testing.T) {
	k := keeps(brief)
	k.unfired(3)
	k.strike(stalled, theRedis, 2.5, 5)
	k.left = at(3.5)
	k.ledger.gaps = []gap{{at(2), at(3)}}
	k.weighed(t, "no fate")
	k.ledger.gaps = []gap{{at(3), at(4)}}
	k.weighed(t, "no fate")
	k.ledger.gaps = []gap{{at(2), at(3.001)}}
	k.weighed(t)
}

func TestOnlyASuccessMayBeSaidAfterTheTakeover(t *testing.T) {
	k := keeps(brief)
	k.strike(stopped, "r1", 1.001, 1.1)
	k.history[1].outcome = interrupted
	k.says(1, declined)
	k.weighed(t, "declined, and the history has another end of the run")
}

func TestATickIsNotSurelyOverlapped(t *testing.T) {
	behind := func(j job) *kept {
		k := keeps(j)
		for tick := range 4 {
			k.unfired(float64(tick))
		}
		k.ends(0, .002, 1.8, succeeded)
		k.row(missed, 1, 1)
		k.ends(2, 2.002, 2.1, succeeded)
		k.ends(3, 3.002, 3.1, succeeded)
		return k
	}
	behind(slow).weighed(t, "missed, and a run was in its way")
	beside, queued := slow, slow
	beside.allow, queued.queue = true, true
	behind(beside).weighed(t)
	behind(queued).weighed(t)
	k := behind(slow)
	k.strike(stopped, "r1", 1.1, 1.2)
	k.weighed(t)
}

func TestATickThatWaitedWhenTheReplicasEndedIsNotRunAnyMore(t *testing.T) {
	queued := slow
	queued.queue = true
	k := &kept{newScene(queued), &ledger{newest: at(3), counted: map[string]int{}}}
	k.ledgers, k.to, k.left = map[string]*ledger{queued.name: k.ledger}, at(0), at(3.05)
	k.ends(0, .002, 3.1, succeeded)
	k.row(overlapped, 2, 3) // behind the tick of second 1, which waited
	k.weighed(t)
	k.left = at(4.5)
	k.weighed(t, "overlapped, and no run was in its way", "overlapped, and no run was in its way")
}
