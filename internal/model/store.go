package model

import (
	"math/bits"
	"slices"
)

// find is the index of a run's entry in `running`, -1 if there is none.
func (rd *store) find(u uuid) int {
	if u == 0 {
		return -1
	}
	return slices.IndexFunc(rd.running[:], func(e entry) bool { return e.uuid == u })
}

func (s *state) addEntry(e entry) {
	list := &s.redis.running
	n := slices.Index(list[:], entry{})
	if n < 0 {
		s.violate(Overflow)
		return
	}
	list[n] = e
	sortEntries(list)
}

func (s *state) removeEntry(i int) entry {
	list := &s.redis.running
	e := list[i]
	copy(list[i:], list[i+1:])
	list[maxEntries-1] = entry{}
	if s.sighted.run == e.uuid { // a takeover that comes now finds no run
		s.sighted = sighting{}
	}
	return e
}

// moveLease notes that a run's lease has got another end.
func (s *state) moveLease(u uuid) {
	if s.sighted.run == u {
		s.sighted.moved = true
	}
}

// sortEntries keeps equal sets equal; what is not used stays at the end.
func sortEntries(list *[maxEntries]entry) {
	for i := 1; i < maxEntries; i++ {
		for j := i; j > 0 && list[j].uuid != 0 && list[j-1].uuid > list[j].uuid; j-- {
			list[j-1], list[j] = list[j], list[j-1]
		}
	}
}

func (d due) member() due { return due{tick: d.tick, attempt: d.attempt, nonce: d.nonce} }

func (d due) less(e due) bool {
	switch {
	case d.tick != e.tick:
		return d.tick < e.tick
	case d.attempt != e.attempt:
		return d.attempt < e.attempt
	}
	return d.nonce < e.nonce
}

// findDue is the index of a member, -1 if it is not there.
func (rd *store) findDue(tick, attempt uint8, nonce uuid) int {
	if tick == 0 {
		return -1
	}
	want := due{tick: tick, attempt: attempt, nonce: nonce}
	return slices.IndexFunc(rd.due[:], func(d due) bool { return d.member() == want })
}

// addDue is ZADD: a member that is there already is only changed.
func (m *model) addDue(s *state, d due) {
	if !m.has(Nonce) {
		d.nonce = 0
	}
	list := &s.redis.due
	if i := s.redis.findDue(d.tick, d.attempt, d.nonce); i >= 0 {
		list[i] = d
		return
	}
	if s.marks[kept(d.tick, d.attempt)]&calledOff != 0 {
		s.violate(CancelledAgain)
	}
	n := slices.Index(list[:], due{})
	if n < 0 {
		s.violate(Overflow)
		return
	}
	list[n] = d
	sortDue(list)
}

func (s *state) removeDue(i int) {
	list := &s.redis.due
	copy(list[i:], list[i+1:])
	list[maxEntries-1] = due{}
}

func sortDue(list *[maxEntries]due) {
	for i := 1; i < maxEntries; i++ {
		for j := i; j > 0 && list[j].tick != 0 && list[j].less(list[j-1]); j-- {
			list[j-1], list[j] = list[j], list[j-1]
		}
	}
}

// dueOfTable reports whether anything is due that nobody has asked for by hand; any: by hand or not.
func (rd *store) dueOfTable(any bool) bool {
	return slices.ContainsFunc(rd.due[:], func(d due) bool { return d.tick != 0 && (any || d.attempt&byHand == 0) })
}

// isDueFrom reports whether a run has handed its tick on.
func (rd *store) isDueFrom(u uuid, tick uint8) bool {
	return slices.ContainsFunc(rd.due[:], func(d due) bool { return d.tick == tick && d.nonce == u })
}

// slot is where a tick's run takes its lock.
func slotOf(p Policy, tick uint8) int {
	if p == Allow {
		return int(tick)
	}
	return 0
}

// inTheWay reports whether a run keeps others from starting one for this tick.
func (m *model) inTheWay(rd *store, p Policy, tick uint8) bool {
	slot := slotOf(p, tick)
	switch {
	case m.has(AllRuns) && p == Allow:
		return false
	case !m.has(Settle):
		return rd.find(rd.lock[slot]) >= 0
	case m.has(AllRuns):
		return rd.running[0].uuid != 0
	}
	return slices.ContainsFunc(rd.running[:], func(e entry) bool { return e.uuid != 0 && int(e.slot) == slot })
}

// newestRefused is the newest tick that was refused and is not settled.
func (rd *store) newestRefused() uint8 {
	if rd.refused == 0 {
		return 0
	}
	return uint8(bits.Len8(rd.refused) - 1)
}

// newestKnown is the newest tick that was claimed, or refused.
func (rd *store) newestKnown() uint8 { return max(rd.claimed, rd.newestRefused()) }

// passedOver reports whether a newer tick was refused and this one was not: it is missed.
func (rd *store) passedOver(tick uint8) bool {
	return tick < rd.newestRefused() && rd.refused>>tick&1 == 0
}

// tidy forgets when runs began and were renewed as far as it makes no difference any more.
func (rd *store) tidy() {
	for i := range rd.running {
		e := &rd.running[i]
		e.began, e.renewed = rd.openUpTo(e.began), rd.openUpTo(e.renewed)
	}
}

// openUpTo is the newest tick up to the given one whose fate is open: it is not claimed, or stands behind a run.
func (rd *store) openUpTo(tick uint8) uint8 {
	for ; tick > 0 && tick <= rd.claimed && rd.refused>>tick&1 == 0; tick-- {
	}
	return tick
}
