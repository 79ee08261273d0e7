package service_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

func TestTimerIsFiredOnceAtItsTimeAndItsIDIsKeptForADay(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a, b := w.Replica("a"), w.Replica("b")
		at := w.Now().Add(1500 * time.Millisecond).Truncate(time.Millisecond).UTC()
		a.Sets("Order-7.x", at, "two\nlines\x00of source", true)
		seen, err := b.Service.Look(w.Context(), 10)
		early := w.Now().Before(at) // a busy machine may take longer than that
		if err != nil || early && (len(seen.Due) != 0 || !seen.NextTimer.Equal(at)) {
			w.Fatalf("before its time: %+v, %v", seen, err)
		}
		w.Pass(at.Sub(w.Now()))
		source, got, err := b.Service.Timer(w.Context(), "Order-7.x")
		if string(source) != "two\nlines\x00of source" || !got.Equal(at) || err != nil {
			w.Errorf("%q at %s, %v", source, got, err)
		}
		d := b.Sees()
		if id := service.TimerID(d.Job); id != "Order-7.x" || !service.IsTimer(d.Job) || d.Job != service.TimerJob(id) || d.Kind != "timer" || !d.Tick.Equal(at) {
			w.Errorf("due: %+v", d)
		}
		l, answer := b.Wins(b.ClaimOf(d))
		if a.Loses(a.ClaimOf(d), lock.Gone); l.Token != answer.Token || l.Token == 0 {
			w.Errorf("token %d, %+v", l.Token, answer)
		}
		a.ComesTooLate("Order-7.x")
		w.Must(l.Verify(w.Context()))
		b.Finishes(l, 0)
		w.Must(l.Release(0)(w.Context()))
		if b.Source("Order-7.x") != "" || len(w.Dues()) != 0 || w.Runs() != 0 {
			w.Errorf("after the run: %s", w.Dump())
		}
		a.ComesTooLate("Order-7.x")
		all, err := a.Service.History(w.Context(), "timer:Order-7.x", 10)
		if err != nil || len(all) != 1 || all[0].Kind != "timer" || !all[0].Tick.Equal(at) {
			w.Errorf("history: %+v, %v", all, err)
		}
		if w.Mini == nil {
			return
		}
		w.Pass(24*time.Hour - time.Minute)
		a.ComesTooLate("Order-7.x")
		w.Pass(time.Minute)
		a.Sets("Order-7.x", w.Now(), "anew", true)
	})
}

// A million timers of 64 KiB would be 64 GB in Redis, and when its memory is full nothing is fired.
func TestTheSourcesOfTimersHaveABoundTogether(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a := w.Replica("a")
		bytes := func() string { return w.Admin.HGet(w.Context(), timerLedger, "bytes").Val() }
		later := w.Now().Add(time.Hour)
		a.Sets("x", later, strings.Repeat("x", 1000), true)
		a.Sets("x", later.Add(time.Second), strings.Repeat("x", 600), false)
		a.Sets("y", w.Tick(0), strings.Repeat("y", 50), true)
		if bytes() != "650" {
			w.Errorf("650 bytes are counted as %s", bytes())
		}
		w.Must(w.Admin.HSet(w.Context(), timerLedger, "bytes", service.MaxTimerSources-100).Err())
		if _, err := a.Service.SetTimer(w.Context(), "z", later, []byte(strings.Repeat("z", 101))); !errors.Is(err, service.ErrTooMany) ||
			!strings.HasSuffix(err.Error(), "more than 268435456 bytes together") {
			w.Errorf("a byte too many: %v", err)
		}
		a.Sets("z", later, strings.Repeat("z", 100), true)
		w.Must(w.Admin.HSet(w.Context(), timerLedger, "bytes", 750).Err())
		if ok, err := a.Service.DeleteTimer(w.Context(), "z"); !ok || err != nil || bytes() != "650" {
			w.Errorf("deleted: %t, %v, %s bytes", ok, err, bytes())
		}
		l, _ := a.Wins(a.ClaimOf(a.Sees()))
		a.Finishes(l, 0)
		if bytes() != "600" {
			w.Errorf("fired, and %s bytes are left", bytes())
		}
	})
}

