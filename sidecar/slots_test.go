package sidecar

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/config"
)

func gate(limit int) *slots { return &slots{reserved: map[string]int{}, limit: limit} }

// acquire asks for a slot for a job, and waits until it is granted or ctx ends: nil then, and why.
func (g *slots) acquire(ctx context.Context, sp *spec, deadline time.Time) (*slot, reason) {
	p := g.ask(sp, deadline, nil)
	if why := g.await(ctx, p); why != "" {
		g.release(p)
		return nil, why
	}
	return p, ""
}

// tryAcquire is acquire without the wait.
func (g *slots) tryAcquire(sp *spec) *slot {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	p, _ := g.acquire(over, sp, time.Time{})
	return p
}

// counts are how many places are taken, and how many wait for one.
func (g *slots) counts() (taken, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken, len(g.waiting)
}

func plain(name string) *spec { return &spec{Job: &config.Job{Name: name}} }

func TestWithoutALimitNobodyWaits(t *testing.T) {
	g := gate(0)
	for range 3 {
		if g.tryAcquire(plain("a")) == nil {
			t.Fatal("it would have to wait")
		}
	}
}

func TestSlotsAreGivenInTheOrderOfAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(1)
		first := g.tryAcquire(plain("a"))
		var mu sync.Mutex
		var order []string
		for _, name := range []string{"b", "c"} {
			go func() {
				p, why := g.acquire(t.Context(), plain(name), time.Time{})
				if why != "" {
					t.Error(why)
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				time.Sleep(time.Second)
				g.release(p)
			}()
			synctest.Wait()
		}
		if len(order) > 0 {
			t.Fatalf("%v came in beside the first", order)
		}
		g.release(first)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(order) != 2 || order[0] != "b" || order[1] != "c" {
			t.Errorf("order %v, want b, c", order)
		}
		if g.taken != 0 || len(g.waiting) != 0 {
			t.Errorf("taken %d, waiting %d at the end", g.taken, len(g.waiting))
		}
	})
}

// A wake with a starting deadline is not starved by those without one, and no wake is starved for ever.
func TestTheNextSlotGoesByPriorityThenDeadlineThenWait(t *testing.T) {
	type wait struct {
		name     string
		priority int
		deadline time.Duration // 0 = none
	}
	for what, c := range map[string]struct {
		waits []wait // each comes a second after the one before
		later time.Duration
		want  string
	}{
		"as they came":            {[]wait{{"a", 0, 0}, {"b", 0, 0}, {"c", 0, 0}}, 0, "abc"},
		"deadlines first":         {[]wait{{"a", 0, 0}, {"b", 0, time.Hour}, {"c", 0, time.Minute}}, 0, "cba"},
		"one deadline, two waits": {[]wait{{"a", 0, time.Hour}, {"b", 0, time.Hour}}, 0, "ab"},
		"priority before all":     {[]wait{{"a", 0, time.Minute}, {"b", 1, 0}, {"c", 2, 0}}, 0, "cba"},
		"nobody waits for ever":   {[]wait{{"a", 0, 0}, {"b", 0, 0}, {"c", 2, 0}, {"d", 9, time.Hour}}, 57 * time.Second, "abdc"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := gate(1)
				held, began := g.tryAcquire(plain("x")), time.Now()
				var order strings.Builder
				for _, w := range c.waits {
					sp, deadline := &spec{Job: &config.Job{Name: w.name, Priority: w.priority}}, time.Time{}
					if w.deadline > 0 {
						deadline = began.Add(w.deadline)
					}
					go func() {
						p, _ := g.acquire(t.Context(), sp, deadline)
						order.WriteString(w.name)
						g.release(p)
					}()
					time.Sleep(time.Second)
				}
				time.Sleep(c.later)
				g.release(held)
				synctest.Wait()
				if order.String() != c.want {
					t.Errorf("%s, want %s", order.String(), c.want)
				}
			})
		})
	}
}

func TestWhoGivesUpHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(1)
		first := g.tryAcquire(plain("a"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if p, why := g.acquire(ctx, plain("b"), time.Time{}); p != nil || why != noSlot {
			t.Errorf("got in %v, why %q, want no_slot", p != nil, why)
		}
		g.release(first)
		if g.tryAcquire(plain("c")) == nil {
			t.Error("the slot is still taken")
		}
	})
}

func TestAReservedJobHasASlotOfItsOwn(t *testing.T) {
	g := gate(1)
	reserved := &spec{Job: &config.Job{Name: "r", Reserved: true}}
	shared := g.tryAcquire(plain("a"))
	own := g.tryAcquire(reserved)
	if own == nil {
		t.Fatal("the reserved job has to wait for another")
	}
	if g.tryAcquire(reserved) != nil {
		t.Error("a second run has one too")
	}
	g.release(shared)
	second := g.tryAcquire(reserved)
	if second == nil {
		t.Error("a second run has no slot although one is free")
	}
	if g.tryAcquire(plain("b")) != nil {
		t.Error("more slots than one besides the reserved one")
	}
	g.release(own)
	next := g.tryAcquire(plain("b"))
	if next == nil {
		t.Error("the second run keeps the slot of all, although the job's own is free")
	}
	g.release(next)
	g.release(second)
	if g.taken != 0 || len(g.reserved) != 0 {
		t.Errorf("taken %d, own %v at the end", g.taken, g.reserved)
	}
}

func TestWithoutATableNobodyIsLetIn(t *testing.T) {
	g := gate(-1)
	if g.tryAcquire(&spec{Job: &config.Job{Name: "r", Reserved: true}}) != nil || g.tryAcquire(plain("a")) != nil || g.free() != 0 {
		t.Error("a job is")
	}
}

func TestWhileTheAppIsNotReadyNobodyIsLetIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(2)
		g.setUnready("starting", time.Now())
		if g.tryAcquire(&spec{Job: &config.Job{Name: "r", Reserved: true}}) != nil {
			t.Error("a reserved job is")
		}
		var in atomic.Int32
		for range 3 {
			go func() {
				if p, _ := g.acquire(t.Context(), plain("a"), time.Time{}); p != nil {
					in.Add(1)
				}
			}()
		}
		synctest.Wait()
		if in := in.Load(); in != 0 {
			t.Errorf("%d are", in)
		}
		g.setUnready("", time.Now())
		synctest.Wait()
		if in := in.Load(); in != 2 {
			t.Errorf("%d came in when it was, want as many as there are slots", in)
		}
		g.setLimit(3)
		synctest.Wait()
		if in := in.Load(); in != 3 {
			t.Errorf("%d are in with three slots", in)
		}
	})
}

func TestRoomIsWhatWouldBeLetIn(t *testing.T) {
	g := gate(0)
	if n := g.free(); n < 1<<40 {
		t.Errorf("%d without a limit", n)
	}
	g.setLimit(3)
	g.tryAcquire(plain("a"))
	if n := g.free(); n != 2 {
		t.Errorf("%d, want 2", n)
	}
	g.setLimit(1)
	g.tryAcquire(&spec{Job: &config.Job{Name: "r", Reserved: true}})
	if n := g.free(); n != 0 {
		t.Errorf("%d when it is full", n)
	}
	g.setLimit(3)
	g.setUnready("starting", time.Now())
	if n := g.free(); n != 0 {
		t.Errorf("%d while the app is not ready", n)
	}
}

// A replica that stands still asks late, and the app may have been ready all the time since it last said no.
func TestAnAppMayHaveBeenReadySinceItWasLastUnready(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	g := gate(1)
	if g.setUnready("starting", at(1)); g.ready.Load() != nil {
		t.Error("it was ready before it said so")
	}
	g.setUnready("starting", at(2))
	g.setUnready("", at(9))
	g.setUnready("overloaded", at(10))
	g.setUnready("", at(11))
	if got := g.ready.Load(); !got.Equal(at(2)) {
		t.Errorf("ready since %s, want %s", got, at(2))
	}
	g = gate(1)
	if g.setUnready("", at(9)); !g.ready.Load().IsZero() {
		t.Errorf("an app that was never unready has been ready since %s", g.ready.Load())
	}
}
