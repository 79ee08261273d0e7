package nemesis

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// pastLease is longer than the lease of most jobs, and than its takeover takes.
const pastLease = asyncLease + 2500*time.Millisecond

// between draws a duration.
func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(b-a)+1))
}

// check ends the test when the nemesis itself fails.
func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// killReplicas kills one replica every 2 s, which comes back after a moment.
func killReplicas(w *world, until time.Time) {
	for time.Now().Before(until) {
		time.Sleep(time.Until(time.Now().Truncate(2 * time.Second).Add(2*time.Second + w.between(-ahead, time.Second))))
		w.kill(w.between(100*time.Millisecond, 500*time.Millisecond), w.any(w.replicas))
	}
}

// killHolders kills the replica that runs a long job, or perhaps just claimed one.
func killHolders(w *world, until time.Time) {
	for time.Now().Before(until) {
		w.kill(w.between(100*time.Millisecond, 2*time.Second), w.aim(w.replicas))
		time.Sleep(w.between(time.Second, 3*time.Second))
	}
}

// killAll kills all replicas at once.
func killAll(w *world, until time.Time) {
	for time.Now().Before(until) {
		w.kill(w.between(500*time.Millisecond, 6*time.Second), w.replicas...)
		time.Sleep(w.between(3*time.Second, 6*time.Second))
	}
}

// kill ends replicas without a goodbye, and starts them again after a pause: two times of three in their places, where
// a replica knows that the process before it is dead, and else each in a new place, or in a copy of another one.
func (w *world) kill(pause time.Duration, victims ...*replica) {
	w.t.Helper()
	h := killed
	if w.rng.IntN(3) > 0 {
		h = crashed
	}
	for _, r := range victims {
		defer w.record.begin(h, r.name)()
		r.process.Kill()
	}
	time.Sleep(pause)
	for _, r := range victims {
		if h == killed {
			r.state = w.elsewhere()
		}
	}
	w.start(victims...)
}

// elsewhere makes a new place, and every second time copies into it the place of a replica, which mostly lives.
func (w *world) elsewhere() string {
	dir := w.t.TempDir()
	if from := w.any(w.replicas).state; from != "" && w.rng.IntN(2) == 0 {
		// a replica that ends removes its file
		if err := os.CopyFS(dir, os.DirFS(from)); !errors.Is(err, fs.ErrNotExist) {
			w.check(err)
		}
	}
	return dir
}

// stopHolders stops the replica that runs a long job, or perhaps just claimed one, for longer than its lease and for
// shorter, and lets it go on.
func stopHolders(w *world, until time.Time) {
	for length := pastLease; time.Now().Before(until); length = w.between(ttl/2, 2*ttl) {
		r := w.aim(w.replicas)
		over := w.record.begin(stopped, r.name)
		w.check(r.process.Signal(syscall.SIGSTOP))
		time.Sleep(length)
		w.check(r.process.Signal(syscall.SIGCONT))
		over()
		time.Sleep(w.between(time.Second, 2*time.Second))
	}
}

// cutOff takes one replica's way to Redis, preferably while it runs a long job.
func cutOff(r *replica) func(w *world, until time.Time) {
	return func(w *world, until time.Time) {
		for length := pastLease; time.Now().Before(until); length = w.between(ttl/6, 2*ttl) {
			w.aim([]*replica{r})
			over := w.record.begin(cut, r.name)
			w.check(r.path.cut())
			time.Sleep(length)
			w.check(r.path.mend())
			over()
			time.Sleep(w.between(time.Second, 3*time.Second))
		}
	}
}

