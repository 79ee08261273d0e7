package config

import (
	"net/url"
	"strings"

	"github.com/solotick/solotick/config/strict"
)

// notifyKeys are the keys under notify. Messages show no value of them: anyone who knows the URL of a check can ping
// it.
func notifyKeys(j *draft) []strict.Key {
	to := &j.Notify
	return []strict.Key{
		// It comes first, so that the keys of single events override what follows from it.
		{Name: "url", Type: ping(to.all), Example: "https://hc-ping.com/${PING_KEY}", Form: pingForm, Also: "uri base ping endpoint",
			Doc: "a check of Healthchecks or a similar service: Solotick calls this URL after a success, with `/start` at a start, with `/fail` after a failure; `\"\"` = none, even if `defaults` names one"},
		{Name: "start", Type: ping(strict.Into(&to.Start)), Example: "https://hc.example.com/ping/1/start", Form: pingForm,
			Also: "onStart started", Doc: "told when a run starts; `\"\"` = none"},
		{Name: "success", Type: ping(strict.Into(&to.Success)), Example: "https://hc.example.com/ping/1", Form: pingForm,
			Also: "onSuccess succeeded ok", Doc: "told when a run succeeded; `\"\"` = none"},
		{Name: "failure", Type: ping(strict.Into(&to.Failure)), Example: "https://hc.example.com/ping/1/fail", Form: pingForm,
			Also: "onFailure failed fail error",
			Doc:  "told when a run failed, timed out, lost its lock, was interrupted or could not be started; `\"\"` = none"},
		{Name: "change", Type: change(j), Form: strict.Form{Choice: []string{"url", "urlFile"}},
			Also: "changes alert alerts message messages",
			Doc:  "messages for people: one for each change of how the job stands, from one replica; each of its keys falls back to `defaults` alone"},
	}
}

// ping is a URL, on any host, or "".
//
//go:noinline
func ping(set func(url string)) strict.Type { return strict.Checked(set, checkVariables, checkPing) }

// all derives the URLs of all events from a base URL. A job's own base URL also overrides single events in defaults.
func (n *Notify) all(base string) {
	if *n = (Notify{}); base != "" {
		*n = Notify{Start: extend(base, "/start"), Success: base, Failure: extend(base, "/fail")}
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
