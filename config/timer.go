package config

import (
	"fmt"
	"regexp"
	"sync"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

const (
	// maxTimerID is longer than the longest name of a job: applications combine ids of their own into one.
	maxTimerID = 128

	// furthest is how far ahead a timer may be: ten years with their leap days.
	furthest = 3653 * 24 * time.Hour

	// clockSlack is how far the clock of a replica that reads a timer may be behind that of the replica that accepted
	// it.
	clockSlack = 24 * time.Hour
)

// Timer is a request that is sent once, at a given time.
type Timer struct {
	ID string
	At time.Time // UTC, whole milliseconds; one in the past means now
	// Job runs at that time. The timer sets its HTTP, Timeout, Guarantee, StartRetries and Retry; ConcurrencyPolicy is
	// Allow; Lock and the rest have their defaults. Its name is timer:<id>, and it has no schedule.
	Job Job
	// Source is the definition in Redis: the timer's keys as JSON, always in the same form, with at and never after.
	// ParseTimer reads it again.
	Source []byte
}

var timerID = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$`)

// IsTimerID reports whether a timer can have that id.
func IsTimerID(id string) bool { return len(id) <= maxTimerID && timerID.MatchString(id) }

// timerDecoder decodes one timer after the other. Describing its keys is most of the work, and is done once.
type timerDecoder struct {
	*decoder
	at    time.Time
	after time.Duration
}

// timerDecoders are those that are not in use.
var timerDecoders = sync.Pool{New: func() any {
	d := &timerDecoder{decoder: newDecoder(theTimer, time.Time{})}
	d.Root = d.timerKeys(&d.at, &d.after)
	return d
}}

var theTimer = strict.Subject{Noun: "a timer", Text: "the body", Begin: "begin with at: or after:, and http:",
	Limit: MaxSource, Most: "64 KiB", Merge: shareInDefaults, Literal: true, NoAliases: noAliases}

// timerKeys are the keys of a job that make sense for a single run, and at and after.
func (d *decoder) timerKeys(at *time.Time, after *time.Duration) []strict.Key {
	ahead := func(v time.Duration) string {
		if v > furthest {
			return "must be at most ten years"
		}
		return strict.Between(0, furthest)(v)
	}
	out := []strict.Key{
		{Name: "at", Type: strict.Time(at), Default: "at or after",
			Example: `"2026-12-24T18:00:00Z"`, Show: strict.Shown, Also: "time when due"},
		{Name: "after", Type: strict.Duration(after, ahead), Default: "at or after",
			Example: "90s", Show: strict.Shown, Also: "in delay"},
	}
	for _, k := range jobKeys(&d.draft, d.calendars) {
		switch k.Name {
		case "guarantee":
			k.Form = strict.Words(AtMostOnce, AtLeastOnce)
		case "http":
			k = withoutFiles(k)
		case "timeout", "startRetries", "retry":
		default:
			continue
		}
		out = append(out, k)
	}
	return out
}

// ParseTimer decodes a timer of the given id, in JSON or YAML, as strictly as a job. after counts from now. The error
// is always a Problems, whose File is "body".
func ParseTimer(id string, data []byte, now time.Time) (*Timer, error) {
	d := timerDecoders.Get().(*timerDecoder)
	t := d.parse(id, data, now)
	if err := d.Found(); err != nil {
		return nil, err // and the decoder, which has seen problems, is not used again
	}
	t.Job = d.job.Job
	timerDecoders.Put(d)
	return t, nil
}

func (d *timerDecoder) parse(id string, data []byte, now time.Time) *Timer {
	d.now, d.Warnings = now, nil
	d.begin(fmt.Sprintf("timer %s: ", strict.Quoted(id)))
	d.job.Name, d.job.Dynamic, d.job.ConcurrencyPolicy = "timer:"+id, true, Allow
	root, found := d.document(data, "http")
	switch { // as in IsTimerID
	case len(id) > maxTimerID:
		d.File("", "%sthe id must have at most %d characters", d.Scope, maxTimerID)
	case !timerID.MatchString(id):
		d.File("", "%sthe id must be letters, digits, -, . and _, and begin and end with a letter or digit", d.Scope)
	}
	if root != nil {
		d.checkJob()
		d.checkMoment(root, found, d.at)
	}
	if found["after"] != nil {
		d.at = now.Add(d.after)
	}
	t := &Timer{ID: id, At: d.at.UTC().Truncate(time.Millisecond)}
	if len(d.Problems) == 0 {
		t.Source = d.canonical(root, field{"at", t.At.Format(time.RFC3339Nano)})
	}
	return t
}

// checkMoment checks that the timer has one time, and that it is not too far away.
func (d *decoder) checkMoment(root *yaml.Node, found map[string]*yaml.Node, at time.Time) {
	const form = `at: "2026-12-24T18:00:00Z", or after: 90s`
	switch when := d.job.at["at"]; {
	case found["at"] == nil && found["after"] == nil:
		d.Fail(root, form, "at or after is missing")
	case strict.Present(found["at"]) && strict.Present(found["after"]):
		d.Fail(found["after"], "keep one of them", "at says already when")
	case !when.OK():
	case at.After(d.now.Add(furthest + clockSlack)):
		d.Bad(when, "", "must be at most ten years ahead")
	case at.Year() < 1970:
		d.Bad(when, "", "must not be before 1970")
	}
}
