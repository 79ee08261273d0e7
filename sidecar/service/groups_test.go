package service_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// holds writes timers as they are in Redis after they were set, each for its time in milliseconds.
func holds(w *redisworld.World, id string, at ...int64) {
	w.Helper()
	var members []redis.Z
	var entries []any
	for i, ms := range at {
		members = append(members, redis.Z{Score: float64(ms), Member: fmt.Sprintf("%d timer:%s%d timer 1 0 0 q", ms, id, i)})
		entries = append(entries, timerKey+id+fmt.Sprint(i), fmt.Sprintf("%d q 1 {}", ms))
	}
	w.Must(w.Admin.ZAdd(w.Context(), dueTimers, members...).Err())
	w.Must(w.Admin.MSet(w.Context(), entries...).Err())
}

// times are so many times, in milliseconds, from one on, that many apart.
func times(n int, from, step int64) (all []int64) {
	for i := range n {
		all = append(all, from+int64(i)*step)
	}
	return all
}

// TestTheFirstTimersAreFoundBehindAnyNumberOfOthers: of times of schedules, and of timers that were handed on.
func TestTheFirstTimersAreFoundBehindAnyNumberOfOthers(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a := w.Replica("a")
		holds(w, "x@", times(1500, 1, 1)...)
		for i := range 700 {
			w.Must(w.Admin.ZAdd(w.Context(), dueTimers, redis.Z{Score: 9, Member: fmt.Sprintf("9 timer:h%d takeover 2 0 1 q", i)}).Err())
		}
		holds(w, "n", times(1000, 10_000, 1)...)
		a.Sets("last", w.Now().Add(time.Hour), "", true)
		far := redis.Z{Score: 9e14, Member: "900000000000000 timer:n0 timer 1 0 0 p"} // what is left of an older one
		w.Must(w.Admin.ZAdd(w.Context(), dueTimers, far).Err())
		reads := a.Proxy.Count(lossy.Command("mget"))
		for _, limit := range []int{1, 100, 1000, 1001, 5000} {
			timers, err := a.Service.Timers(w.Context(), limit)
			if err != nil || len(timers) != min(limit, 1001) || timers[0].ID != "n0" || limit == 1 && reads.N() > 10 {
				w.Fatalf("limit %d: %d timers, %v, in %d steps", limit, len(timers), err, reads.N())
			}
			for i, t := range timers[:min(limit, 1000)] {
				if t.ID != fmt.Sprint("n", i) {
					w.Fatalf("%d is %+v", i, t)
				}
			}
		}
	})
}

// TestATimerThatIsReplacedMeanwhileIsListedOnce has it be replaced between two steps.
func TestATimerThatIsReplacedMeanwhileIsListedOnce(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a, b := w.Replica("a"), w.Replica("b")
		holds(w, "n", times(1200, 10_000, 1)...)
		later := w.Now().Add(time.Hour).Truncate(time.Second).UTC()
		free := make(chan struct{})
		f := a.Proxy.On(lossy.Command("mget"), 10, lossy.Hold(free))
		var looking sync.WaitGroup
		looking.Go(func() {
			timers, err := a.Service.Timers(w.Context(), 5000)
			if n := len(timers); err != nil || n < 1199 || timers[0].ID != "n1" || timers[n-1] != (service.TimerState{ID: "n0", At: later}) {
				w.Errorf("%d timers, %v", n, err)
			}
		})
		<-f.Struck()
		b.Sets("n0", later, "{}", false)
		close(free)
		looking.Wait()
	})
}