func TestTimerSetAgainChangesNothingAndSetOtherwiseTakesThePlace(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a, b := w.Replica("a"), w.Replica("b")
		at := w.Now().Add(time.Hour)
		a.Sets("x", at, "one", true)
		before := w.Dump()
		if made, err := b.Service.SetTimer(w.Context(), "x", at, []byte("one")); made != service.TimerUnchanged || err != nil {
			w.Errorf("%s, %v", made, err)
		}
		if after := w.Dump(); after != before {
			w.Errorf("it has changed\n%s\nto\n%s", before, after)
		}
		for _, c := range []struct {
			at     time.Time
			source string
		}{{at, "two"}, {at.Add(time.Second), "two"}, {w.Tick(-3), "three"}} {
			b.Sets("x", c.at, c.source, false)
			if ds := w.Dues(); len(ds) != 1 || ds[0].Tick.UnixMilli() != c.at.UnixMilli() || a.Source("x") != c.source {
				w.Errorf("due: %+v, source %q, want %+v", ds, a.Source("x"), c)
			}
		}
		// A replica that saw the one before does not get it.
		d := a.Sees()
		b.Sets("x", at, "four", false)
		a.Loses(a.ClaimOf(d), lock.Gone)
	})
}

// TestEveryTimerThatWaitsIsRead and no other: neither one that a replica deals with or has dealt with, nor one time of a
// schedule.
func TestEveryTimerThatWaitsIsRead(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a := w.Replica("a")
		want := map[string]string{"series": "of many", "once": "two words", "late": "is due", "sprung": "", "behind": ""}
		a.SetsSeries("series", w.Tick(-4), "of many", w.Tick(-4), true)
		a.Springs(w.Now().Add(time.Hour), service.SprungDue)
		a.Wins(a.ClaimOf(a.Sees()))
		for _, id := range []string{"ended", "runs"} {
			a.Sets(id, w.Tick(-3), id, true)
			l, _ := a.Wins(a.ClaimOf(a.Sees()))
			if id == "ended" {
				a.Finishes(l, 0)
			}
		}
		a.Sets("once", w.Now().Add(time.Hour), "two words", true)
		a.Sets("deleted", w.Now().Add(time.Hour), "", true)
		if ok, err := a.Service.DeleteTimer(w.Context(), "deleted"); !ok || err != nil {
			w.Errorf("deleted: %t, %v", ok, err)
		}
		a.SetsSeries("sprung", w.Tick(-2), "", w.Tick(-2), true)
		a.Springs(w.Now().Add(time.Hour), service.SprungDue) // and no replica has claimed its time
		a.Sets("late", w.Tick(-2), "is due", true)
		a.SetsSeries("behind", w.Tick(-2), "", w.Tick(-2), true)
		for i := range 250 { // of more than one page
			want[fmt.Sprint("n", i)] = "n"
			a.Sets(fmt.Sprint("n", i), w.Now().Add(time.Minute), "n", true)
		}
		var others []any
		for i := range 2500 { // more than one step of the scan
			others = append(others, fmt.Sprint("other:", i), "")
		}
		w.Must(w.Admin.MSet(w.Context(), others...).Err())
		read := func() error {
			got := map[string]string{}
			err := a.Service.EachTimer(w.Context(), func(id string, source []byte) error {
				got[id] = string(source)
				return nil
			})
			if err == nil && !maps.Equal(got, want) {
				w.Errorf("got %d: %.300v\nof %s", len(got), got, w.Dump())
			}
			return err
		}
		w.Must(read())
		w.Must(w.Admin.Set(w.Context(), redisworld.TimerKey+"odd", "of a later version", 0).Err())
		if err := read(); !errors.Is(err, service.ErrBadTimer) || !strings.Contains(err.Error(), `"odd"`) {
			w.Errorf("a timer that cannot be read: %v", err)
		}
		w.Must(w.Admin.Del(w.Context(), redisworld.TimerKey+"odd").Err())
		broken := errors.New("the file is full")
		if err := a.Service.EachTimer(w.Context(), func(string, []byte) error { return broken }); !errors.Is(err, broken) {
			w.Errorf("it went on after: %v", err)
		}
	})
}

