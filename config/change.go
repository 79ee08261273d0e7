package config

import (
	"cmp"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

// Change says which messages for people a job sends, and where. The zero value sends none.
type Change struct {
	URL, URLFile string        // exactly one is set; the file is read for each attempt to send
	On           []Event       // default failed, recovered and missed
	After        int           // failed: when so many ticks in a row have failed; default 1
	Repeat       int           // failed: again after each so many further ones; 0 = never
	Late         time.Duration // a run begins later than this after its tick came due; 0 = no message
	Long         time.Duration // a run lasts longer than this; 0 = no message
	Format       Format
	SecretFile   string // signs as Standard Webhooks; "" = no signature; read for each attempt to send
}

// Event is what a message tells.
type Event string

// The events of a job. Late and Long are switched on by their durations, the others by On.
const (
	Failed       Event = "failed"
	Recovered    Event = "recovered"
	TicksMissed  Event = "missed"
	StartedLate  Event = "late"
	TakesTooLong Event = "long"
)

// Format is the form of a message.
type Format string

// The formats of a message.
const (
	JSON  Format = "json"
	Slack Format = "slack"
)

// Wanted says whether the job sends a message about an event.
func (c *Change) Wanted(e Event) bool {
	switch e {
	case StartedLate:
		return c.Late > 0
	case TakesTooLong:
		return c.Long > 0
	}
	return slices.Contains(c.On, e)
}

// OfStreak says what a settlement tells, before which so many ticks in a row had failed, and now so many have; "" =
// nothing.
func (c *Change) OfStreak(before, now int) Event {
	event := Event("")
	switch further := now - c.After; {
	case c.After == 0 || before == now:
	case now == 0 && before >= c.After:
		event = Recovered
	case before < c.After && further >= 0, c.Repeat > 0 && further > 0 && further%c.Repeat == 0:
		event = Failed
	}
	if !c.Wanted(event) {
		return ""
	}
	return event
}

const mostInARow = 10_000

func (d *decoder) changeKeys() []strict.Key {
	return []strict.Key{
		{Name: "url", Kind: strict.KindText, Default: "url or urlFile", Example: "https://hooks.slack.com/services/${SLACK_HOOK}", Form: pingForm,
			Common: true, Also: []string{"uri", "webhook", "hook", "endpoint"},
			Decode: func(e strict.Entry) {
				if u, ok := d.pingURL(e); ok {
					d.job.Change.URL, d.job.Change.URLFile = u, ""
				}
			},
			Doc: "where the messages go; `\"\"` = nowhere, even if `defaults` names a place"},
		{Name: "urlFile", Kind: strict.KindText, Default: "url or urlFile", Example: "/run/secrets/hook", Form: filledForm,
			Show: strict.Shown, Common: true,
			Decode: func(e strict.Entry) {
				d.NonEmpty(e, &d.job.Change.URLFile)
				d.job.Change.URL = ""
			},
			Doc: "file with the URL, read for each attempt, so that a rotated one works"},
		{Name: "on", Kind: strict.KindTextList, Default: "[failed, recovered, missed]", Example: "[failed, recovered]",
			Form: strict.Words(Failed, Recovered, TicksMissed), Show: strict.Shown, Common: true, Also: []string{"events", "when"},
			Decode: d.events,
			Doc:    "the events to tell of: `failed` when the job begins to fail, `recovered` when it stops failing, `missed` when ticks were not fired"},
		{Name: "after", Kind: strict.KindNumber, Default: "1", Example: "3", Form: strict.Form{Least: 1, Most: mostInARow},
			Show: strict.Shown, Common: true, Also: []string{"failureThreshold", "failures", "threshold"},
			Decode: func(e strict.Entry) { d.Number(e, &d.job.Change.After) },
			Doc:    "`failed` is sent when this many ticks in a row have failed, and `recovered` only after a `failed`"},
		{Name: "repeat", Kind: strict.KindNumber, Default: "0", Example: "24", Form: strict.Form{Most: mostInARow},
			Show: strict.Shown, Common: true, Also: []string{"every", "repeatInterval", "remind"},
			Decode: func(e strict.Entry) { d.Number(e, &d.job.Change.Repeat) },
			Doc:    "`failed` is sent again each time this many further ticks in a row have failed; `0` = never"},
		{Name: "late", Kind: strict.KindDuration, Default: "0s", Example: "5m",
			Show: strict.Shown, Common: true, Also: []string{"startWithin", "margin"},
			Decode: func(e strict.Entry) { d.Duration(e, &d.job.Change.Late, strict.AtLeast(0)) },
			Doc:    "tells of a run that begins later than this after its tick came due; `0s` = never"},
		{Name: "long", Kind: strict.KindDuration, Default: "0s", Example: "30m",
			Show: strict.Shown, Common: true, Also: []string{"maxRuntime", "runtime", "sla"},
			Decode: func(e strict.Entry) { d.Duration(e, &d.job.Change.Long, strict.AtLeast(0)) },
			Doc:    "tells of a run that lasts longer than this, while it lasts; `0s` = never"},
		{Name: "format", Kind: strict.KindText, Default: string(JSON), Example: string(Slack), Form: strict.Words(JSON, Slack),
			Show: strict.Shown, Common: true, Also: []string{"type", "style"},
			Decode: func(e strict.Entry) { oneOf(d, e, &d.job.Change.Format) },
			Doc:    "`json`, or `slack`, which Mattermost reads too"},
		{Name: "secretFile", Kind: strict.KindText, Default: strict.None, Example: "/run/secrets/whsec", Form: filledForm,
			Show: strict.Shown, Common: true, Also: []string{"secret", "signingSecret"},
			Decode: func(e strict.Entry) { d.NonEmpty(e, &d.job.Change.SecretFile) },
			Doc:    "file with the secret `whsec_…` that signs the messages, read for each attempt; see below"},
	}
}

// change reads who hears of changes. A job of which no key is its own has what defaults says.
func (d *decoder) change(e strict.Entry) {
	d.noteMapping(e)
	seen := d.Mapping(e)
	if strict.Present(seen["url"]) && strict.Present(seen["urlFile"]) {
		later := seen["urlFile"]
		if u := seen["url"]; u.Line > later.Line || u.Line == later.Line && u.Column > later.Column {
			later = seen["url"]
		}
		d.Fail(later, "keep one of them", "both notify.change.url and notify.change.urlFile are set")
	}
	c := &d.job.Change
	if seen["url"] == nil && seen["urlFile"] == nil && c.URL == "" && c.URLFile == "" && d.job != &d.base &&
		(e.IsNull() || e.Value.Kind == yaml.MappingNode) && !d.job.unset("notify.change.url", "notify.change.urlFile") {
		d.Fail(e.At, "give it url or urlFile", "notify.change: the messages have nowhere to go")
	}
}

func (d *decoder) events(e strict.Entry) {
	items, ok := d.List(e)
	if !ok {
		return
	}
	on := []Event{}
	for _, item := range items {
		var event Event
		if oneOf(d, item, &event); event != "" {
			on = append(on, event)
		}
	}
	d.job.Change.On = on
}

// finishChange fills in what a job does not say of its messages. Without a receiver there are none.
func (d *decoder) finishChange() {
	c := &d.job.Change
	if c.URL == "" && c.URLFile == "" {
		*c = Change{}
		return
	}
	if c.On == nil {
		c.On = []Event{Failed, Recovered, TicksMissed}
	}
	c.After, c.Format = cmp.Or(c.After, 1), cmp.Or(c.Format, JSON)
}
