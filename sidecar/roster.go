package sidecar

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/solotick/solotick/config"
)

// roster is the jobs at work, by name: those of the table and those made through the API. It is replaced as a whole and
// never changed.
type roster map[string]*job

// job is the job of that name; nil when there is none.
func (s *Sidecar) job(name string) *job { return (*s.roster.Load())[name] }

// jobs are those at work.
func (s *Sidecar) jobs() roster { return *s.roster.Load() }

// Table is the table in force.
func (s *Sidecar) Table() *config.Table { return s.table.Load() }

// Jobs are the jobs of the table in force, in its order, and after them those made through the API.
func (s *Sidecar) Jobs() []config.Job {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	return together(s.Table(), s.dynamic)
}

// ReloadState is what came of the last reload, or of the start.
type ReloadState struct {
	At  time.Time // on this machine's clock
	Err error     // why the table before stays in force; nil = it does not
}

// LastReload tells what came of the last Reload.
func (s *Sidecar) LastReload() ReloadState { return *s.reloaded.Load() }

// errDraining is why a replica takes nothing new.
var errDraining = errors.New("draining")

// Reload puts another table in force, made whole before anything at work is touched. Jobs that are the same in both keep
// their timers and runs; runs of the others go on as they began. With an error, of the load or its own, nothing changes;
// it is logged, counted and shown.
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
		err = s.use(next, s.dynamic)
	}
	before := s.reloaded.Swap(&ReloadState{At: s.wall(), Err: err})
	s.metrics.reloaded(s.wall(), err == nil)
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
	var problems config.Problems
	if !errors.As(err, &problems) {
		s.log.Error("the table is not reloaded: the one before stays in force", "err", err)
		return
	}
	s.log.Error("the table is not reloaded: the one before stays in force", "problems", len(problems))
	for _, p := range problems {
		s.log.Error("problem in the table", "file", p.File, "line", p.Line, "column", p.Column, "err", p.Message)
	}
}

// SetDynamic says which jobs there are besides the table's. Of two jobs of one name the table's is the one.
func (s *Sidecar) SetDynamic(jobs []config.Job) error {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	if err := s.use(s.Table(), jobs); err != nil {
		return err
	}
	s.dynamic = jobs
	return nil
}

// together are the jobs of a table and those besides it that it has not.
func together(t *config.Table, dynamic []config.Job) []config.Job {
	all := slices.Clone(t.Jobs)
	named := map[string]bool{}
	for _, c := range t.Jobs {
		named[c.Name] = true
	}
	for _, c := range dynamic {
		if !named[c.Name] {
			all = append(all, c)
		}
	}
	return all
}

// use puts jobs to work. All that can fail comes first. A job that changed gets a new timer, which takes the old one's
// ticks over where both have the same: none is lost in between, and none is fired twice.
func (s *Sidecar) use(t *config.Table, dynamic []config.Job) error {
	if s.accepting.Err() != nil {
		return errDraining
	}
	before, next, reloaded := s.jobs(), roster{}, t != s.Table()
	var made []*job
	for _, c := range together(t, dynamic) {
		j := before[c.Name]
		if j == nil || j.Content != c.Content {
			j = s.newJob(c)
			made = append(made, j)
			s.metrics.add(c.Name) // before it is armed, which shows its next tick
		}
		next[c.Name] = j
	}
	if s.cron != nil {
		for i, j := range made {
			if err := s.arm(j); err != nil {
				for _, armed := range made[:i] {
					s.disarm(armed)
				}
				for _, j := range made {
					if before[j.Name] == nil {
						s.metrics.remove(j.Name)
					}
				}
				return err
			}
		}
	}

	for _, j := range made {
		if old := before[j.Name]; old != nil {
			old.passOn(j)
		}
	}
	s.roster.Store(&next)
	for name, j := range before {
		if next[name] == j {
			continue
		}
		s.disarm(j)
		if next[name] == nil {
			j.passOn(nil)
			s.metrics.remove(name)
			s.heart.forget(name)
			s.watcher.gone.Store(name, j)
		}
	}
	s.table.Store(t)
	s.admission.setLimit(t.MaxRunning)
	select {
	case s.newTable <- struct{}{}:
	default: // it is about to look
	}
	s.watcher.nudge("") // so that Redis is told of new jobs now
	if s.cron != nil {
		s.swapped(t, before, next, made, reloaded)
	}
	return nil
}

// swapped says which jobs are at work now that were not, and which are not any more.
func (s *Sidecar) swapped(t *config.Table, before, next roster, made []*job, reloaded bool) {
	added, changed, removed := []string{}, []string{}, []string{}
	for _, j := range made {
		if before[j.Name] == nil {
			added = append(added, j.Name)
		} else {
			changed = append(changed, j.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if next[name] == nil {
			removed = append(removed, name)
		}
	}
	msg := "dynamic jobs changed"
	switch {
	case reloaded:
		msg = "table reloaded"
	case len(added)+len(changed)+len(removed) == 0:
		return
	}
	s.log.Info(msg, "added", added, "changed", changed, "removed", removed, "table", t.Hash, "jobs", len(next))
}

// newJob makes a job of a row of the table.
func (s *Sidecar) newJob(c config.Job) *job {
	j := &job{Job: c, label: c.Name, series: newSeries(&c), executor: s.executor(c)}
	if c.Dynamic {
		j.executor = admitted{j.executor, &j.Job, s.Table}
	}
	j.life, j.end = context.WithCancel(context.Background())
	return j
}

// arm puts a job's ticks from now on to work.
func (s *Sidecar) arm(j *job) error {
	now := s.clock.Now()
	j.mu.Lock()
	j.taken = j.series.newest(now) // what came due before is not its to take
	j.mu.Unlock()
	s.showNext(j, now)
	return s.time(j)
}

// time gives a job to gocron, on the cluster clock and with our schedule.
func (s *Sidecar) time(j *job) error {
	timer, err := s.cron.NewJob(gocron.CronJob("", false), gocron.NewTask(s.wake, j.Name), gocron.WithName(j.Name),
		gocron.WithCronImplementation(&j.series))
	if err != nil {
		return fmt.Errorf("scheduling job %q: %w", j.Name, err)
	}
	j.timer = timer.ID()
	return nil
}

// retime gives all jobs new timers after the clock was set back, to t or later: gocron, once armed, is not armed for an
// earlier instant. What is due before such a timer can go off is woken for here.
func (s *Sidecar) retime(t time.Time) {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	if s.accepting.Err() != nil {
		return
	}
	for _, j := range s.jobs() {
		j.setBack(t)
		s.disarm(j)
		if err := s.time(j); err != nil {
			s.log.Error("a job has lost its timer: its ticks are taken late, and of those a second apart only some", "job", j.Name, "err", err)
		}
		if j.overdue(s.clock.Now().Add(ahead)) {
			s.wake(j.Name)
		}
	}
}

// disarm takes a job from gocron. A timer that goes off at this moment asks for the job of that name, and finds the new one.
func (s *Sidecar) disarm(j *job) {
	if s.cron == nil {
		return
	}
	if err := s.cron.RemoveJob(j.timer); err != nil {
		s.log.Warn("a timer could not be removed", "job", j.Name, "err", err)
	}
}
