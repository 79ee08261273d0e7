package sidecar

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/beat"
)

// Reload puts another table in force. It prepares everything before it touches a job at work. Jobs with the same
// ticks in both tables keep their timers, and runs go on as they began. If loading the table failed, or Reload itself
// fails, nothing changes: the error is logged, counted and shown.
func (s *Sidecar) Reload(next *config.Table, err error) error {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	if s.accepting.Err() != nil { // no failure of the table
		return errDraining
	}
	if err == nil {
		err = s.Table().Restart(next)
	}
	if err == nil && !next.Equal(s.Table()) {
		s.swapJobs(next)
	}
	before := s.reloaded.Swap(&ReloadState{At: s.clock.wall(), Err: err})
	s.metrics.reloaded(s.clock.wall(), err == nil)
	beat.Kick(s.heartbeat.told)
	switch {
	case err != nil:
		s.notReloaded(err)
	case before.Err != nil:
		s.log.Info("the table in force is what its file says again", "table", next.Hash)
	}
	return err
}

// notReloaded logs why, each problem by itself.
func (s *Sidecar) notReloaded(err error) {
	said := "the table is not reloaded: the one before stays in force"
	if s.Table().MaxRunning < 0 {
		said = NoTable
	}
	var problems config.Problems
	if !errors.As(err, &problems) {
		s.log.Error(said, "err", err)
		return
	}
	s.log.Error(said, "problems", len(problems))
	problems.Log(s.log)
}

// swapJobs puts the jobs of a table to work. If a job's ticks stay the same, it goes on with them: none is lost, and
// none fires twice.
func (s *Sidecar) swapJobs(t *config.Table) {
	before, next := s.jobs(), make(roster, len(t.Jobs))
	var made []*spec
	for i := range t.Jobs {
		c := &t.Jobs[i]
		j := before[c.Name]
		if j == nil {
			j = &job{name: c.Name}
		}
		if now := j.inForce(); now == nil || now.Content != c.Content {
			if s.cron.started() { // else the spec of one job would keep all rows of its table
				c = new(*c)
			}
			made = append(made, s.newSpec(c))
		}
		next[c.Name] = j
	}

	at := s.clock.Now()
	var retimed []*job
	for _, sp := range made {
		s.metrics.add(sp.Name)
		if s.cron.started() {
			s.showNext(sp, at)
		}
		if j := next[sp.Name]; j.put(sp, at) {
			s.metrics.tally(sp.Name).restarted(at)
			retimed = append(retimed, j)
		}
	}
	s.roster.Store(&next)
	for _, j := range retimed {
		if s.cron.started() {
			s.cron.retime(j)
			if j.staysClaimed() { // else the claim of a wake before may be under way, or a run without one
				s.wakeAhead(j)
			}
		}
	}
	for name, j := range before {
		if next[name] != nil {
			continue
		}
		s.cron.leave(name)
		if j.mayHaveLedger() {
			s.looker.registrar.gone.Store(name, j)
		}
		j.put(nil, at)
		s.metrics.remove(name)
		s.heartbeat.forget(name)
	}
	s.table.Store(t)
	s.slots.setLimit(t.MaxRunning)
	beat.Kick(s.newTable)
	s.looker.nudges.nudge() // so that Redis is told of new jobs now
	if s.cron.started() {
		s.logSwap(t, before, next, made)
	}
}

// logSwap logs which jobs came, changed and left.
func (s *Sidecar) logSwap(t *config.Table, before, next roster, made []*spec) {
	added, changed, removed := []string{}, []string{}, []string{}
	for _, sp := range made {
		if before[sp.Name] == nil {
			added = append(added, sp.Name)
		} else {
			changed = append(changed, sp.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if next[name] == nil {
			removed = append(removed, name)
		}
	}
	s.log.Info("table reloaded", "added", added, "changed", changed, "removed", removed, "table", t.Hash,
		"jobs", len(next))
}

// setBack arms all timers anew after the clock was set back, to t or later: gocron does not move an armed timer to an
// earlier instant. For ticks that come due before such a timer can go off, setBack wakes the jobs itself.
func (s *Sidecar) setBack(t time.Time) {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	if s.accepting.Err() != nil {
		return
	}
	for _, j := range s.jobs() {
		j.setBack(t)
	}
	s.cron.rearm()
	for _, j := range s.jobs() {
		s.wakeAhead(j)
	}
}
