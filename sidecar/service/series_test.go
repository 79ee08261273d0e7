package service_test

import (
	"slices"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

func TestEachTimeOfAScheduleIsATimerOfItsOwn(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a, b := w.Replica("a"), w.Replica("b")
		bytes := func(want string) {
			w.Helper()
			if got := w.Admin.HGet(w.Context(), timerLedger, "bytes").Val(); got != want {
				w.Errorf("%s bytes are counted, want %s", got, want)
			}
		}
		first, second, third := w.Tick(-9), w.Tick(-8), w.Tick(-7)
		a.SetsSeries("x", first, "one\nof two\x00", first, true)
		b.SetsSeries("x", second, "one\nof two\x00", first, false)
		source, at, err := b.Service.Timer(w.Context(), "x")
		if string(source) != "one\nof two\x00" || !at.Equal(first) || err != nil {
			w.Errorf("%q at %s, %v", source, at, err)
		}
		if all, err := a.Service.Timers(w.Context(), 9); err != nil || len(all) != 1 || all[0].ID != "x" || !all[0].At.Equal(first) {
			w.Errorf("timers: %+v, %v", all, err)
		}
		d := b.Sees()
		if d.Kind != lock.Series || d.Job != "timer:x" || !d.Tick.Equal(first) {
			w.Errorf("due: %+v", d)
		}
		read := a.Springs(second, service.SprungDue)
		b.SpringsAs(read, service.SprungGone)
		bytes("22")

		// A change is for the times to come.
		a.SetsSeries("x", third, "two", second, false) // for which it waits, and which has come
		dues := w.Dues()
		i := slices.IndexFunc(dues, func(d lock.Due) bool { return d.Kind == "timer" })
		if i < 0 || dues[i].Member() != read.Due().Member() {
			w.Fatalf("due: %+v, want %q", dues, read.Due().Member())
		}
		if source, _, err := b.Service.Timer(w.Context(), service.TimerID(dues[i].Job)); string(source) != "one\nof two\x00" || err != nil {
			w.Errorf("it is to do %q, %v", source, err)
		}
		if all, err := a.Service.Timers(w.Context(), 9); err != nil || len(all) != 1 || !all[0].At.Equal(second) {
			w.Errorf("timers: %+v, %v", all, err)
		}
		l, _ := b.Wins(b.ClaimOf(dues[i]))
		a.Springs(w.Tick(-6), service.SprungOverlapped)

		// Its run goes on when it is deleted, and leaves nothing.
		if ok, err := a.Service.DeleteTimer(w.Context(), "x"); !ok || err != nil {
			w.Errorf("deleted: %t, %v", ok, err)
		}
		w.Must(l.Verify(w.Context()))
		bytes("11")
		b.Finishes(l, 0)
		bytes("0")
		if n := w.Admin.Exists(w.Context(), redisworld.TimerKey+service.TimerID(dues[i].Job)).Val(); n != 0 || len(w.Dues()) != 0 {
			w.Errorf("after the run: %s", w.Dump())
		}
		// For a day its times are known. Afterwards they have passed.
		a.SetsSeries("x", first, "three", first, true)
		a.Springs(time.Time{}, service.SprungPast)
		if ok, err := a.Service.DeleteTimer(w.Context(), "x"); ok || err != nil {
			w.Errorf("deleted after its end: %t, %v", ok, err)
		}
		bytes("0")
	})
}

// A time that has come is taken back with its timer, while no replica has claimed it, also when the timer has ended.
func TestDeletingASchedulesTimerDeletesItsTimeThatWaits(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a := w.Replica("a")
		for _, next := range []time.Time{w.Tick(3), {}} {
			a.SetsSeries("x", w.Tick(-1), "source", w.Tick(-1), true)
			a.Springs(next, service.SprungDue)
			if ok, err := a.Service.DeleteTimer(w.Context(), "x"); !ok || err != nil {
				w.Errorf("deleted: %t, %v", ok, err)
			}
			if ok, err := a.Service.DeleteTimer(w.Context(), "x"); ok || err != nil {
				w.Errorf("deleted again: %t, %v", ok, err)
			}
			if len(w.Dues()) != 0 || w.Admin.HGet(w.Context(), timerLedger, "bytes").Val() != "0" {
				w.Errorf("it has left %s", w.Dump())
			}
			w.Must(w.Admin.Del(w.Context(), redisworld.TimerKey+"x").Err())
		}
	})
}