func TestTheTimersAreReadFromTheMasterOfTheirSlot(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3) // the second one has the slot of service c; a scan of no slot goes to the first
	rdb := lock.NewClient(redis.UniversalOptions{Addrs: c.Addrs()}, 2*time.Second)
	t.Cleanup(func() { _ = rdb.Close() })
	s, err := service.New(rdb, "c", lock.Options{Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := rdb.HSet(t.Context(), "solotick:{c}:job:@timers", "born", 1, "since", 1, "schedule", "", "tick", 1).Err(); err != nil {
		t.Fatal(err)
	}
	if made, err := s.SetTimer(t.Context(), "a", time.Now().Add(time.Hour), []byte("b")); made != service.TimerSet || err != nil {
		t.Fatal(made, err)
	}
	var got []string
	err = s.EachTimer(t.Context(), func(id string, source []byte) error {
		got = append(got, id, string(source))
		return nil
	})
	if !slices.Equal(got, []string{"a", "b"}) || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	owner := c.Owner("{c}")
	for _, m := range c.Masters {
		answer, err := m.Ask("INFO commandstats")
		if scans := strings.Contains(answer, "cmdstat_scan:"); err != nil || scans != (m == owner) {
			t.Errorf("%s was scanned: %v, %v", m.Addr(), scans, err)
		}
	}
}

func TestTheFirstTimerNudgesIfItIsDueSoon(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		first := w.Heard()
		a.Sets("later", w.Now().Add(time.Hour), "", true) // sends nothing, or the next would be heard for it
		a.Sets("soon", w.Now().Add(30*time.Second), "", true)
		first()
		first = w.Heard()
		a.Sets("next", w.Now().Add(31*time.Second), "", true) // likewise: replicas look when the one before comes due
		a.Sets("past", w.Tick(-1000), "", true)
		first()
		if d := a.Sees(); d.Job != "timer:past" {
			w.Errorf("due: %+v", d)
		}
	})
}

func TestDeletedTimerIsNotFiredAndCanBeSetAnew(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a, b := w.Replica("a"), w.Replica("b")
		a.Sets("x", w.Tick(0), "one", true)
		d := b.Sees()
		for _, want := range []bool{true, false} {
			if got, err := a.Service.DeleteTimer(w.Context(), "x"); got != want || err != nil {
				w.Errorf("delete: %t, %v; want %t", got, err, want)
			}
		}
		b.Loses(b.ClaimOf(d), lock.Gone)
		if a.Source("x") != "" || len(w.Dues()) != 0 {
			w.Errorf("left: %s", w.Dump())
		}
		a.Sets("x", w.Tick(-1), "two", true)
		l, _ := b.Wins(b.ClaimOf(b.Sees()))
		b.Finishes(l, 0)
		if got, err := a.Service.DeleteTimer(w.Context(), "never-was"); got || err != nil {
			w.Errorf("delete one that never was: %t, %v", got, err)
		}
	})
}

// TestTimerThatIsHandedOnKeepsItsSource follows one through all the ways in which a run ends that is not the last.
func TestTimerThatIsHandedOnKeepsItsSource(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a, b := w.Replica("a"), w.Replica("b")
		a.Sets("x", w.Tick(0), "source", true)
		between := func(what string) {
			w.Helper()
			a.ComesTooLate("x")
			if timers, err := a.Service.Timers(w.Context(), 10); err != nil || len(timers) != 0 || a.Source("x") != "source" {
				w.Fatalf("%s: timers %+v, %v, source %q", what, timers, err, a.Source("x"))
			}
		}
		l, _ := a.Wins(a.ClaimOf(a.Sees()))
		between("claimed")
		if got, err := l.Handover(w.Context(), 0, lock.Ending{}); got.Verdict != lock.OK || err != nil {
			w.Fatalf("handover: %s, %v", got.Verdict, err)
		}
		between("handed over")
		d := b.Sees()
		if d.Kind != "timer" || d.Rounds != 0 || !slices.Equal(d.Refused, []string{"a"}) {
			w.Errorf("handed over as %+v", d)
		}
		c := b.ClaimOf(d)
		c.Again = true
		l, _ = b.Wins(c)
		if got, err := l.Requeue(w.Context(), lock.Ending{}); got.Verdict != lock.OK || err != nil {
			w.Fatalf("requeue: %s, %v", got.Verdict, err)
		}
		between("requeued")
		c = b.ClaimOf(b.Sees())
		c.Again = true
		b.Wins(c)
		a.Reaps(1)
		between("taken over")
		if d = a.Sees(); d.Attempt != 3 || d.Kind != "takeover" {
			w.Errorf("taken over as %+v", d)
		}
		l, _ = a.Wins(a.ClaimOf(d))
		a.Finishes(l, 0)
		if a.Source("x") != "" {
			w.Error("it was not forgotten")
		}
		a.ComesTooLate("x")
	})
}

