package model

import (
	"cmp"
	"slices"
)

// renaming gives each replica the name of another. Replicas are alike, except the healthy one and those that cannot
// start the job, so states that differ only by a renaming are one.
type renaming [maxReplicas]int

// renamings are those that change nothing but names, without the one that changes no name.
func (c Scenario) renamings() []renaming {
	var all []renaming
	for _, p := range [...]renaming{{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		if c.keeps(p) {
			all = append(all, p)
		}
	}
	return all
}

func (c Scenario) keeps(p renaming) bool {
	for r, q := range p {
		outside := r >= c.Replicas || r == c.Healthy
		if r != q && outside || q < c.Replicas && r < c.Replicas &&
			(c.CannotStart[r] != c.CannotStart[q] || c.Rollout && c.By[r] != c.By[q]) {
			return false
		}
	}
	return true
}

func (p renaming) uuid(u uuid) uuid {
	if u == 0 || u >= byOperator {
		return u
	}
	r, i := u.owner()
	return newUUID(p[r], i, uint8(u-1)%uuidsPerFiber)
}

func (p renaming) state(s *state) state {
	next := *s
	for r, q := range p {
		next.fibers[q], next.alive[q] = s.fibers[r], s.alive[r]
	}
	p.store(&next.redis)
	p.store(&next.standby)
	next.cancel.run, next.sighted.run = p.uuid(next.cancel.run), p.uuid(next.sighted.run)
	for r := range next.fibers {
		for i := range next.fibers[r] {
			f := &next.fibers[r][i]
			f.uuid, f.nonce = p.uuid(f.uuid), p.uuid(f.nonce)
			older := f.older
			for r, q := range p {
				f.older[q] = older[r]
			}
		}
	}
	for i := range next.strays {
		if z := &next.strays[i]; z.phase != idle {
			z.uuid, z.nonce, z.replica = p.uuid(z.uuid), p.uuid(z.nonce), uint8(p[z.replica])
		}
	}
	return next
}

func (p renaming) store(rd *store) {
	for i := range rd.lock {
		rd.lock[i] = p.uuid(rd.lock[i])
	}
	rd.last, rd.newest = p.uuid(rd.last), p.uuid(rd.newest)
	for i := range rd.evidence {
		rd.evidence[i].uuid = p.uuid(rd.evidence[i].uuid)
	}
	for i := range rd.running {
		rd.running[i].uuid = p.uuid(rd.running[i].uuid)
	}
	for i := range rd.due {
		d := &rd.due[i]
		d.nonce = p.uuid(d.nonce)
		if d.avoid != 0 {
			d.avoid = uint8(p[d.avoid-1] + 1)
		}
	}
	// none at the end
	slices.SortFunc(rd.evidence[:], func(a, b interrupted) int { return cmp.Compare(a.uuid-1, b.uuid-1) })
	sortEntries(&rd.running)
	sortDue(&rd.due)
}

// fingerprint is the same for all states that differ only by names. Two different states share one with a probability
// of about n²/2⁶⁵ over n states; the seed differs from process to process.
func (m *model) fingerprint(s *state) uint64 {
	h := hash(s)
	for _, p := range m.renamed {
		other := p.state(s)
		h = min(h, hash(&other))
	}
	return h
}