func TestTheTimersOfAGroupAreListedByTheirTime(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a := w.Replica("a")
		base := w.Now().Add(time.Hour).Truncate(time.Second).UTC()
		for _, id := range []string{"g", "gg.x", "g-x.y", "x.g.y", "G.x"} { // of other groups, or none
			a.Sets(id, base, "", true)
		}
		a.Sets("g.runs", w.Tick(-2), "", true)
		a.Wins(a.ClaimOf(a.Sees()))
		a.Sets("g.handed", w.Tick(-2), "", true)
		l, _ := a.Wins(a.ClaimOf(a.Sees()))
		_, err := l.Handover(w.Context(), time.Minute, lock.Ending{})
		w.Must(err)
		a.Sets("g.x", base.Add(3*time.Hour), `{"schedule":"hunter2"}`, true)
		a.Sets("g..b", base.Add(time.Hour), "", true)
		a.Sets("g.a", base.Add(time.Hour), "", true)
		a.SetsSeries("g.each", w.Tick(-1), `{"schedule":"0 9 * * *","timeZone":"Asia/Tokyo","http":{"body":"hunter2"}}`, w.Tick(-1), true)
		a.SpringsSeries(base.Add(2*time.Hour), service.SprungDue)
		many := base.Add(9 * time.Hour)
		a.SetsSeries("g.many", many, `{"schedule":["@daily","0 9 * * *"],"http":{"body":"hunter2"}}`, many, true)
		a.SetsSeries("g.odd", many.Add(1), "of a later version", many, true)
		want := []service.TimerState{
			{ID: "g..b", At: base.Add(time.Hour)}, {ID: "g.a", At: base.Add(time.Hour)}, {"g.each", base.Add(2 * time.Hour), "0 9 * * *", "Asia/Tokyo"},
			{ID: "g.x", At: base.Add(3 * time.Hour)}, {"g.many", many, "@daily; 0 9 * * *", "UTC"}, {"g.odd", many, "", "UTC"},
		}
		for _, limit := range []int{10, 6, 3, 1, 0, -1} {
			timers, err := a.Service.GroupTimers(w.Context(), "g", limit)
			if err != nil || !slices.Equal(timers, want[:max(0, min(limit, len(want)))]) {
				w.Errorf("limit %d: %+v, %v", limit, timers, err)
			}
		}
		all, err := a.Service.Timers(w.Context(), 100)
		if i := slices.IndexFunc(all, func(t service.TimerState) bool { return t.ID == "g.each" }); err != nil || i < 0 || all[i] != want[2] {
			w.Errorf("of all: %+v, %v", all, err)
		}

		// More than one step of a scan, in no order.
		var later []int64
		for i := range 2500 {
			later = append(later, int64(7*i%2500)+10_000)
		}
		holds(w, "h.", later...)
		for _, limit := range []int{1, 700, 3000} {
			timers, err := a.Service.GroupTimers(w.Context(), "h", limit)
			if err != nil || len(timers) != min(limit, 2500) {
				w.Fatalf("limit %d: %d timers, %v", limit, len(timers), err)
			}
			for i, t := range timers {
				if t.At.UnixMilli() != 10_000+int64(i) {
					w.Fatalf("%d is %+v", i, t)
				}
			}
		}
	})
}

func deleter(r *redisworld.Replica) *service.Operator {
	return &service.Operator{Store: r.Service, Limit: 10 * time.Second}
}

func TestAGroupOfTimersIsDeletedAndNoOther(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a := w.Replica("a")
		a.Sets("g.runs", w.Tick(-2), "r", true)
		run, _ := a.Wins(a.ClaimOf(a.Sees()))
		a.Sets("g.handed", w.Tick(-2), "h", true)
		l, _ := a.Wins(a.ClaimOf(a.Sees()))
		_, err := l.Handover(w.Context(), time.Minute, lock.Ending{})
		w.Must(err)
		// A series, one of which a time waits, and what is left of two that have ended; Redis has lost the one's entry.
		a.SetsSeries("g.both", w.Tick(-1), "s", w.Tick(-1), true)
		a.SpringsSeries(w.Now().Add(time.Hour), service.SprungDue)
		for _, id := range []string{"g.ended", "f.ended"} {
			a.SetsSeries(id, w.Tick(-1), "s", w.Tick(-1), true)
			a.SpringsSeries(time.Time{}, service.SprungDue)
		}
		w.Must(w.Admin.Del(w.Context(), timerKey+"f.ended").Err())
		w.Must(w.Admin.ZAdd(w.Context(), dueTimers, redis.Z{Score: 1, Member: "1 timer:f.ended series 1 0 0 q"}).Err())
		a.SetsSeries("g.each", w.Now().Add(time.Hour).Truncate(time.Second), "s", w.Now().Add(time.Hour).Truncate(time.Second), true)
		a.Sets("g.once", w.Now().Add(time.Hour), "o", true)
		holds(w, "g.many", times(1500, 10_000, 1)...)
		for _, id := range []string{"g", "gg.x", "x.g.y", "other"} {
			a.Sets(id, w.Now().Add(time.Hour), "", true)
		}
		due := fmt.Sprintf("%d timer:other timer 1 0 0 q timer:g.x", 5) // a strange name of a replica
		w.Must(w.Admin.ZAdd(w.Context(), dueTimers, redis.Z{Score: 5, Member: due}).Err())

		for group, want := range map[string]int{"g": 1504, "f": 1} {
			if n, err := deleter(a).DeleteTimers(w.Context(), group); err != nil || n != want {
				w.Errorf("%d of %s deleted, %v", n, group, err)
			}
		}
		var left []string
		for _, d := range w.Dues() {
			left = append(left, d.Job)
		}
		slices.Sort(left)
		if want := []string{"timer:f.ended", "timer:g", "timer:g.handed", "timer:gg.x", "timer:other", "timer:other", "timer:x.g.y"}; !slices.Equal(left, want) {
			w.Errorf("left are %v", left)
		}
		if n, err := deleter(a).DeleteTimers(w.Context(), "g"); n != 0 || err != nil {
			w.Errorf("again: %d deleted, %v", n, err)
		}
		w.Must(run.Verify(w.Context()))
		a.Finishes(run, 0)
	})
}

