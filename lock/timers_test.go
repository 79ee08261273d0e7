package lock_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/lock"
)

const (
	dueTimers   = "solotick:{svc}:timers:due"
	timerKey    = "solotick:{svc}:timer:" // and its id
	timerLedger = "solotick:{svc}:job:@timers"
)

// knowsTimers gives the timers a ledger.
func (w *world) knowsTimers() {
	w.Helper()
	w.born(lock.TimerJobs)
}

// sets sets a timer, and demands the answer.
func (r *replica) sets(id string, at time.Time, source string, created bool) {
	r.w.Helper()
	if got, err := r.SetTimer(r.w.Context(), id, at, []byte(source)); got != created || err != nil {
		r.w.Fatalf("set %q for %s: created %t, %v; want %t", id, at, got, err, created)
	}
}

// comesTooLate demands that a timer is neither set nor deleted any more.
func (r *replica) comesTooLate(id string) {
	r.w.Helper()
	before := r.w.dump()
	if _, err := r.SetTimer(r.w.Context(), id, r.w.tick(1), []byte("another")); !errors.Is(err, lock.ErrTimerFired) {
		r.w.Errorf("set %q: %v, want that it has fired", id, err)
	}
	if ok, err := r.DeleteTimer(r.w.Context(), id); ok || err != nil {
		r.w.Errorf("delete %q: %t, %v", id, ok, err)
	}
	if after := r.w.dump(); after != before {
		r.w.Errorf("it has changed\n%s\nto\n%s", before, after)
	}
}

// claimOf is the claim of a due member.
func (r *replica) claimOf(d lock.Due) lock.Claim {
	return lock.Claim{Job: d.Job, Tick: d.Tick, TTL: r.w.ttl, Replica: r.name, Run: uuid.NewString(), Kind: d.Kind, Attempt: d.Attempt,
		Rounds: d.Rounds, Deaths: d.Deaths, Refused: d.Refused, Member: d.Member()}
}

// sees is the only member that is due.
func (r *replica) sees() lock.Due {
	r.w.Helper()
	seen, err := r.Look(r.w.Context(), 10)
	if err != nil || len(seen.Due) != 1 {
		r.w.Fatalf("due: %+v, %v", seen, err)
	}
	return seen.Due[0]
}

// source is what Redis keeps of a timer; "" when it is nothing.
func (r *replica) source(id string) string {
	r.w.Helper()
	source, _, err := r.Timer(r.w.Context(), id)
	if err != nil && !errors.Is(err, lock.ErrNoTimer) {
		r.w.Fatal(err)
	}
	return string(source)
}

func TestTimerIsFiredOnceAtItsTimeAndItsIDIsKeptForADay(t *testing.T) {
	onEvery(t, func(w *world) {
		w.knowsTimers()
		a, b := w.replica("a"), w.replica("b")
		at := w.now().Add(1500 * time.Millisecond).Truncate(time.Millisecond).UTC()
		a.sets("Order-7.x", at, "two\nlines\x00of source", true)
		seen, err := b.Look(w.Context(), 10)
		if err != nil || len(seen.Due) != 0 || !seen.NextTimer.Equal(at) {
			w.Fatalf("before its time: %+v, %v", seen, err)
		}
		w.pass(at.Sub(w.now()))
		source, got, err := b.Timer(w.Context(), "Order-7.x")
		if string(source) != "two\nlines\x00of source" || !got.Equal(at) || err != nil {
			w.Errorf("%q at %s, %v", source, got, err)
		}
		d := b.sees()
		if id, ok := lock.TimerID(d.Job); id != "Order-7.x" || !ok || d.Job != lock.TimerJob(id) || d.Kind != "timer" || !d.Tick.Equal(at) {
			w.Errorf("due: %+v", d)
		}
		l, answer := b.wins(b.claimOf(d))
		if a.loses(a.claimOf(d), lock.Gone); l.Token != answer.Token || l.Token == 0 {
			w.Errorf("token %d, %+v", l.Token, answer)
		}
		a.comesTooLate("Order-7.x")
		w.must(l.Verify(w.Context()))
		b.finishes(l, 0)
		w.must(l.Release(w.Context()))
		if b.source("Order-7.x") != "" || len(w.dues()) != 0 || w.runs() != 0 {
			w.Errorf("after the run: %s", w.dump())
		}
		a.comesTooLate("Order-7.x")
		all, err := a.History(w.Context(), "timer:Order-7.x", 10)
		if err != nil || len(all) != 1 || all[0].Kind != "timer" || !all[0].Tick.Equal(at) {
			w.Errorf("history: %+v, %v", all, err)
		}
		if w.mini == nil {
			return
		}
		w.pass(24*time.Hour - time.Millisecond)
		a.comesTooLate("Order-7.x")
		w.pass(time.Millisecond)
		a.sets("Order-7.x", w.now(), "anew", true)
	})
}

