package model

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// walk collects states of a random walk.
func walk(m *model, rng *rand.Rand, steps int) []state {
	s := m.initial()
	all := []state{s}
	for range steps {
		var next []state
		m.successors(&s, func(n *state, _ action, _ bool) { next = append(next, *n) })
		if len(next) == 0 {
			break
		}
		s = next[rng.IntN(len(next))]
		all = append(all, s)
	}
	return all
}

// walks visits states of worlds in which every list has more than one place to fill.
func walks(t *testing.T, f func(*model, *state)) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, policy := range []Policy{Forbid, Allow, Queue} {
		c := Scenario{Replicas: 3, Ticks: 3, Policy: policy, AtLeastOnce: policy == Allow, Healthy: nobody, Skew: true,
			Faults: Faults{Crash: 1, Restart: 1, Stray: 2, Stall: 2, Refusal: 2, Extension: 1, Redis: 1, Theft: 1,
				CancelAsked: 1, RerunAsked: 1, LateReap: 1}}
		m := newModel(c, AllMends)
		for range 20 {
			for _, s := range walk(m, rng, 60) {
				f(m, &s)
			}
		}
	}
}

// A state is hashed and packed as bytes: padding or a pointer in it would make equal states differ.
func TestStateIsBytesOnly(t *testing.T) {
	var leaves func(reflect.Type) uintptr
	leaves = func(k reflect.Type) (n uintptr) {
		switch k.Kind() {
		case reflect.Uint8, reflect.Bool:
			return 1
		case reflect.Array:
			return uintptr(k.Len()) * leaves(k.Elem())
		case reflect.Struct:
			for i := range k.NumField() {
				n += leaves(k.Field(i).Type)
			}
			return n
		}
		t.Errorf("a %s in the state", k)
		return 0
	}
	if k := reflect.TypeFor[state](); leaves(k) != k.Size() {
		t.Errorf("%d bytes of %d are used", leaves(k), k.Size())
	}
}

func TestFrontierGivesBackWhatWasPut(t *testing.T) {
	var q frontier
	var all []state
	walks(t, func(_ *model, s *state) {
		q.put(s)
		all = append(all, *s)
	})
	for i := range all {
		var s state
		if q.get(&s); s != all[i] {
			t.Fatalf("state %d of %d came back as another", i, len(all))
		}
	}
}

func TestVisitedKnowsWhatItHasSeen(t *testing.T) {
	v := newVisited()
	rng := rand.New(rand.NewPCG(3, 4))
	known := map[uint64]bool{}
	for range 300_000 {
		h := rng.Uint64N(1_000_000)
		if h == 0 {
			continue
		}
		if v.add(h) == known[h] {
			t.Fatalf("%d was seen before: %t", h, known[h])
		}
		known[h] = true
	}
	if v.n != len(known) {
		t.Errorf("%d kept of %d", v.n, len(known))
	}
}

// Renaming replicas and going on is the same as going on and renaming them: only then may such states count as one.
func TestRenamedReplicasDoTheSame(t *testing.T) {
	others := 0
	walks(t, func(m *model, s *state) {
		want := m.successorsOf(s)
		for _, p := range m.renamed {
			other := p.state(s)
			if m.fingerprint(&other) != m.fingerprint(s) {
				t.Fatalf("renamed by %v: another state", p)
			}
			if !slices.Equal(m.successorsOf(&other), want) {
				t.Fatalf("renamed by %v: other things can happen next", p)
			}
			if hash(&other) != hash(s) {
				others++
			}
		}
	})
	if others == 0 {
		t.Error("no renaming changed anything")
	}
}

// successorsOf are their fingerprints, in order.
func (m *model) successorsOf(s *state) []uint64 {
	var all []uint64
	m.successors(s, func(next *state, _ action, _ bool) { all = append(all, m.fingerprint(next)) })
	slices.Sort(all)
	return all
}

func TestRenamedMembersAreInOrder(t *testing.T) {
	m := newModel(Scenario{Healthy: nobody}, AllMends)
	s := m.initial()
	for r := range 2 {
		u := newUUID(r, 0, 0)
		m.addDue(&s, due{tick: 1, nonce: u})
		s.addEntry(entry{uuid: u, tick: 1})
	}
	other := renaming{1, 0, 2}.state(&s)
	if other != s {
		t.Errorf("two replicas that have done the same were renamed, and it shows: %v %v", other.redis.due, other.redis.running)
	}
}

func TestOnlyReplicasThatAreAlikeAreRenamed(t *testing.T) {
	for _, x := range []struct {
		what string
		c    Scenario
		want int
	}{
		{"three alike", Scenario{Replicas: 3, Healthy: nobody}, 5},
		{"one is healthy", Scenario{Replicas: 3}, 1},
		{"one of two is healthy", Scenario{Replicas: 2}, 0},
		{"one cannot start", Scenario{Replicas: 3, Healthy: nobody, CannotStart: [maxReplicas]bool{1: true}}, 1},
	} {
		if n := len(x.c.renamings()); n != x.want {
			t.Errorf("%s: %d renamings, want %d", x.what, n, x.want)
		}
	}
}