// A newer time replaces one that no replica has claimed, and not one that is handed on.
func TestANewerTimeOfAScheduleReplacesOneThatNoReplicaHasClaimed(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a := w.Replica("a")
		a.SetsSeries("x", w.Tick(-9), "source", w.Tick(-9), true)
		a.Springs(w.Tick(-8), service.SprungDue)
		second := a.SpringsSeries(w.Tick(-7), service.SprungReplaced)
		dues := w.Dues()
		i := slices.IndexFunc(dues, func(d lock.Due) bool { return d.Kind == "timer" })
		if len(dues) != 2 || i < 0 || dues[i].Member() != second.Due().Member() {
			w.Fatalf("due: %+v, want %q", dues, second.Due().Member())
		}
		if got := w.Admin.HGet(w.Context(), timerLedger, "bytes").Val(); got != "12" {
			w.Errorf("%s bytes are counted", got)
		}
		entries, err := a.Service.History(w.Context(), "timer:x", 9)
		if err != nil || len(entries) != 1 || entries[0].Outcome != lock.Missed || !entries[0].Tick.Equal(w.Tick(-9)) {
			w.Errorf("the history has %+v, %v", entries, err)
		}
		l, _ := a.Wins(a.ClaimOf(dues[i]))
		_, err = l.Handover(w.Context(), 0, lock.Ending{})
		w.Must(err)
		a.SpringsSeries(w.Tick(-6), service.SprungOverlapped)
		if dues := w.Dues(); len(dues) != 2 {
			w.Errorf("due: %+v", dues)
		}
	})
}

func TestLostRepliesAboutASchedulesTimerChangeNothing(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a, b := w.Replica("a"), w.Replica("b")
		b.SetsSeries("first", w.Tick(-2), "loads the scripts", w.Tick(-2), true)
		b.Springs(time.Time{}, service.SprungDue)
		if ok, err := b.Service.DeleteTimer(w.Context(), "first"); !ok || err != nil {
			w.Errorf("deleted: %t, %v", ok, err)
		}
		later := w.Now().Add(time.Hour).Truncate(time.Second)
		a.Proxy.On(w.Script("timer.lua"), 1, lossy.LoseReply)
		a.SetsSeries("x", w.Tick(-2), "source", w.Tick(-2), true)
		read, err := a.Service.Series(w.Context(), []lock.Due{a.Sees()})
		w.Must(err)
		p := service.Spring{Series: read[0], Tick: w.Tick(-2), Next: later}
		a.Proxy.On(w.Script("spring.lua"), 1, lossy.LoseReply)
		if codes, err := a.Service.Spring(w.Context(), []service.Spring{p}); err == nil {
			w.Errorf("%v, though the reply was lost", codes)
		}
		a.SpringsAs(p, service.SprungGone)
		if d := b.Sees(); d.Member() != p.Due().Member() {
			w.Errorf("due: %+v", d)
		}
		a.Proxy.On(w.Script("timer.lua"), 1, lossy.LoseReply)
		if ok, err := a.Service.DeleteTimer(w.Context(), "x"); !ok || err != nil {
			w.Errorf("deleted: %t, %v", ok, err)
		}
		if len(w.Dues()) != 0 {
			w.Errorf("due: %+v", w.Dues())
		}

		// It has ended, and its last time waits.
		a.SetsSeries("y", w.Tick(-1), "source", w.Tick(-1), true)
		a.Springs(time.Time{}, service.SprungDue)
		a.Proxy.On(w.Script("timer.lua"), 2, lossy.LoseReply)
		if ok, err := a.Service.DeleteTimer(w.Context(), "y"); !ok || err != nil {
			w.Errorf("its last time is deleted: %t, %v", ok, err)
		}
	})
}