// killCutOff takes a replica's way to Redis just as it begins a long run that its app ends by a report, and kills it
// shortly before it would take the lease for lost: right after a heartbeat, if one is answered as late as that. No
// process is left to tell the app that it has to stop.
func killCutOff(w *world, until time.Time) {
	candidates := slices.DeleteFunc(slices.Clone(w.replicas), func(r *replica) bool { return r.path.cut == nil })
	for time.Now().Before(until) {
		r := w.await(candidates, 3*longLease, func(j job) bool { return j.beat > 0 })
		mended := w.record.begin(cut, r.name)
		w.check(r.path.cut())
		last := time.Now().Add(longLease - relied - w.between(100*time.Millisecond, 300*time.Millisecond))
		time.Sleep(time.Until(last) - longBeat/3)
		allowed := w.leave(r)
		_ = rig.Until(time.Until(last), "a heartbeat", func() bool { return w.leave(r).After(allowed) })
		back := w.record.begin(crashed, r.name)
		r.process.Kill()
		w.check(r.path.mend())
		mended()
		time.Sleep(longBeat) // the next process in its place would tell the app to stop
		w.start(r)
		back()
		time.Sleep(w.between(4*time.Second, 6*time.Second))
	}
}

// refuse lets the app beside one replica take no connections.
func refuse(w *world, until time.Time) {
	for time.Now().Before(until) {
		w.shut(w.between(time.Second, 4*time.Second), w.any(w.replicas))
		time.Sleep(w.between(200*time.Millisecond, time.Second))
	}
}

// refuseMost lets the apps beside all replicas but one take no connections for several ticks, and then all of them for
// a moment.
func refuseMost(w *world, until time.Time) {
	for time.Now().Before(until) {
		healthy := w.any(w.replicas)
		w.shut(w.between(3*time.Second, 6*time.Second), slices.DeleteFunc(slices.Clone(w.replicas),
			func(r *replica) bool { return r == healthy })...)
		time.Sleep(w.between(0, time.Second))
		w.shut(w.between(100*time.Millisecond, time.Second), w.replicas...)
		time.Sleep(w.between(time.Second, 2*time.Second))
	}
}

// shut lets the apps beside replicas take no connections for so long.
func (w *world) shut(length time.Duration, victims ...*replica) {
	var over []func()
	for _, r := range victims {
		over = append(over, w.record.begin(refused, r.name))
		r.door.Shut()
	}
	time.Sleep(length)
	for i, r := range victims {
		w.check(r.door.Reopen())
		over[i]()
	}
}

const (
	// ahead is how long before its tick a replica may claim it.
	ahead = 25 * time.Millisecond
	// long is what makes a job long enough to be struck in the middle.
	long = 2 * time.Second
)

func (w *world) any(candidates []*replica) *replica { return candidates[w.rng.IntN(len(candidates))] }

// aim waits for a moment that is worth a strike: mostly until one of the candidates begins a long run, each second time
// one that its app ends by a report, else until just before a tick, when one may have claimed it and not started it
// yet.
func (w *world) aim(candidates []*replica) *replica {
	if w.rng.IntN(3) == 0 {
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(2*time.Second - w.between(0, ahead))))
		return w.any(candidates)
	}
	reported := w.rng.IntN(2) == 0 && slices.ContainsFunc(w.jobs, func(j job) bool { return j.async })
	return w.await(candidates, 6*time.Second, func(j job) bool { return j.take >= long && (j.async || !reported) })
}

// await waits until one of the candidates begins a run of such a job, which others may do instead.
func (w *world) await(candidates []*replica, patience time.Duration, such func(job) bool) *replica {
	began := time.Now()
	found := w.any(candidates)
	_ = rig.Until(patience, "a run", func() bool {
		for _, q := range w.app.Seen() {
			if !q.Ended.IsZero() || q.Arrived.Before(began) || !such(w.job(q.Job)) {
				continue
			}
			for _, r := range candidates {
				if r.name == q.Replica {
					found = r
					return true
				}
			}
		}
		return false
	})
	return found
}

// leave is until when the apps beside a replica may work on runs with long heartbeats, as far as is known now.
func (w *world) leave(r *replica) (until time.Time) {
	for _, q := range w.app.Seen() {
		if q.Replica == r.name && w.job(q.Job).beat > 0 && q.Work.Until.After(until) {
			until = q.Work.Until
		}
	}
	return until
}

func (w *world) job(name string) job {
	for _, j := range w.jobs {
		if j.name == name {
			return j
		}
	}
	return job{}
}