// A million timers of 64 KiB would be 64 GB in Redis, and when its memory is full nothing is fired.
func TestTheSourcesOfTimersHaveABoundTogether(t *testing.T) {
	onEvery(t, func(w *world) {
		w.knowsTimers()
		a := w.replica("a")
		bytes := func() string { return w.admin.HGet(w.Context(), timerLedger, "bytes").Val() }
		later := w.now().Add(time.Hour)
		a.sets("x", later, strings.Repeat("x", 1000), true)
		a.sets("x", later.Add(time.Second), strings.Repeat("x", 600), false)
		a.sets("y", w.tick(0), strings.Repeat("y", 50), true)
		if bytes() != "650" {
			w.Errorf("650 bytes are counted as %s", bytes())
		}
		w.must(w.admin.HSet(w.Context(), timerLedger, "bytes", lock.MaxTimerSources-100).Err())
		if _, err := a.SetTimer(w.Context(), "z", later, []byte(strings.Repeat("z", 101))); !errors.Is(err, lock.ErrTooMany) ||
			!strings.HasSuffix(err.Error(), "more than 268435456 bytes together") {
			w.Errorf("a byte too many: %v", err)
		}
		a.sets("z", later, strings.Repeat("z", 100), true)
		w.must(w.admin.HSet(w.Context(), timerLedger, "bytes", 750).Err())
		if ok, err := a.DeleteTimer(w.Context(), "z"); !ok || err != nil || bytes() != "650" {
			w.Errorf("deleted: %t, %v, %s bytes", ok, err, bytes())
		}
		l, _ := a.wins(a.claimOf(a.sees()))
		a.finishes(l, 0)
		if bytes() != "600" {
			w.Errorf("fired, and %s bytes are left", bytes())
		}
	})
}

func TestTimerSetAgainChangesNothingAndSetOtherwiseTakesThePlace(t *testing.T) {
	onEvery(t, func(w *world) {
		w.knowsTimers()
		a, b := w.replica("a"), w.replica("b")
		at := w.now().Add(time.Hour)
		a.sets("x", at, "one", true)
		before := w.dump()
		b.sets("x", at, "one", false)
		if after := w.dump(); after != before {
			w.Errorf("it has changed\n%s\nto\n%s", before, after)
		}
		for _, c := range []struct {
			at     time.Time
			source string
		}{{at, "two"}, {at.Add(time.Second), "two"}, {w.tick(-3), "three"}} {
			b.sets("x", c.at, c.source, false)
			if ds := w.dues(); len(ds) != 1 || ds[0].Tick.UnixMilli() != c.at.UnixMilli() || a.source("x") != c.source {
				w.Errorf("due: %+v, source %q, want %+v", ds, a.source("x"), c)
			}
		}
		// Whoever saw the one before does not get it.
		d := a.sees()
		b.sets("x", at, "four", false)
		a.loses(a.claimOf(d), lock.Gone)
	})
}

