package sidecar

import (
	"slices"
	"time"

	"github.com/solotick/solotick/lock"
)

// stagger is how long after the first replica, which asks before the tick, the second one asks.
const stagger = ahead / 2

// A replica looks for the claims of others so many staggers after the first replica asks.
const (
	secondLooks = 1 // the replica that asks second
	othersLook  = 2 // all others, at the tick itself: mostly, two before them have asked by then
)

// herdLooks is when a replica looks again in a herd. The last look is a tenth of a second after the tick: then the
// first replica may have no slot left.
var herdLooks = [...]int{4, 10}

// herd is how many ticks must be left for a replica to look again. It asks for fewer at once: the first replica may
// have no slot for them.
const herd = 50

// yielding is a wake for whose tick another replica asks first.
type yielding struct {
	*wake
	first  string // that replica
	second bool   // this replica asks second
	hold   func() // keeps the job's tally until it is called
}

// launchTogether fires wakes of one moment. It leaves the first question for a tick to the replica whose turn it is.
// For most of these ticks this replica then has to do nothing: see yield. A wake whose tick is still to come, because
// the clock was set back, keeps no other waiting.
func (f *firer) launchTogether(wakes []*wake) {
	others, now := map[time.Time][]yielding{}, f.clock.Now() // by when the first replica asks
	for _, w := range wakes {
		if first, second := f.rendezvous.first(w); first != f.rendezvous.replica {
			at := newestOf(w.askAt(), now)
			others[at] = append(others[at], yielding{w, first, second, f.record.metrics.hold(w.spec.label)})
		} else {
			f.launch(w, nil)
		}
	}
	for at, w := range others {
		f.fires.Go(func() { f.yield(w, at) })
	}
}

// yield looks together for all wakes which ticks the other replicas have claimed, and skips those. The wakes whose
// ticks nobody has claimed go the way of all wakes, through fire. If all replicas looked at the same time, and the
// first one were slow or gone, all would ask; so one of them looks before the others. Only in a herd the first replica
// may not have got to a tick yet: while it goes on claiming others, this replica looks again.
func (f *firer) yield(wakes []yielding, firstAsks time.Time) {
	var seconds, others, rest []yielding // rest was looked at
	for _, w := range wakes {
		if w.second {
			seconds = append(seconds, w)
		} else {
			others = append(others, w)
		}
	}
	sleep := func(staggers int) bool {
		return f.clock.sleep(f.accepting, firstAsks.Add(time.Duration(staggers)*stagger))
	}
	if len(seconds) > 0 && sleep(secondLooks) {
		rest, seconds = f.skipClaimed(seconds, len(others)), nil
	}
	if len(others) > 0 && sleep(othersLook) {
		rest, others = append(rest, f.skipClaimed(others, len(rest))...), nil
	}
	for _, n := range herdLooks {
		if len(rest) > 0 && sleep(n) {
			rest = f.skipClaimed(rest, 0)
		}
	}
	// Unless the replica drains, seconds and others are empty here.
	f.launchIf(slices.Concat(seconds, others, rest), func(yielding) bool { return true })
}

// skipClaimed skips the wakes whose ticks other replicas have claimed. It returns those of a herd for which it is too
// early to ask, and launches the others. unseen is how many more wakes of the herd there are.
func (f *firer) skipClaimed(wakes []yielding, unseen int) []yielding {
	wakes = f.launchIf(wakes, func(w yielding) bool { return !f.canLose(w.wake) })
	answers, err := f.claimer.askClaimed(wakes)
	if err != nil {
		answers = make([]lock.Answer, len(wakes)) // fire asks again
	}
	claims := map[string]bool{} // the replicas that claim ticks now
	var rest []yielding
	for i, a := range answers {
		if a.Code == "" {
			rest = append(rest, wakes[i])
			continue
		}
		claims[a.Holder] = true
		f.record.skipped(wakes[i].wake, f.claimer.refused(wakes[i].wake, a, nil))
		wakes[i].hold()
	}
	return f.launchIf(rest, func(w yielding) bool { return len(rest)+unseen < herd || !claims[w.first] })
}

// canLose reports whether nothing but a claim of another replica could keep a wake from its tick. Any other reason is
// for fire to find.
func (f *firer) canLose(w *wake) bool {
	return w.refresh() && f.gate(w) == "" && w.job.isKnown() && f.slots.free() > 0
}

// launchIf launches those of the wakes that a condition holds for, and returns the others.
func (f *firer) launchIf(wakes []yielding, condition func(yielding) bool) (others []yielding) {
	for _, w := range wakes {
		if !condition(w) {
			others = append(others, w)
			continue
		}
		f.launch(w.wake, nil)
		w.hold()
	}
	return others
}
