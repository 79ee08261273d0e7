package config

import (
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
			Doc: "a check of Healthchecks or a similar service: Solotick calls this URL after a success, " +
				"with `/start` at a start, with `/fail` after a failure; `\"\"` = none, even if `defaults` names one"},
		{Name: "change", Type: change(j), Form: strict.Form{Choice: []string{"url", "urlFile"}},
			Also: "changes alert alerts message messages",
			Doc: "messages for people: one for each change of how the job stands, from one replica; " +
				"each of its keys falls back to `defaults` alone"},
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
