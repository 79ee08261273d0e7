package config

import (
	"net/url"
	"strings"

	"github.com/solotick/solotick/config/strict"
)

// notifyKeys are the keys under notify. Messages show no value of them: anyone who knows the URL of a check can ping
// it.
func (d *decoder) notifyKeys() []strict.Key {
	ping := func(name, example, doc string, to func(*Notify) *string, aka ...string) strict.Key {
		return strict.Key{Name: name, Kind: strict.KindText, Default: strict.None, Example: example, Common: true, Doc: doc, Also: aka, Form: pingForm,
			Decode: func(e strict.Entry) {
				if u, ok := d.pingURL(e); ok {
					*to(&d.job.Notify) = u
				}
			}}
	}
	return []strict.Key{
		// It comes first, so that the keys of single events override what follows from it.
		{Name: "url", Kind: strict.KindText, Default: strict.None, Example: "https://hc-ping.com/${PING_KEY}", Common: true, Form: pingForm,
			Also: []string{"uri", "base", "ping", "endpoint"}, Decode: d.notifyURL,
			Doc: "a check of Healthchecks or a similar service: Solotick calls this URL after a success, with `/start` at a start, with `/fail` after a failure; `\"\"` = none, even if `defaults` names one"},
		ping("start", "https://hc.example.com/ping/1/start", "told when a run starts; `\"\"` = none",
			func(n *Notify) *string { return &n.Start }, "onStart", "started"),
		ping("success", "https://hc.example.com/ping/1", "told when a run succeeded; `\"\"` = none",
			func(n *Notify) *string { return &n.Success }, "onSuccess", "succeeded", "ok"),
		ping("failure", "https://hc.example.com/ping/1/fail", "told when a run failed, timed out, lost its lock, was interrupted or could not be started; `\"\"` = none",
			func(n *Notify) *string { return &n.Failure }, "onFailure", "failed", "fail", "error"),
		{Name: "change", Kind: strict.KindMapping, Default: strict.None, Common: true, Keys: d.changeKeys(),
			Also: []string{"changes", "alert", "alerts", "message", "messages"}, Form: strict.Form{Choice: []string{"url", "urlFile"}},
			Decode: d.change,
			Doc:    "messages for people: one for each change of how the job stands, from one replica; each of its keys falls back to `defaults` alone"},
	}
}

// notifyURL derives the URLs of all events from a base URL. A job's own base URL also overrides single events in
// defaults.
func (d *decoder) notifyURL(e strict.Entry) {
	base, ok := d.pingURL(e)
	switch {
	case !ok:
	case base == "":
		d.job.Notify = Notify{}
	default:
		d.job.Notify = Notify{Start: extend(base, "/start"), Success: base, Failure: extend(base, "/fail")}
	}
}

// extend adds to the path of a URL and keeps its query.
func extend(base, by string) string {
	path, query, found := strings.Cut(base, "?")
	path = strings.TrimRight(path, "/") + by
	if found {
		path += "?" + query
	}
	return path
}

// pingURL reads a URL, on any host, or "".
func (d *decoder) pingURL(e strict.Entry) (string, bool) {
	t := d.Text(e)
	if !t.OK() || t.Value == "" {
		return "", t.OK()
	}
	why, _ := checkHTTPURL(t.Value)
	if u, err := url.Parse(t.Value); why == "" && (err != nil || strings.HasPrefix(u.Host, "unix:")) {
		why = "must lead to a host"
	}
	if why == "" {
		return t.Value, true
	}
	hint := "write it like https://hc-ping.com/${PING_KEY}"
	if t.Opaque {
		hint = "check the values of its variables"
	}
	d.Bad(t, hint, "%s", why)
	return "", false
}
