package sidecar

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/config"
)

func gate(limit int) *slots { return &slots{reservedTaken: map[string]bool{}, limit: limit} }

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
				p, why := g.acquire(t.Context(), plain(name))
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

func TestWhoGivesUpHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(1)
		first := g.tryAcquire(plain("a"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if p, why := g.acquire(ctx, plain("b")); p != nil || why != noSlot {
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
	g.release(second)
	if g.taken != 0 || len(g.reservedTaken) != 0 {
		t.Errorf("taken %d, own %v at the end", g.taken, g.reservedTaken)
	}
}

func TestWhileTheAppIsNotReadyNobodyIsLetIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(2)
		g.setUnready("starting")
		if g.tryAcquire(&spec{Job: &config.Job{Name: "r", Reserved: true}}) != nil {
			t.Error("a reserved job is")
		}
		var in atomic.Int32
		for range 3 {
			go func() {
				if p, _ := g.acquire(t.Context(), plain("a")); p != nil {
					in.Add(1)
				}
			}()
		}
		synctest.Wait()
		if in := in.Load(); in != 0 {
			t.Errorf("%d are", in)
		}
		g.setUnready("")
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
	g.setUnready("starting")
	if n := g.free(); n != 0 {
		t.Errorf("%d while the app is not ready", n)
	}
}
