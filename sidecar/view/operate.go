package view

import (
	"strings"
	"time"

	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
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

// Cancelled is the answer to a cancel.
type Cancelled struct {
	Job     string   `json:"job"`
	Runs    []string `json:"runs"`              // that were told to end
	Waiting []string `json:"waiting,omitempty"` // ticks that waited by hand, and were dropped
}

// NewCancelled returns the answer to a cancel in JSON.
func NewCancelled(job string, runs []string, waited []time.Time) Cancelled {
	return Cancelled{job, append([]string{}, runs...), Each(waited, Stamp)}
}

// Drained is a replica's answer to a drain.
type Drained struct {
	Drained bool   `json:"drained"` // whether all its runs have ended
	Replica string `json:"replica"`
	TookMS  int64  `json:"tookMs"`
}

// Event is a request by hand that had an effect.
type Event struct {
	At     string   `json:"at"`
	By     string   `json:"by,omitempty"`
	What   string   `json:"what"`
	Job    string   `json:"job,omitempty"`
	All    bool     `json:"all,omitempty"`  // whether it was a command for all jobs
	Jobs   []string `json:"jobs,omitempty"` // of such a command
	Until  string   `json:"until,omitempty"`
	Tick   string   `json:"tick,omitempty"`
	Count  int      `json:"count,omitempty"`
	Runs   []string `json:"runs,omitempty"` // of a cancel
	Reason string   `json:"reason,omitempty"`
}

// NewEvents returns acts in JSON, in their order; never null.
func NewEvents(acts []service.Act) []Event {
	return Each(acts, func(a service.Act) Event {
		e := Event{At: Stamp(a.At), By: a.By, What: a.What, Until: Stamp(a.Until), Tick: Stamp(a.Tick),
			Count: a.Count, Runs: a.Runs, Reason: a.Reason}
		if a.What == "rerun" {
			e.Count = 0 // which is always one
		}
		if e.All = a.All != ""; e.All {
			e.Jobs = a.Jobs
		} else {
			e.Job = a.Jobs[0]
		}
		return e
	})
}

// Beaten is the answer to a heartbeat of an app.
type Beaten struct {
	Run string `json:"run"`
	// HeartbeatMS is for how many milliseconds the app may work, counted from when it sent the heartbeat.
	HeartbeatMS int64 `json:"heartbeatMs"`
}

// Finished is the answer to the report with which an app ends a run.
type Finished struct {
	Run     string `json:"run"`
	Outcome string `json:"outcome"`
}

// Granted is the answer to an app that asked for a tick, and may run it.
type Granted struct {
	Job          string `json:"job"`
	Tick         string `json:"tick"`
	Run          string `json:"run"`
	Token        string `json:"token"` // for its reports
	FencingToken int64  `json:"fencingToken"`
	HeartbeatMS  int64  `json:"heartbeatMs"`
	Since        string `json:"since,omitempty"`
}

// NewGranted returns the answer to an app that runs a tick, and has to send a heartbeat at least that often.
func NewGranted(r execute.Run, token string, heartbeat time.Duration) Granted {
	return Granted{Job: r.Job, Tick: Stamp(r.Tick), Run: r.ID, Token: token, FencingToken: r.Token,
		HeartbeatMS: heartbeat.Milliseconds(), Since: Stamp(r.Since)}
}

// NotGranted is why an app that asked for a tick must not run it.
type NotGranted struct {
	Reason  string // as in the metric solotick_skips_total, or observed
	By      string // the replica that has the tick; "" = that is not known, or none
	Unknown bool   // the replica could not tell, and the app may ask again
}

// Error implements error.
func (n *NotGranted) Error() string {
	return "the tick is not for this app: " + strings.ReplaceAll(n.Reason, "_", " ") + text.Between(", by ", n.By, "")
}
