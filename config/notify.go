package config

import (
	"net/url"
	"strings"
)

// notifyKeys: none of them is shown, since whoever knows the URL of a check can ping it.
func notifyKeys() []key {
	ping := func(name, example, doc string, to func(*Notify) *string, aka ...string) key {
		return key{name: name, kind: kindText, def: none, example: example, common: true, doc: doc, aka: aka, form: pingForm,
			decode: func(d *decoder, e entry) {
				if u, ok := d.pingURL(e); ok {
					*to(&d.job.Notify) = u
				}
			}}
	}
	return []key{
		// First, so that what is said of one event counts more than what follows from the URL.
		{name: "url", kind: kindText, def: none, example: "https://hc-ping.com/${PING_KEY}", common: true, form: pingForm,
			aka: []string{"uri", "base", "ping", "endpoint"}, decode: (*decoder).notifyURL,
			doc: "a check of Healthchecks or its like: this URL with `/start` is told of starts, itself of successes, with `/fail` of failures; `\"\"` = none, also where `defaults` name one"},
		ping("start", "https://hc.example.com/ping/1/start", "told when a run starts; `\"\"` = none",
			func(n *Notify) *string { return &n.Start }, "onStart", "started"),
		ping("success", "https://hc.example.com/ping/1", "told when a run succeeded; `\"\"` = none",
			func(n *Notify) *string { return &n.Success }, "onSuccess", "succeeded", "ok"),
		ping("failure", "https://hc.example.com/ping/1/fail", "told when a run failed, timed out, lost its lock, was interrupted or could not be started; `\"\"` = none",
			func(n *Notify) *string { return &n.Failure }, "onFailure", "failed", "fail", "error"),
	}
}

// notifyURL spells out what follows from a base. What defaults say of single events does not count beside a job's own.
func (d *decoder) notifyURL(e entry) {
	base, ok := d.pingURL(e)
	switch {
	case !ok:
	case base == "":
		d.job.Notify = Notify{}
	default:
		d.job.Notify = Notify{Start: extend(base, "/start"), Success: base, Failure: extend(base, "/fail")}
	}
}

// extend lengthens the path of a URL and leaves its query where it is.
func extend(base, by string) string {
	path, query, found := strings.Cut(base, "?")
	path = strings.TrimRight(path, "/") + by
	if found {
		path += "?" + query
	}
	return path
}

// pingURL reads a URL that may lead anywhere, or "".
func (d *decoder) pingURL(e entry) (string, bool) {
	t := d.text(e)
	if !t.ok() || t.value == "" {
		return "", t.ok()
	}
	why, _ := checkHTTPURL(t.value)
	if u, err := url.Parse(t.value); why == "" && (err != nil || strings.HasPrefix(u.Host, "unix:")) {
		why = "must lead to a host"
	}
	if why == "" {
		return t.value, true
	}
	hint := "write it like https://hc-ping.com/${PING_KEY}"
	if t.opaque {
		hint = "check the values of its variables"
	}
	d.bad(t, hint, "%s", why)
	return "", false
}
