package view

import (
	"encoding/json"
	"time"

	"github.com/solotick/solotick/sidecar/service"
)

// Timer is a pending timer in a list. Its request is not shown, because it may hold secrets.
type Timer struct {
	ID       string `json:"id"`
	At       string `json:"at"`
	Schedule string `json:"schedule,omitempty"` // in a list alone, as is the zone; "" = it has none
	TimeZone string `json:"timeZone,omitempty"`
}

// WholeTimer is a timer with its definition, with which it can be set again.
type WholeTimer struct {
	Timer
	Definition json.RawMessage `json:"definition"`
}

// NewTimer returns a timer in JSON.
func NewTimer(id string, at time.Time) Timer { return Timer{ID: id, At: Stamp(at)} }

// NewTimers returns pending timers in JSON, in their order; never null.
func NewTimers(waiting []service.TimerState) []Timer {
	return Each(waiting, func(t service.TimerState) Timer { return Timer{t.ID, Stamp(t.At), t.Schedule, t.TimeZone} })
}

// DeletedTimers is the answer to the deletion of a group of timers.
type DeletedTimers struct {
	Group   string `json:"group"`
	Deleted int    `json:"deleted"`
}

// DeletedTimer is the answer to the deletion of a timer.
type DeletedTimer struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}
