package view

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/service"
)

// Timer is a pending timer in a list. Its request is not shown, because it may hold secrets.
type Timer struct {
	ID string `json:"id"`
	At string `json:"at"`
}

// WholeTimer is a timer with its definition, with which it can be set again.
type WholeTimer struct {
	Timer
	Definition json.RawMessage `json:"definition"`
}

// WholeJob is a job in JSON, with what it calls or runs and its settings, in words. A dynamic job has its definition,
// with which it can be created again.
type WholeJob struct {
	Job
	Target     string          `json:"target,omitempty"`
	Settings   string          `json:"settings"`
	Definition json.RawMessage `json:"definition,omitempty"`
}

// Definition returns the definition of a dynamic job: the object in Redis, with the job's name.
func Definition(j config.Job) json.RawMessage {
	if !j.Dynamic || len(j.Source) == 0 {
		return nil
	}
	return append(fmt.Appendf(nil, `{"name":%q,`, j.Name), j.Source[1:]...) // a job's name needs no escapes
}

// NewTimer returns a timer in JSON.
func NewTimer(id string, at time.Time) Timer { return Timer{id, Stamp(at)} }

// NewTimers returns pending timers in JSON, in their order; never null.
func NewTimers(waiting []service.TimerState) []Timer {
	return each(waiting, func(t service.TimerState) Timer { return NewTimer(t.ID, t.At) })
}

// DeletedTimer is the answer to the deletion of a timer.
type DeletedTimer struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

// SetJob is the answer to the creation or change of a dynamic job.
type SetJob struct {
	Job     string `json:"job"`
	Created bool   `json:"created"`
}

// DeletedJob is the answer to the deletion of a dynamic job.
type DeletedJob struct {
	Job     string `json:"job"`
	Deleted bool   `json:"deleted"`
}