func TestTimerThatIsDueSoonNudges(t *testing.T) {
	onEvery(t, func(w *world) {
		a := w.replica("a")
		first := w.heard()
		a.sets("later", w.now().Add(time.Hour), "", true) // sends nothing, or the next would be heard for it
		a.sets("past", w.tick(-1000), "", true)
		first()
		if d := a.sees(); d.Job != "timer:past" {
			w.Errorf("due: %+v", d)
		}
		first = w.heard()
		a.sets("soon", w.now().Add(1900*time.Millisecond), "", true)
		first()
	})
}

func TestDeletedTimerIsNotFiredAndCanBeSetAnew(t *testing.T) {
	onEvery(t, func(w *world) {
		w.knowsTimers()
		a, b := w.replica("a"), w.replica("b")
		a.sets("x", w.tick(0), "one", true)
		d := b.sees()
		for _, want := range []bool{true, false} {
			if got, err := a.DeleteTimer(w.Context(), "x"); got != want || err != nil {
				w.Errorf("delete: %t, %v; want %t", got, err, want)
			}
		}
		b.loses(b.claimOf(d), lock.Gone)
		if a.source("x") != "" || len(w.dues()) != 0 {
			w.Errorf("left: %s", w.dump())
		}
		a.sets("x", w.tick(-1), "two", true)
		l, _ := b.wins(b.claimOf(b.sees()))
		b.finishes(l, 0)
		if got, err := a.DeleteTimer(w.Context(), "never-was"); got || err != nil {
			w.Errorf("delete one that never was: %t, %v", got, err)
		}
	})
}

// TestTimerThatIsHandedOnKeepsItsSource follows one through all the ways in which a run ends that is not the last.
func TestTimerThatIsHandedOnKeepsItsSource(t *testing.T) {
	onEvery(t, func(w *world) {
		w.knowsTimers()
		a, b := w.replica("a"), w.replica("b")
		a.sets("x", w.tick(0), "source", true)
		between := func(what string) {
			w.Helper()
			a.comesTooLate("x")
			if timers, err := a.Timers(w.Context(), 10); err != nil || len(timers) != 0 || a.source("x") != "source" {
				w.Fatalf("%s: timers %+v, %v, source %q", what, timers, err, a.source("x"))
			}
		}
		l, _ := a.wins(a.claimOf(a.sees()))
		between("claimed")
		if got, err := l.Handover(w.Context(), 0, nil); got != lock.OK || err != nil {
			w.Fatalf("handover: %s, %v", got, err)
		}
		between("handed over")
		d := b.sees()
		if d.Kind != "timer" || d.Rounds != 0 || !slices.Equal(d.Refused, []string{"a"}) {
			w.Errorf("handed over as %+v", d)
		}
		c := b.claimOf(d)
		c.Again = true
		l, _ = b.wins(c)
		if got, err := l.Requeue(w.Context(), nil); got != lock.OK || err != nil {
			w.Fatalf("requeue: %s, %v", got, err)
		}
		between("requeued")
		c = b.claimOf(b.sees())
		c.Again = true
		b.wins(c)
		a.reaps(1)
		between("taken over")
		if d = a.sees(); d.Attempt != 3 || d.Kind != "takeover" {
			w.Errorf("taken over as %+v", d)
		}
		l, _ = a.wins(a.claimOf(d))
		a.finishes(l, 0)
		if a.source("x") != "" {
			w.Error("it was not forgotten")
		}
		a.comesTooLate("x")
	})
}

