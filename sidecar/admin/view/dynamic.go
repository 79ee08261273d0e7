package view

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/service"
)

// Timer is a timer that waits. In lists what it will send is not shown: it may hold secrets.
type Timer struct {
	ID string `json:"id"`
	At string `json:"at"`
}

// WholeTimer is a timer with its definition, from which it can be set again.
type WholeTimer struct {
	Timer
	Definition json.RawMessage `json:"definition"`
}

// NewWholeTimer returns a timer with source, the definition that Redis keeps.
func NewWholeTimer(id string, at time.Time, source []byte) WholeTimer {
	return WholeTimer{NewTimer(id, at), source}
}

// WholeJob is a job in JSON. A job that was made through the API has its definition, from which it can be made again.
type WholeJob struct {
	Job
	Definition json.RawMessage `json:"definition,omitempty"`
}

// Definition returns the definition of a job that was made through the API: the object that Redis keeps, with the job's name.
func Definition(j config.Job) json.RawMessage {
	if !j.Dynamic || len(j.Source) == 0 {
		return nil
	}
	return append(fmt.Appendf(nil, `{"name":%q,`, j.Name), j.Source[1:]...) // a job's name needs no escapes
}

// NewTimer is a timer in JSON.
func NewTimer(id string, at time.Time) Timer { return Timer{id, Stamp(at)} }

// NewTimers are the timers that wait in JSON, in their order; never null.
func NewTimers(waiting []service.TimerState) []Timer {
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
