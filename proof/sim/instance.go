package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/instance"
	"github.com/solotick/solotick/lock"
)

// restartsInPlace is the class of seeds in which replicas hold instances: real ones, by locks on real files.
const restartsInPlace = "restarts in place"

// The faults of the class. An impostor has the name of a replica that lives. It asks for the same place, is on another
// node, or has a copy of the place: the replica is well, stands still, or is cut off.
const (
	crashInPlace    = "crash in place"
	impostor        = "impostor"
	impostorStalled = "impostor of one that stands still"
	impostorCut     = "impostor of one that is cut off"
)

// inPlace: the replicas that run something are killed and restarted in their places, or get an impostor.
func (p *Plan) inPlace(r *rand.Rand) {
	p.willing(r)
	p.Faults = nil
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Period, j.TTL = time.Duration(pick(r, 2, 3, 5))*time.Second, time.Duration(pick(r, 3, 5, 15, 15))*time.Second
		j.Jitter, j.Deadline, j.Timeout = min(j.Jitter, j.Period/4), 0, 20*time.Second
		if i == 0 {
			j.Takes = [2]time.Duration{j.Period, 3 * j.Period}
		}
	}
	for at := 9 * time.Second; at < 34*time.Second; at += 8*time.Second + upTo(r, 3*time.Second) {
		f := Fault{At: at, Replica: -1,
			Kind: pick(r, crashInPlace, crashInPlace, crashInPlace, impostor, impostorStalled, impostorCut)}
		f.For = 50*time.Millisecond + upTo(r, time.Second)
		if f.Kind != crashInPlace {
			f.For = time.Second + upTo(r, 5*time.Second)
			f.After = pick(r, "", otherNode, copiedPlace, restoredPlace)
		}
		p.Faults = append(p.Faults, f)
	}
	p.Lasts += 8 * time.Second
}

// Where an impostor is that does not share the directory. A copy has what the directory holds at that moment, so
// it names the process that lives. A backup that is restored takes the place of the directory, whose files that process
// still has.
const (
	otherNode     = "on another node"
	copiedPlace   = "in a copy of the place"
	restoredPlace = "in the place, restored from a backup"
)

// hold makes a replica the process of the instance at its place, or of another one where an impostor is.
func (r *replica) hold(where string) error {
	w := r.world
	if w.plan.Class != restartsInPlace && w.plan.Class != asyncRuns {
		return nil
	}
	if w.instances == "" {
		dir, err := os.MkdirTemp("", "solotick-sim-")
		if err != nil {
			return err
		}
		w.instances = dir
	}
	r.uuid = uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%d %s", w.plan.Seed, r.process)).String()
	dir, err := w.instance(r.name, where)
	if err != nil {
		return err
	}
	i, err := instance.Hold(dir, lock.Node(r.uuid))
	if err != nil {
		w.met["instances that were not held"]++
		return nil // nothing is certain, and the replica runs all the same
	}
	r.instance = i
	for _, p := range i.Dead {
		r.before = append(r.before, p.ID)
	}
	return nil
}

// instance is the directory of a replica's instance, or of another one where an impostor is.
func (w *world) instance(name, where string) (string, error) {
	dir := filepath.Join(w.instances, name)
	if where == "" || where == otherNode {
		return dir + where, nil
	}
	copied, err := os.MkdirTemp(w.instances, name+" copied ")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	w.met["impostors "+where]++
	if where == copiedPlace {
		return copied, nil
	}
	return dir, errors.Join(os.RemoveAll(dir), os.Rename(copied, dir))
}

// leave gives the instance up: as the kernel does when a process has crashed, or as one does that ends in order. Of
// both the first counts.
func (r *replica) leave(how func(*instance.Instance) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := how(r.instance); err != nil {
		r.world.violated("instance", "", "%s: %v", r.process, err)
	}
	r.instance = nil
}

// impose starts an impostor of a replica for a time, in which the replica stays the one that all else happens to.
func (w *world) impose(r *replica, f Fault, now time.Duration) {
	w.span(r.place, now, now+f.For+w.plan.Grace+recovery, f.Kind)
	switch f.Kind {
	case impostorStalled:
		w.strike(Fault{Kind: "stall", Replica: r.place, For: f.For})
	case impostorCut:
		w.strike(Fault{Kind: "cut", Replica: r.place, For: f.For})
	}
	if err := w.startAt(r.place, f.After); err != nil {
		w.violated("start", "", "%v", err)
		return
	}
	w.mu.Lock()
	twin := w.present[r.place]
	w.present[r.place] = r
	w.mu.Unlock()
	w.later(f.For, func() {
		w.note(r, "is over: "+f.Kind, "", "", "", "")
		w.end(twin)
	})
}

// checkDead: a run is taken over before its lease is over only if its process is dead, and another one has its place.
// Then it is taken over at once, unless its app may work on: that has to have stopped by the end of the lease.
func (w *world) checkDead() {
	for _, c := range w.redis.claims.all {
		if c.how != "reap" {
			continue
		}
		next := w.successor(c.replica)
		if next != nil && c.settled >= next.began {
			if !w.plan.isAsync(c.job) {
				w.judgeInPlace(c, next)
				continue
			}
			w.met["waited in place for the lease of an app"]++
		}
		// which forgets renewals
		if unseen := c.settled - c.renewed; unseen < w.plan.ttl(c.job) && len(w.redis.claims.oblivions) == 0 {
			w.violatedAt(c.settled, "taken for dead", c.job,
				"the run of tick %s on %s was taken over %s after it was renewed",
				stamp(c.tick), c.replica.process, unseen)
		}
	}
}

// successor is the first process that held the same instance after one had died; nil if that lives, or none has.
func (w *world) successor(r *replica) *replica {
	died := r.diedAt()
	if died == 0 || r.uuid == "" {
		return nil
	}
	for _, next := range w.replicas {
		for _, node := range next.before {
			if next.began >= died && node == lock.Node(r.uuid) {
				return next
			}
		}
	}
	return nil
}

// judgeInPlace: a process that takes the place of a dead one ends its runs at its first look, within a quarter of a
// second and the ways of that look.
func (w *world) judgeInPlace(c *claim, next *replica) {
	by := next.began + 250*time.Millisecond + 12*w.plan.Far
	stopping, dead := next.stopped()
	if c.won >= next.began || w.disturbed(-1, next.began-recovery, by) ||
		w.disturbed(next.place, next.began-recovery, by, crashInPlace) || stopping != 0 && stopping <= by ||
		dead && next.diedAt() <= by {
		return
	}
	w.met["taken over in place"]++
	if c.settled > by {
		w.violatedAt(c.settled, "prompt", c.job, "tick %s was left by %s, whose place %s took at %s, "+
			"and taken over at %s", stamp(c.tick), c.replica.process, next.process, next.began, c.settled)
	}
}
