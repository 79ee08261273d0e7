package view

import (
	"maps"
	"slices"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

// Timer is a timer that waits. What it will send is not shown: it may hold secrets.
type Timer struct {
	ID string `json:"id"`
	At string `json:"at"`
}

// NewTimer is a timer in JSON.
func NewTimer(id string, at time.Time) Timer { return Timer{id, Stamp(at)} }

// NewTimers are the timers that wait in JSON, in their order; never null.
func NewTimers(waiting []lock.TimerState) []Timer {
	rows := make([]Timer, 0, len(waiting))
	for _, t := range waiting {
		rows = append(rows, NewTimer(t.ID, t.At))
	}
	return rows
}

// DeletedTimer is a timer that was taken back.
type DeletedTimer struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

// SetJob is a job that was made, or changed, through the API.
type SetJob struct {
	Job     string `json:"job"`
	Created bool   `json:"created"`
}

// DeletedJob is a job, made through the API, that was taken away.
type DeletedJob struct {
	Job     string `json:"job"`
	Deleted bool   `json:"deleted"`
}

// Jobs are the jobs of a table, in its order, and after them, by name, those made through the API. Of two of one name the
// table's is the one; what another version made and this one cannot read is left out.
func Jobs(t *config.Table, sources map[string][]byte) []config.Job {
	all := slices.Clone(t.Jobs)
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if slices.ContainsFunc(t.Jobs, func(j config.Job) bool { return j.Name == name }) {
			continue
		}
		if j, err := config.ParseJob(name, sources[name]); err == nil {
			all = append(all, *j)
		}
	}
	return all
}
