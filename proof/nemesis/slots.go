package nemesis

import (
	"slices"
	"time"
)

// crowded reports whether a run began on a replica whose slots were all taken.
func (c *court) crowded(r *run) bool {
	return c.slots > 0 && r.started() && c.taken(r.replica, r.arrived) > c.slots
}

// taken is how many slots of a replica runs had at an instant. A life of the replica that was over by then has none.
func (c *court) taken(replica string, at time.Time) (n int) {
	own := map[string]bool{}
	for _, r := range c.at[replica] {
		switch {
		case r.claimed().After(at) || !r.ended.After(at) || c.record.hit(replica, r.begin(), at):
		case c.reserved[r.job] && !own[r.job]:
			own[r.job] = true
		default:
			n++
		}
	}
	return n
}

// leaves is for how long a replica that could not start a tick leaves it to those that have not tried
// (docs/guarantees.md).
const leaves = 5 * time.Second

// free reports whether some replica to which nothing happened had a free slot for so long within [from, to], in which
// it would have taken a tick.
func (c *court) free(tick, from, to time.Time, long time.Duration) bool {
	return slices.ContainsFunc(c.replicas, func(name string) bool {
		starts := []time.Time{from}
		for _, r := range c.at[name] {
			starts = append(starts, r.ended)
		}
		return slices.ContainsFunc(starts, func(start time.Time) bool {
			end := start.Add(long)
			left := slices.ContainsFunc(c.byTick[tick], func(r *run) bool {
				return r.replica == name && r.refused() && start.Before(r.end().Add(leaves))
			})
			return !left && !start.Before(from) && !end.After(to) &&
				len(c.record.on(name, start.Add(-edge), end)) == 0 && c.taken(name, start) < c.slots &&
				!slices.ContainsFunc(c.at[name], func(r *run) bool {
					return r.claimed().After(start) && r.claimed().Before(end) && c.taken(name, r.claimed()) >= c.slots
				})
		})
	})
}
