package config

import (
	"net"
	"strings"
	"time"

	"github.com/solotick/solotick/config/strict"
)

const besideHint = "what is asked is the app that this replica runs beside"

func readyKeys(to *Ready) []strict.Key {
	const one = "url, tcp or exec"
	return []strict.Key{
		{Name: "url", Type: strict.Checked(strict.Into(&to.URL), checkVariables, checkReadyURL), Default: one,
			Example: "http://127.0.0.1:8080/readyz",
			Form:    localForm, Show: strict.ShownURL, Also: "http httpGet uri endpoint",
			Doc: "ready if it answers a GET with 200 to 399; on this machine, or `http://unix:/run/app.sock:/path`"},
		{Name: "tcp", Type: readyTCP(&to.TCP), Default: one,
			Example: "127.0.0.1:8080", Form: tcpForm, Show: strict.ShownURL, Also: "tcpSocket port addr",
			Doc: "ready if it accepts a connection: `host:port` on this machine"},
		{Name: "exec", Type: program(&to.Exec), Default: one,
			Example: `["/bin/app", "--ready"]`, Form: programForm, Show: strict.ShownFirst, Also: "command cmd",
			Doc: "ready if this program, given with its arguments, exits with 0"},
		{Name: "interval", Type: strict.Duration(&to.Interval, strict.Between(100*time.Millisecond, time.Hour)),
			Default: "2s", Example: "5s", Show: strict.Shown, Also: "periodSeconds period every",
			Doc: "how often it is asked; 100ms to 1h"},
		{Name: "timeout", Type: strict.Duration(&to.Timeout, strict.Between(10*time.Millisecond, time.Minute)),
			Default: "1s", Example: "3s", Show: strict.Shown, Also: "timeoutSeconds",
			Doc: "no answer within this time is a no; 10ms to 1m"},
	}
}

// readReady reads the readiness gate, which has exactly one way to ask.
func readReady(d *strict.Decoder, e strict.Entry) {
	if !single(d, e, d.Mapping(e), e.Form.Choice, "asks the app already") && e.IsMapping() {
		d.Fail(e.At, "give it one of url, tcp and exec: {url: http://127.0.0.1:8080/readyz}", "ready: nothing to ask")
	}
}

func checkReadyURL(raw string) (why, hint string) {
	why, hint = checkHTTPURL(raw)
	if why == "" && !isLocal(raw) {
		return "must be this machine: localhost, 127.0.0.1, [::1] or a unix socket", besideHint
	}
	return why, hint
}

func readyTCP(to *string) strict.Type {
	return strict.Accepted(strict.KindText, func(d *strict.Decoder, _ strict.Entry, t strict.Text) bool {
		const form = "write host:port, as 127.0.0.1:8080"
		host, port, err := net.SplitHostPort(t.Value)
		switch {
		case err != nil && isNumber(t.Value) && !t.Opaque:
			return d.Bad(t, `write "127.0.0.1:`+t.Value+`"`, "not an address")
		case err != nil, strings.ContainsAny(host, " /@"):
			return d.Bad(t, form, "not an address")
		case port == "", badPort(port):
			return d.Bad(t, form, "the port must be from 1 to 65535")
		case !IsLoopback(host):
			return d.Bad(t, besideHint, "must be this machine: localhost, 127.0.0.1 or [::1]")
		}
		*to = t.Value
		return true
	}, "!!str", "!!int")
}
