package view

import (
	"time"

	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/lock"
)

// Triggered is the answer to a trigger.
type Triggered struct {
	Job    string `json:"job"`
	Tick   string `json:"tick"`
	ID     string `json:"id"`
	Result *Entry `json:"result,omitempty"` // of trigger --wait alone
}

// NewTriggered returns the answer to a trigger in JSON.
func NewTriggered(d lock.Due) Triggered {
	return Triggered{Job: d.Job, Tick: Stamp(d.Tick), ID: d.Nonce}
}

// Paused is the answer to a pause.
type Paused struct {
	Job    string `json:"job"`
	Reason string `json:"reason"`
	Until  string `json:"until,omitempty"`
}

// NewPaused returns the answer to a pause in JSON. The reason is the one in Redis.
func NewPaused(job, reason string, until time.Time) Paused {
	return Paused{job, text.OneLine(reason), Stamp(until)}
}

// Resumed is the answer to a resume.
type Resumed struct {
	Job     string `json:"job"`
	Resumed bool   `json:"resumed"` // whether the pause existed
}

// Drained is a replica's answer to a drain.
type Drained struct {
	Drained bool   `json:"drained"` // whether all its runs have ended
	Replica string `json:"replica"`
	TookMS  int64  `json:"tookMs"`
}
