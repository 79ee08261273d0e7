package sidecar

import (
	"slices"
	"time"
)

// stagger is how long after the first replica, which asks before the tick, the second one asks.
const stagger = ahead / 2

// A replica waits for so many staggers after the first replica asks.
const (
	secondAsks = 1 // the replica that asks second
	othersAsk  = 2 // all others: mostly, two before them have asked by then
)

// herdAsks is how long a replica waits in a herd. The last time is an eighth of a second: then the first replica may
// have no slot left.
var herdAsks = [...]int{4, 10}

// herd is how many ticks must be left for a replica to wait on. It asks for fewer at once: the first replica may have
// no slot for them.
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

// yield waits for what is heard of the other replicas' claims, and skips the wakes whose ticks they have. The others go
// the way of all wakes, through fire. If all replicas waited equally long, and the first one were slow or gone, all
// would ask; so one of them waits half as long. Only in a herd the first replica may not have got to a tick yet: while
// it goes on claiming others, this replica waits on.
func (f *firer) yield(wakes []yielding, firstAsks time.Time) {
	var seconds, others, rest []yielding // rest waits longer, in a herd
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
	if len(seconds) > 0 && sleep(secondAsks) {
		rest, seconds = f.skipClaimed(seconds, len(others)), nil
	}
	if len(others) > 0 && sleep(othersAsk) {
		rest, others = append(rest, f.skipClaimed(others, len(rest))...), nil
	}
	for _, n := range herdAsks {
		if len(rest) > 0 && sleep(n) {
			rest = f.skipClaimed(rest, 0)
		}
	}
	// Unless the replica drains, seconds and others are empty here.
	f.launchIf(slices.Concat(seconds, others, rest), func(yielding) bool { return true })
}

// skipClaimed skips the wakes of whose ticks it was heard that they are claimed. It returns those of a herd for which
// it is too early to ask, and launches the others. unseen is how many more wakes of the herd there are.
func (f *firer) skipClaimed(wakes []yielding, unseen int) []yielding {
	claims := map[string]bool{} // the replicas that claim ticks now
	mayLose := f.launchIf(wakes, func(w yielding) bool { return !f.canLose(w.wake) })
	rest := slices.DeleteFunc(mayLose, func(w yielding) bool {
		h := w.job.heard.Load()
		if h == nil || !h.Tick.Equal(w.tick) || !h.Answer.Born.Equal(w.job.known(w.spec).born) { // or of another ledger
			return false
		}
		claims[h.Answer.Holder] = true
		w.observe(h.Answer)
		f.record.skipped(w.wake, f.claimer.refused(w.wake, h.Answer, nil))
		w.hold()
		return true
	})
	return f.launchIf(rest, func(w yielding) bool { return len(rest)+unseen < herd || !claims[w.first] })
}

// canLose reports whether nothing but a claim of another replica could keep a wake from its tick. Any other reason is
// for fire to find.
func (f *firer) canLose(w *wake) bool {
	return w.refresh() && f.gate(w) == "" && w.job.isKnown() && f.slots.free() > 0
}

// launchIf launches those of the wakes that a condition holds for, and returns the others, in the same array.
func (f *firer) launchIf(wakes []yielding, condition func(yielding) bool) (others []yielding) {
	return slices.DeleteFunc(wakes, func(w yielding) bool {
		launch := condition(w)
		if launch {
			f.launch(w.wake, nil)
			w.hold()
		}
		return launch
	})
}
