package config

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/solotick/solotick/config/strict"
)

// notifyKeys are the keys under notify. Messages show no value of them: anyone who knows the URL of a check can ping
// it.
func notifyKeys(j *draft) []strict.Key {
	return []strict.Key{
		{Name: "url", Type: ping(strict.Into(&j.Notify)),
			Example: "https://hc-ping.com/${PING_KEY}", Form: pingForm, Also: "uri base ping endpoint success",
			Doc: "a check of Healthchecks or a similar service, called after a success, with `/start` at a start, " +
				"with `/fail` after a failure; `\"\"` = none, even if `defaults` names one"},
		{Name: "change", Type: change(j), Form: strict.Form{Choice: []string{"url", "urlFile"}},
			Also: "changes alert alerts message messages",
			Doc:  "messages for people: one for each change of how the job stands"},
	}
}

// ping is a URL, on any host, or "".
func ping(set func(url string)) strict.Type { return strict.Checked(set, checkVariables, checkPing) }

// checkPing says what is wrong with a URL that is pinged, and what to write instead.
func checkPing(raw string) (why, hint string) {
	if raw == "" {
		return "", ""
	}
	why, _ = checkHTTPURL(raw)
	if u, err := url.Parse(raw); why == "" && (err != nil || strings.HasPrefix(u.Host, "unix:")) {
		why = "must lead to a host"
	}
	return why, "write it like https://hc-ping.com/${PING_KEY}"
}

const mostInARow = 10_000

func changeKeys(to *Change) []strict.Key {
	return []strict.Key{
		{Name: "url", Type: ping(func(url string) { to.URL, to.URLFile = url, "" }), Default: "url or urlFile",
			Example: "https://hooks.slack.com/services/${SLACK_HOOK}", Form: pingForm,
			Also: "uri webhook hook endpoint",
			Doc:  "where messages go; `\"\"` = nowhere, even if `defaults` names a place"},
		{Name: "urlFile", Type: strict.NonEmpty(&to.URLFile), Default: "url or urlFile", Example: "/run/secrets/hook",
			Form: filledForm, Show: strict.Shown, Doc: "file with the URL"},
		{Name: "on", Type: events(&to.On), Default: "[failed, recovered, missed]", Example: "[failed, recovered]",
			Form: strict.Words(Failed, Recovered, TicksMissed), Show: strict.Shown, Also: "events when",
			Doc: "which of these three are told"},
		{Name: "after", Type: strict.Number(&to.After), Default: "1",
			Example: "3", Form: strict.Form{Least: 1, Most: mostInARow}, Show: strict.Shown,
			Also: "failureThreshold failures threshold",
			Doc:  "`failed` is told when this many ticks in a row have failed"},
		{Name: "late", Type: strict.Duration(&to.Late, strict.AtLeast(0)), Default: "0s",
			Example: "5m", Show: strict.Shown, Also: "startWithin margin",
			Doc: "a run that begins later than this after its tick is told; `0s` = never"},
		{Name: "long", Type: strict.Duration(&to.Long, strict.AtLeast(0)), Default: "0s",
			Example: "30m", Show: strict.Shown, Also: "maxRuntime runtime sla",
			Doc: "a run that lasts longer than this is told while it lasts; `0s` = never"},
		{Name: "format", Type: word(&to.Format), Default: string(JSON),
			Example: string(Slack), Form: strict.Words(JSON, Slack), Show: strict.Shown, Also: "type style",
			Doc: "`json`, or `slack`, which Mattermost reads too"},
		{Name: "secretFile", Type: strict.NonEmpty(&to.SecretFile),
			Example: "/run/secrets/whsec", Form: filledForm, Show: strict.Shown, Also: "secret signingSecret",
			Doc: "file with the secret `whsec_…` that signs the messages"},
	}
}

// change is who hears of changes. A job of which no key is its own has what defaults says.
func change(j *draft) strict.Type {
	c := &j.Change
	return strict.Type{Kind: strict.KindMapping, Keys: changeKeys(c), Decode: func(d *strict.Decoder, e strict.Entry) {
		seen := d.Mapping(e)
		if strict.Present(seen["url"]) && strict.Present(seen["urlFile"]) {
			d.Fail(later(seen["url"], seen["urlFile"]), "keep one of them",
				"both notify.change.url and notify.change.urlFile are set")
		}
		if seen["urlFile"] != nil {
			c.URL = ""
		}
		if seen["url"] == nil && seen["urlFile"] == nil && c.URL == "" && c.URLFile == "" && !j.common &&
			e.IsMapping() && !j.unset("notify.change.url", "notify.change.urlFile") {
			d.Fail(e.At, "give it url or urlFile", "notify.change: the messages have nowhere to go")
		}
	}}
}

func events(to *[]Event) strict.Type {
	return strict.Type{Kind: strict.KindTextList, Decode: func(d *strict.Decoder, e strict.Entry) {
		items, ok := d.List(e)
		if !ok {
			return
		}
		*to = []Event{}
		for _, item := range items {
			var event Event
			if word(&event).Decode(d, item); event != "" {
				*to = append(*to, event)
			}
		}
	}}
}

// finishChange fills in what a job does not say of its messages. Without a receiver there are none.
func (j *draft) finishChange() {
	c := &j.Change
	if c.URL == "" && c.URLFile == "" {
		*c = Change{}
		return
	}
	if c.On == nil {
		c.On = []Event{Failed, Recovered, TicksMissed}
	}
	c.After, c.Format = cmp.Or(c.After, 1), cmp.Or(c.Format, JSON)
}
