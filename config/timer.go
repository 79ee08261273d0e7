package config

import (
	"regexp"
	"time"

	"go.yaml.in/yaml/v4"
)

const (
	// maxTimerID is longer than a job's name may be: applications make an id of ids of their own.
	maxTimerID = 128

	// furthest is how far ahead a timer may be: ten years with their leap days.
	furthest = 3653 * 24 * time.Hour

	// clockSlack is by how much the clock of who reads a timer again may be behind that of who took it.
	clockSlack = 24 * time.Hour
)

// Timer is a request that is made once, at a moment.
type Timer struct {
	ID string
	At time.Time // UTC, whole milliseconds; one in the past means now
	// Job is what runs then. The timer sets its HTTP, Timeout, Guarantee, StartRetries and Retry; ConcurrencyPolicy is
	// Allow; Lock and the rest have their defaults. It is called timer:<id> and has no schedule.
	Job Job
	// Source is what Redis keeps: the timer's keys as JSON, always in the same form, with at and never after. ParseTimer
	// reads it again.
	Source []byte
}

var timerID = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$`)

// IsTimerID says whether a timer can have that id.
func IsTimerID(id string) bool { return len(id) <= maxTimerID && timerID.MatchString(id) }

// timerKeys are those of a job that make sense for one run, and when it is.
func (d *decoder) timerKeys(at *time.Time, after *time.Duration) []key {
	out := []key{
		{name: "at", kind: kindTime, def: "at or after", example: `"2026-12-24T18:00:00Z"`,
			show: shown, aka: []string{"time", "when", "due"},
			decode: func(d *decoder, e entry) { d.time(e, at) }},
		{name: "after", kind: kindDuration, def: "at or after", example: "90s",
			show: shown, aka: []string{"in", "delay"},
			decode: func(d *decoder, e entry) {
				d.duration(e, after, func(v time.Duration) string {
					if v > furthest {
						return "must be at most ten years"
					}
					return between(0, furthest)(v)
				})
			}},
	}
	for _, k := range jobKeys() {
		switch k.name {
		case "guarantee":
			k.form = words(AtMostOnce, AtLeastOnce)
		case "http", "timeout", "startRetries", "retry":
		default:
			continue
		}
		out = append(out, k)
	}
	return out
}

// ParseTimer decodes a timer that the API was given under an id, in JSON or YAML, strictly like a job. now is when
// after begins. Its error is always a Problems, whose File is "body".
func ParseTimer(id string, data []byte, now time.Time) (*Timer, error) {
	of := subject{noun: "a timer", text: "the body", begin: "begin with at: or after:, and http:", limit: MaxSource, most: "64 KiB", api: true}
	var at time.Time
	var after time.Duration
	d := newDecoder(of, nil, now)
	d.root = d.timerKeys(&at, &after)
	d.begin("timer", id)
	d.job.Name, d.job.Dynamic, d.job.ConcurrencyPolicy = "timer:"+id, true, Allow
	root, found := d.document(data, "http")
	switch { // as in IsTimerID
	case len(id) > maxTimerID:
		d.file("", "%sthe id must have at most %d characters", d.scope, maxTimerID)
	case !timerID.MatchString(id):
		d.file("", "%sthe id must be letters, digits, -, . and _, and begin and end with a letter or digit", d.scope)
	}
	if root != nil {
		d.checkJob()
		d.checkMoment(root, found, at)
	}
	if found["after"] != nil {
		at = now.Add(after)
	}
	t := &Timer{ID: id, At: at.UTC().Truncate(time.Millisecond)}
	if len(d.problems) == 0 {
		t.Source = d.canonical(root, field{"at", t.At.Format(time.RFC3339Nano)})
	}
	if err := d.found(); err != nil {
		return nil, err
	}
	t.Job = d.job.Job
	return t, nil
}

// checkMoment asks for one moment within reach.
func (d *decoder) checkMoment(root *yaml.Node, found map[string]*yaml.Node, at time.Time) {
	const form = `at: "2026-12-24T18:00:00Z", or after: 90s`
	switch when := d.job.at["at"]; {
	case found["at"] == nil && found["after"] == nil:
		d.fail(root, form, "at or after is missing")
	case present(found["at"]) && present(found["after"]):
		d.fail(found["after"], "keep one of them", "at says already when")
	case !when.ok():
	case at.After(d.now.Add(furthest + clockSlack)):
		d.bad(when, "", "must be at most ten years ahead")
	case at.Year() < 1970:
		d.bad(when, "", "must not be before 1970")
	}
}