func TestTimersOfOneLedgerAreRunsOfTheirOwn(t *testing.T) {
	onEvery(t, func(w *world) {
		w.knowsTimers()
		a, b := w.replica("a"), w.replica("b")
		at := w.tick(0) // the same for all
		for _, id := range []string{"a", "b", "c", "d"} {
			a.sets(id, at, id, true)
		}
		seen, err := b.Look(w.Context(), 10)
		w.must(err)
		var leases []*lock.Lease
		var newest int64
		for _, d := range seen.Due {
			l, _ := b.wins(b.claimOf(d))
			if l.Token <= newest {
				w.Errorf("token %d after %d", l.Token, newest)
			}
			leases, newest = append(leases, l), l.Token
		}
		if len(leases) != 4 || w.runs() != 4 {
			w.Fatalf("%d runs: %s", len(leases), w.dump())
		}
		if record := w.admin.HGet(w.Context(), timerLedger, "r:"+leases[0].Run()).Val(); !strings.Contains(record, " Allow ") {
			w.Errorf("recorded as %q", record)
		}
		b.finishes(leases[1], time.Minute)
		if got, err := leases[2].GiveUp(w.Context(), nil); got != lock.OK || err != nil {
			w.Errorf("give up: %s, %v", got, err)
		}
		w.must(leases[3].Verify(w.Context()))
		a.reaps(2)
		if err := leases[3].Verify(w.Context()); !errors.Is(err, lock.ErrLost) {
			w.Errorf("verified after the takeover: %v", err)
		}
		for _, id := range []string{"a", "b", "c", "d"} {
			a.comesTooLate(id)
		}
		for _, id := range []string{"a", "b", "c", "d"} {
			if got := a.source(id); got != "" {
				w.Errorf("source of %s: %q", id, got)
			}
		}
		fields, err := w.admin.HKeys(w.Context(), timerLedger).Result()
		w.must(err)
		for _, f := range fields {
			if strings.HasPrefix(f, "r:") || f == "runs" {
				w.Errorf("the ledger keeps %q", f)
			}
		}
	})
}

// TestWhatIsLeftOfALostTimerIsDroppedAlone has another timer of that id set after Redis has lost its data.
func TestWhatIsLeftOfALostTimerIsDroppedAlone(t *testing.T) {
	onEvery(t, func(w *world) {
		a := w.replica("a")
		a.sets("x", w.tick(0), "source", true)
		d := a.sees()
		w.must(w.admin.Del(w.Context(), timerKey+"x", dueTimers).Err())
		a.sets("x", w.now().Add(time.Hour), "anew", true)
		w.must(w.admin.ZAdd(w.Context(), dueTimers, redis.Z{Score: 1, Member: d.Member()}).Err())
		if ok, _, err := a.Drop(w.Context(), a.sees(), false); !ok || err != nil {
			w.Fatalf("drop: %t, %v", ok, err)
		}
		if ds := w.dues(); len(ds) != 1 || a.source("x") != "anew" {
			w.Errorf("due: %+v, source %q", ds, a.source("x"))
		}
	})
}

// TestTimerWhoseRunWasTakenOverIsNotSetForADay has its replica die, one that is not to be run again.
func TestTimerWhoseRunWasTakenOverIsNotSetForADay(t *testing.T) {
	inBubble(t, func(w *world) {
		w.knowsTimers()
		a, b := w.replica("a"), w.replica("b")
		a.sets("x", w.tick(0), "source", true)
		b.wins(b.claimOf(b.sees()))
		a.reaps(1)
		if a.source("x") != "" {
			w.Error("its source is kept")
		}
		a.comesTooLate("x")
		w.pass(24*time.Hour - time.Second)
		a.comesTooLate("x")
		w.pass(time.Second)
		a.sets("x", w.tick(1), "anew", true)
	})
}

