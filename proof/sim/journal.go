package sim

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// journal takes a sidecar's log in: each outcome of a wake is one line of it.
type journal struct{ replica *replica }

// outcome is how a wake ended: fired, or skipped for a reason.
type outcome struct {
	replica *replica
	job     string
	tick    time.Time
	reason  string // "fired", or why not
	timer   bool   // a timer's wake
	at      time.Duration
}

// Enabled implements slog.Handler.
func (j *journal) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelDebug }

// WithAttrs implements slog.Handler.
func (j *journal) WithAttrs([]slog.Attr) slog.Handler { return j }

// WithGroup implements slog.Handler.
func (j *journal) WithGroup(string) slog.Handler { return j }

// Handle implements slog.Handler. The dead do not talk.
func (j *journal) Handle(_ context.Context, rec slog.Record) error {
	if j.replica.isDead() {
		return nil
	}
	a := map[string]string{}
	rec.Attrs(func(at slog.Attr) bool {
		a[at.Key] = at.Value.String()
		return true
	})
	w := j.replica.world
	extra := ""
	for _, k := range []string{"kind", "reason", "outcome", "ticks", "before", "err", "cause", "by"} {
		if a[k] != "" {
			extra += " " + k + "=" + a[k]
		}
	}
	w.note(j.replica, rec.Message, a["job"], clock(a["tick"]), "", extra)
	tick, err := time.Parse(time.RFC3339, a["tick"])
	if err != nil {
		return nil
	}
	if rec.Message == "finished" && a["replica"] != "" {
		w.says(saying{replica: j.replica, job: a["job"], run: a["run"], what: tookOver})
	}
	if rec.Message == "finished" {
		w.redis.claims.finished(j.replica, a["job"], tick)
	}
	o := outcome{replica: j.replica, job: a["job"], tick: tick, timer: a["kind"] == "", at: w.now()}
	switch rec.Message {
	case "fired":
		o.reason = "fired"
	case "skipped":
		o.reason = a["reason"]
	case "finished":
		w.finished(j.replica, a["job"], a["outcome"])
		return nil
	default:
		return nil
	}
	w.outcome(o)
	return nil
}

// clock is the part of a time stamp that differs from others.
func clock(s string) string {
	_, t, _ := strings.Cut(s, "T")
	return strings.TrimSuffix(t, "Z")
}