// TestADeletionOfAGroupThatFailsTellsHowFarItCameAndGoesOn has one timer of it be what Redis cannot read.
func TestADeletionOfAGroupThatFailsTellsHowFarItCameAndGoesOn(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a := w.Replica("a")
		holds(w, "g.", times(9, 10_000, 1)...)
		w.Must(w.Admin.Del(w.Context(), timerKey+"g.4").Err())
		w.Must(w.Admin.HSet(w.Context(), timerKey+"g.4", "no", "timer").Err())
		n, err := deleter(a).DeleteTimers(w.Context(), "g")
		var r *service.Refusal
		if !errors.As(err, &r) || n != 8 || r.Kind != service.Unanswered || r.Hint != "ask again: it goes on" ||
			!strings.HasPrefix(r.Message, `8 timers of group "g" are deleted, and others may wait: deleting timer "g.4": `) {
			w.Errorf("%d deleted, %v", n, err)
		}
		n, err = deleter(a).DeleteTimers(w.Context(), "g")
		if !errors.As(err, &r) || n != 0 || r.Kind != service.Unanswered || r.Hint != "" {
			w.Errorf("again: %d deleted, %v", n, err)
		}
		holds(w, "g.", times(9, 10_000, 1)...)
		if n, err := deleter(a).DeleteTimers(w.Context(), "g"); n != 9 || err != nil {
			w.Errorf("at last: %d deleted, %v", n, err)
		}
		gone, cancel := context.WithCancel(w.Context())
		cancel()
		if n, err := deleter(a).DeleteTimers(gone, "g"); !errors.As(err, &r) || n != 0 || r.Hint != "ask again: it goes on" {
			w.Errorf("after its caller has gone: %d deleted, %v", n, err)
		}
	})
}

// TestATimerThatMovesOnSoonIsDeletedBeforeTheScan, which it could escape.
func TestATimerThatMovesOnSoonIsDeletedBeforeTheScan(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a, b := w.Replica("a"), w.Replica("b")
		now := w.Now().Truncate(time.Millisecond)
		holds(w, "x", times(1500, now.UnixMilli(), 1)...)
		for id, next := range map[string]time.Time{"g.soon": now.Add(55 * time.Second), "g.later": now.Add(time.Hour)} {
			b.SetsSeries(id, next, id, next, true)
		}
		holds(w, "y", times(1500, now.Add(time.Hour/2).UnixMilli(), 1)...)
		free := make(chan struct{})
		reads, f := a.Proxy.Count(lossy.Command("zrange")), a.Proxy.On(lossy.Command("zscan"), 1, lossy.Hold(free))
		var looking sync.WaitGroup
		looking.Go(func() {
			if n, err := deleter(a).DeleteTimers(w.Context(), "g"); n != 2 || err != nil {
				w.Errorf("%d deleted, %v", n, err)
			}
		})
		<-f.Struck()
		if soon, later := a.Source("g.soon"), a.Source("g.later"); soon != "" || later != "g.later" || reads.N() != 2 {
			w.Errorf("before the scan there are %q and %q, after %d reads", soon, later, reads.N())
		}
		close(free)
		looking.Wait()
	})
}

func TestAGroupIsTheBeginningOfAnID(t *testing.T) {
	for _, group := range []string{"", "*", "g*", "g?", "[a]", "a b", "g.", "a\n", strings.Repeat("x", 129)} {
		o := &service.Operator{} // which asks nothing
		var r *service.Refusal
		if _, err := o.DeleteTimers(t.Context(), group); !errors.As(err, &r) || r.Kind != service.Invalid {
			t.Errorf("%q: %v", group, err)
		}
		if _, err := o.Timers(t.Context(), group+"*", 1); !errors.As(err, &r) || r.Kind != service.Invalid {
			t.Errorf("%q: %v", group, err)
		}
	}
}