func TestTimersAreListedByTheirTime(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		w.knowsTimers()
		a := w.replica("a")
		if timers, err := a.Timers(w.Context(), 10); err != nil || len(timers) != 0 {
			w.Errorf("at first: %+v, %v", timers, err)
		}
		base := w.now().Truncate(time.Second).UTC()
		var want []string
		for _, n := range []int{150, 7, 300, 1, 42, -5} {
			a.sets(fmt.Sprint("t", n), base.Add(time.Duration(n)*time.Hour), fmt.Sprint("source ", n), true)
		}
		for _, n := range []int{-5, 1, 7, 42, 150, 300} {
			want = append(want, fmt.Sprint("t", n))
		}
		_, err := a.Trigger(w.Context(), job, uuid.NewString()) // another member, that is no timer
		w.must(err)
		for _, limit := range []int{10, 6, 2, 0, -1} {
			timers, err := a.Timers(w.Context(), limit)
			w.must(err)
			var ids []string
			for _, t := range timers {
				ids = append(ids, t.ID)
				if n := strings.TrimPrefix(t.ID, "t"); string(t.Source) != "source "+n || t.At.Sub(base).Hours() != float64(atoi(w, n)) {
					w.Errorf("%+v", t)
				}
			}
			if !slices.Equal(ids, want[:max(0, min(limit, len(want)))]) {
				w.Errorf("limit %d: %v", limit, ids)
			}
		}
		const many = 250 // more than one page
		for n := range many {
			a.sets(fmt.Sprintf("many%03d", n), base.Add(time.Duration(1000+n)*time.Hour), "", true)
		}
		timers, err := a.Timers(w.Context(), 1000)
		if err != nil || len(timers) != many+6 || timers[many+5].ID != "many249" {
			w.Errorf("%d timers, %v", len(timers), err)
		}
		if _, err := a.Timers(w.Context(), lock.MaxListed+1); err == nil || !strings.Contains(err.Error(), "more than the 1000") {
			w.Errorf("more than there may be: %v", err)
		}
	})
}

func atoi(w *world, text string) (n int) {
	w.Helper()
	_, err := fmt.Sscan(text, &n)
	w.must(err)
	return n
}

func TestNamesOfTimersAreNotForTables(t *testing.T) {
	onEvery(t, func(w *world) {
		w.knowsTimers()
		a := w.replica("a")
		for _, name := range []string{"timer:x", lock.TimerJobs} {
			c := a.claim(1)
			c.Job = name
			if l, _, err := a.acquire(c); l != nil || err == nil || errors.Is(err, lock.ErrNoAnswer) {
				w.Errorf("claim of %q: %v", name, err)
			}
		}
		if _, err := a.Trigger(w.Context(), "timer:x", uuid.NewString()); err == nil {
			w.Error("triggered")
		}
		for _, id := range []string{"", "a b", "a\n"} {
			if _, err := a.SetTimer(w.Context(), id, w.tick(1), nil); err == nil {
				w.Errorf("id %q was taken", id)
			}
		}
		for _, at := range []time.Time{{}, time.UnixMilli(0), time.UnixMilli(-1)} {
			if _, err := a.SetTimer(w.Context(), "x", at, nil); err == nil {
				w.Errorf("time %s was taken", at)
			}
		}
		if _, err := a.SetTimer(w.Context(), "x", w.tick(1), make([]byte, lock.MaxSource+1)); err == nil {
			w.Error("an endless source was taken")
		}
		a.sets("x", w.tick(1), strings.Repeat("x", lock.MaxSource), true)
	})
}

func TestPausedTimersWait(t *testing.T) {
	onEvery(t, func(w *world) {
		w.knowsTimers()
		a := w.replica("a")
		w.must(a.Pause(w.Context(), lock.TimerJobs, "", time.Time{}))
		a.sets("x", w.tick(0), "", true)
		a.loses(a.claimOf(a.sees()), lock.Paused)
		_, err := a.Resume(w.Context(), lock.TimerJobs)
		w.must(err)
		a.wins(a.claimOf(a.sees()))
	})
}

// TestThereAreNoMoreTimersThanAMillion does not fill Redis: that the script heeds the number is for its mutants.
func TestThereAreNoMoreTimersThanAMillion(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.replica("a")
		f := a.proxy.On(lossy.Script(lock.TimerSHA), 1, lossy.Copy)
		a.sets("x", w.tick(0), "", true)
		if limit := f.Words()[12]; limit != "1000000" { // EVALSHA, hash, 3, three keys, six more
			w.Errorf("it is to hold %s: %v", limit, f.Words())
		}
	})
}
