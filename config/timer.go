package config

import (
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/config/strict"
)

const (
	// MaxSource bounds the definition of a timer, as the API gets it and as Redis keeps it, in bytes.
	MaxSource = 64 << 10

	// noAliases is the message for an alias. Redis keeps a timer with its aliases expanded, so a few of them could make
	// a short text very long.
	noAliases = "an alias (*…) is allowed only in the table"

	// maxTimerID is longer than the longest name of a job: applications combine ids of their own into one.
	maxTimerID = 128

	// furthest is how far ahead a timer may be: ten years with their leap days.
	furthest = 3653 * 24 * time.Hour

	// clockSlack is how far the clock of a replica that reads a timer may be behind that of the replica that accepted
	// it.
	clockSlack = 24 * time.Hour
)

// Timer is a request that is sent once, at a given time, or again and again, by a schedule.
type Timer struct {
	ID string
	At time.Time // of the first one: UTC, whole milliseconds; one in the past means now
	// Repeats has the times of a timer with a schedule; nil = it is sent once.
	Repeats *schedule.Schedule
	// Job runs at that time. The timer sets its HTTP, Timeout, Guarantee, StartRetries and Retry; ConcurrencyPolicy is
	// Allow; Lock and the rest have their defaults. Its name is timer:<id>, and it has no schedule.
	Job Job
	// Source is the definition in Redis: the timer's keys as JSON, always in the same form, with at or the schedule,
	// and never with after. ParseTimer reads it again.
	Source []byte
}

// Next is the first time of a timer's schedule after t: zero if there is none, or none within ten years.
func (t *Timer) Next(after time.Time) time.Time {
	if next := t.Repeats.Next(after); !next.After(after.Add(furthest)) {
		return next
	}
	return time.Time{}
}

// IsTimerID reports whether a timer can have that id.
func IsTimerID(id string) bool { return len(id) <= maxTimerID && isTimerID(id) }

func isTimerID(id string) bool {
	const inner = "-._"
	return id != "" && strings.Trim(id, inner) == id && !strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(inner, r))
	})
}

// timerDecoder decodes one timer after the other. Describing its keys is most of the work, and is done once.
type timerDecoder struct {
	*decoder
	id    string
	at    time.Time
	after time.Duration
}

// timerDecoders are those that are not in use.
var timerDecoders = sync.Pool{New: func() any {
	d := &timerDecoder{decoder: newDecoder(theTimer, time.Time{})}
	d.Root = d.timerKeys(&d.id, &d.at, &d.after)
	return d
}}

var theTimer = strict.Subject{Noun: "a timer", Text: "the body", Begin: "begin with at:, after: or schedule:",
	Limit: MaxSource, Most: "64 KiB", Merge: shareInDefaults, Literal: true, NoAliases: noAliases}

// timerKeys are the keys of a job that a timer can have, and id, at and after.
func (d *decoder) timerKeys(id *string, at *time.Time, after *time.Duration) []strict.Key {
	ahead := func(v time.Duration) string {
		if v > furthest {
			return "must be at most ten years"
		}
		return strict.Between(0, furthest)(v)
	}
	out := []strict.Key{
		{Name: "at", Type: strict.Time(at), Default: "at, after or schedule",
			Example: `"2026-12-24T18:00:00Z"`, Show: strict.Shown, Also: "time when due"},
		{Name: "after", Type: strict.Duration(after, ahead), Default: "at, after or schedule",
			Example: "90s", Show: strict.Shown, Also: "in delay"},
		{Name: "id", Type: strict.NonEmpty(id), Default: "that of the request", Example: "x", Show: strict.Shown},
	}
	for _, k := range jobKeys(&d.draft, d.calendars) {
		switch k.Name {
		case "guarantee":
			k.Form = strict.Words(AtMostOnce, AtLeastOnce)
		case "http":
			k = withoutFiles(k)
		case "schedule":
			k.Default = "at, after or schedule"
		case "timeZone", "start", "end", "timeout", "startRetries", "retry":
		default:
			continue
		}
		out = append(out, k)
	}
	return out
}

// ParseTimer decodes a timer of the given id, in JSON or YAML, as strictly as a job. after counts from now, and a
// schedule's first time comes after it. The error is always a Problems, whose File is "body".
func ParseTimer(id string, data []byte, now time.Time) (*Timer, error) {
	d := timerDecoders.Get().(*timerDecoder)
	t := d.parse(id, d.ReadJSON(data), data, now)
	if len(d.Problems) > 0 { // at places that may be unknown, and this decoder is not used again
		d = timerDecoders.New().(*timerDecoder)
		t = d.parse(id, nil, data, now)
	}
	if err := d.Found(); err != nil {
		return nil, err
	}
	t.Job = d.job.Job
	t.Job.Schedule = nil
	timerDecoders.Put(d)
	return t, nil
}

