package view

import (
	"strings"
	"time"

	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/execute"
)

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
