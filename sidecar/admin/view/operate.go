package view

import (
	"time"

	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/lock"
)

// Triggered is what was made of a request to run a job now.
type Triggered struct {
	Job    string `json:"job"`
	Tick   string `json:"tick"`
	ID     string `json:"id"`
	Result *Entry `json:"result,omitempty"` // of trigger --wait alone
}

// NewTriggered is what was made due by hand, in JSON.
func NewTriggered(d lock.Due) Triggered {
	return Triggered{Job: d.Job, Tick: Stamp(d.Tick), ID: d.Nonce}
}

// Paused is a job that was paused.
type Paused struct {
	Job    string `json:"job"`
	Reason string `json:"reason"`
	Until  string `json:"until,omitempty"`
}

// NewPaused is a pause in JSON. The reason is as it is kept.
func NewPaused(job, reason string, until time.Time) Paused {
	return Paused{job, text.OneLine(reason), Stamp(until)}
}

// Resumed is a job that was to be resumed.
type Resumed struct {
	Job     string `json:"job"`
	Resumed bool   `json:"resumed"` // whether there was such a pause
}

// Drained is what a replica has to say of its drain.
type Drained struct {
	Drained bool   `json:"drained"` // whether all its runs have ended
	Replica string `json:"replica"`
	TookMS  int64  `json:"tookMs"`
}