func TestTimersOfOneLedgerAreRunsOfTheirOwn(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a, b := w.Replica("a"), w.Replica("b")
		at := w.Tick(0) // the same for all
		for _, id := range []string{"a", "b", "c", "d"} {
			a.Sets(id, at, id, true)
		}
		seen, err := b.Service.Look(w.Context(), 10)
		w.Must(err)
		var leases []*lock.Lease
		var newest int64
		for _, d := range seen.Due {
			l, _ := b.Wins(b.ClaimOf(d))
			if l.Token <= newest {
				w.Errorf("token %d after %d", l.Token, newest)
			}
			leases, newest = append(leases, l), l.Token
		}
		if len(leases) != 4 || w.Runs() != 4 {
			w.Fatalf("%d runs: %s", len(leases), w.Dump())
		}
		if record := w.Admin.HGet(w.Context(), timerLedger, "r:"+leases[0].Run()).Val(); !strings.Contains(record, " Allow ") {
			w.Errorf("recorded as %q", record)
		}
		b.Finishes(leases[1], time.Minute)
		if got, err := leases[2].GiveUp(w.Context(), lock.Ending{}); got.Verdict != lock.OK || err != nil {
			w.Errorf("give up: %s, %v", got.Verdict, err)
		}
		w.Must(leases[3].Verify(w.Context()))
		a.Reaps(2)
		if err := leases[3].Verify(w.Context()); !errors.Is(err, lock.ErrLost) {
			w.Errorf("verified after the takeover: %v", err)
		}
		for _, id := range []string{"a", "b", "c", "d"} {
			a.ComesTooLate(id)
		}
		for _, id := range []string{"a", "b", "c", "d"} {
			if got := a.Source(id); got != "" {
				w.Errorf("source of %s: %q", id, got)
			}
		}
		fields, err := w.Admin.HKeys(w.Context(), timerLedger).Result()
		w.Must(err)
		for _, f := range fields {
			if strings.HasPrefix(f, "r:") || f == "runs" {
				w.Errorf("the ledger keeps %q", f)
			}
		}
	})
}

// TestWhatIsLeftOfALostTimerIsDroppedAlone has another timer of that id set after Redis has lost its data.
func TestWhatIsLeftOfALostTimerIsDroppedAlone(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		a.Sets("x", w.Tick(0), "source", true)
		d := a.Sees()
		w.Must(w.Admin.Del(w.Context(), timerKey+"x", dueTimers).Err())
		a.Sets("x", w.Now().Add(time.Hour), "anew", true)
		w.Must(w.Admin.ZAdd(w.Context(), dueTimers, redis.Z{Score: 1, Member: d.Member()}).Err())
		if ok, _, err := a.Drop(w.Context(), a.Sees(), ""); !ok || err != nil {
			w.Fatalf("drop: %t, %v", ok, err)
		}
		if ds := w.Dues(); len(ds) != 1 || a.Source("x") != "anew" {
			w.Errorf("due: %+v, source %q", ds, a.Source("x"))
		}
	})
}

// TestTimerWhoseRunWasTakenOverIsNotSetForADay has its replica die, one that is not to be run again.
func TestTimerWhoseRunWasTakenOverIsNotSetForADay(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a, b := w.Replica("a"), w.Replica("b")
		a.Sets("x", w.Tick(0), "source", true)
		b.Wins(b.ClaimOf(b.Sees()))
		a.Reaps(1)
		if a.Source("x") != "" {
			w.Error("its source is kept")
		}
		a.ComesTooLate("x")
		w.Pass(24*time.Hour - time.Second)
		a.ComesTooLate("x")
		w.Pass(time.Second)
		a.Sets("x", w.Tick(1), "anew", true)
	})
}