// parse decodes the tree of a text; nil = it is still to be read.
func (d *timerDecoder) parse(id string, tree *yaml.Node, data []byte, now time.Time) *Timer {
	d.now, d.Warnings, d.id = now, nil, ""
	d.begin("timer " + strict.Quoted(id) + ": ")
	d.job.Name, d.job.ConcurrencyPolicy = "timer:"+id, Allow
	root, found := d.document(tree, data)
	switch { // as in IsTimerID
	case len(id) > maxTimerID:
		d.File("", "%sthe id must have at most %d characters", d.Scope, maxTimerID)
	case !isTimerID(id):
		d.File("", "%sthe id must be letters, digits, -, . and _, and begin and end with a letter or digit", d.Scope)
	}
	if d.id != "" && d.id != id {
		d.Fail(found["id"], "leave it out", "id is not that of the request")
	}
	if root != nil {
		d.checkJob()
		d.checkMoment(root, found, d.at)
	}
	t := &Timer{ID: id, Repeats: d.job.Schedule}
	switch {
	case found["after"] != nil:
		d.at = now.Add(d.after)
	case t.Repeats != nil:
		d.at = t.Next(now)
	}
	t.At = d.at.UTC().Truncate(time.Millisecond)
	switch {
	case len(d.Problems) > 0:
	case t.Repeats != nil:
		t.Source = d.canonical(root)
	default:
		t.Source = d.canonical(root, field{"at", t.At.Format(time.RFC3339Nano)})
	}
	return t
}

// checkMoment checks that the timer has one time or a schedule, and that a time is not too far away.
func (d *decoder) checkMoment(root *yaml.Node, found map[string]*yaml.Node, at time.Time) {
	const form = `at: "2026-12-24T18:00:00Z", after: 90s, or schedule: "0 9 * * *"`
	absent := func(k string) bool { return !strict.Present(found[k]) }
	given := slices.DeleteFunc([]string{"at", "after", "schedule"}, absent)
	var without []string
	if absent("schedule") {
		without = slices.DeleteFunc([]string{"timeZone", "start", "end"}, absent)
	}
	switch when := d.job.at["at"]; {
	case found["at"] == nil && found["after"] == nil && found["schedule"] == nil:
		d.Fail(root, form, "at, after or schedule is missing")
	case len(given) > 1:
		d.Fail(found[given[1]], "keep one of them", "%s says already when", given[0])
	case len(without) > 0:
		d.Fail(found[without[0]], `schedule: "0 9 * * *"`, "%s needs a schedule", without[0])
	case !when.OK():
	case at.After(d.now.Add(furthest + clockSlack)):
		d.Bad(when, "", "must be at most ten years ahead")
	case at.Year() < 1970:
		d.Bad(when, "", "must not be before 1970")
	}
}

// document decodes a text that is one mapping. It returns the mapping and the keys that it found; a nil mapping means
// that the problem is recorded.
func (d *decoder) document(n *yaml.Node, data []byte) (*yaml.Node, map[string]*yaml.Node) {
	if n == nil {
		n = d.Read("body", plainJSON(data))
	}
	if n == nil {
		return nil, nil
	}
	e := strict.Entry{Key: strict.Key{Type: strict.Mapping(d.Root)}, At: n, Value: n}
	if n.Kind != yaml.MappingNode {
		d.Fail(n, d.Subject.Begin, "%s must be a mapping, not %s", d.Subject.Noun, strict.KindOf(n))
		return nil, nil
	}
	if !d.Plain(e) {
		return nil, nil
	}
	found := d.Mapping(e)
	if found["http"] == nil {
		d.Fail(n, `http: {url: "http://127.0.0.1:8080/path"}`, "http is missing")
	}
	return n, found
}

// canonical writes a text that was decoded without a problem as JSON: its keys in the order of their description, each
// value in one form. The same timer written in another way gives the same bytes. The fields in first stand at the
// beginning, in place of the keys of the same names. The text has no aliases.
func (d *decoder) canonical(root *yaml.Node, first ...field) []byte {
	fields := object(first)
	for _, f := range canonicalFields(d.Root, root) {
		if f.name != "after" && f.name != "id" && (len(first) == 0 || f.name != first[0].name) {
			fields = append(fields, f)
		}
	}
	out, _ := fields.MarshalJSON()
	if len(out) > MaxSource {
		d.File("", "%sas JSON it is larger than 64 KiB", d.Scope)
	}
	return out
}