func TestTimersAreListedByTheirTime(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		w.KnowsTimers()
		a := w.Replica("a")
		if timers, err := a.Service.Timers(w.Context(), 10); err != nil || len(timers) != 0 {
			w.Errorf("at first: %+v, %v", timers, err)
		}
		base := w.Now().Truncate(time.Second).UTC()
		var want []string
		for _, n := range []int{150, 7, 300, 1, 42, -5} {
			a.Sets(fmt.Sprint("t", n), base.Add(time.Duration(n)*time.Hour), fmt.Sprint("source ", n), true)
		}
		for _, n := range []int{-5, 1, 7, 42, 150, 300} {
			want = append(want, fmt.Sprint("t", n))
		}
		_, err := a.Service.Trigger(w.Context(), job, uuid.NewString()) // another member, that is no timer
		w.Must(err)
		for _, limit := range []int{10, 6, 2, 0, -1} {
			timers, err := a.Service.Timers(w.Context(), limit)
			w.Must(err)
			var ids []string
			for _, t := range timers {
				ids = append(ids, t.ID)
				if n := strings.TrimPrefix(t.ID, "t"); t.At.Sub(base).Hours() != float64(atoi(w, n)) {
					w.Errorf("%+v", t)
				}
			}
			if !slices.Equal(ids, want[:max(0, min(limit, len(want)))]) {
				w.Errorf("limit %d: %v", limit, ids)
			}
		}
		const many = 250 // more than one page
		for n := range many {
			a.Sets(fmt.Sprintf("many%03d", n), base.Add(time.Duration(1000+n)*time.Hour), "", true)
		}
		timers, err := a.Service.Timers(w.Context(), 1000)
		if err != nil || len(timers) != many+6 || timers[many+5].ID != "many249" {
			w.Errorf("%d timers, %v", len(timers), err)
		}
	})
}

func atoi(w *redisworld.World, text string) (n int) {
	w.Helper()
	_, err := fmt.Sscan(text, &n)
	w.Must(err)
	return n
}

func TestNamesOfTimersAreNotForTables(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a := w.Replica("a")
		for _, name := range []string{"timer:x", service.TimerJobs} {
			c := a.Claim(1)
			c.Job = name
			if l, _, err := a.Asks(c); l != nil || err == nil || errors.Is(err, lock.ErrNoAnswer) {
				w.Errorf("claim of %q: %v", name, err)
			}
		}
		if _, err := a.Service.Trigger(w.Context(), "timer:x", uuid.NewString()); err == nil {
			w.Error("triggered")
		}
		for _, id := range []string{"", "a b", "a\n"} {
			if _, err := a.Service.SetTimer(w.Context(), id, w.Tick(1), nil); err == nil {
				w.Errorf("id %q was taken", id)
			}
		}
		for _, at := range []time.Time{{}, time.UnixMilli(0), time.UnixMilli(-1)} {
			if _, err := a.Service.SetTimer(w.Context(), "x", at, nil); err == nil {
				w.Errorf("time %s was taken", at)
			}
		}
		if _, err := a.Service.SetTimer(w.Context(), "x", w.Tick(1), make([]byte, service.MaxSource+1)); err == nil {
			w.Error("an endless source was taken")
		}
		a.Sets("x", w.Tick(1), strings.Repeat("x", service.MaxSource), true)
	})
}

func TestPausedTimersWait(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a := w.Replica("a")
		w.Must(a.Service.Pause(w.Context(), service.TimerJobs, "", time.Time{}))
		a.Sets("x", w.Tick(0), "", true)
		a.Loses(a.ClaimOf(a.Sees()), lock.Paused)
		_, err := a.Service.Resume(w.Context(), service.TimerJobs)
		w.Must(err)
		a.Wins(a.ClaimOf(a.Sees()))
	})
}

// TestThereAreNoMoreTimersThanAMillion does not fill Redis: that the script heeds the number is for its mutants.
func TestThereAreNoMoreTimersThanAMillion(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		a := w.Replica("a")
		f := a.Proxy.On(lossy.Script(service.TimerSHA), 1, lossy.Copy)
		a.Sets("x", w.Tick(0), "", true)
		if limit := f.Words()[12]; limit != "1000000" { // EVALSHA, hash, 3, three keys, six more
			w.Errorf("it is to hold %s: %v", limit, f.Words())
		}
	})
}
