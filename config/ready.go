package config

import (
	"net"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

const besideHint = "what is asked is the app that this replica runs beside"

func (d *decoder) readyKeys() []strict.Key {
	return []strict.Key{
		{Name: "url", Kind: strict.KindText, Default: "url, tcp or exec", Example: "http://127.0.0.1:8080/readyz", Form: localForm,
			Show: strict.ShownURL, Also: []string{"http", "httpGet", "uri", "endpoint"},
			Decode: d.readyURL,
			Doc:    "ready is what answers a GET with a code from 200 to 399; on this machine, or `http://unix:/run/app.sock:/path`"},
		{Name: "tcp", Kind: strict.KindText, Default: "url, tcp or exec", Example: "127.0.0.1:8080", Form: tcpForm,
			Show: strict.ShownURL, Also: []string{"tcpSocket", "port", "addr"},
			Decode: d.readyTCP,
			Doc:    "ready is what accepts a connection: `host:port` on this machine"},
		{Name: "exec", Kind: strict.KindTextList, Default: "url, tcp or exec", Example: `["/bin/app", "--ready"]`, Form: programForm,
			Show: strict.ShownFirst, Also: []string{"command", "cmd"},
			Decode: func(e strict.Entry) { d.program(e, &d.table.Ready.Exec) },
			Doc:    "ready is what a program, given with its arguments, says with exit code 0"},
		{Name: "interval", Kind: strict.KindDuration, Default: "2s", Example: "5s",
			Show: strict.Shown, Also: []string{"periodSeconds", "period", "every"},
			Decode: func(e strict.Entry) {
				d.Duration(e, &d.table.Ready.Interval, strict.Between(100*time.Millisecond, time.Hour))
			},
			Doc: "how often it is asked; at least 100ms, at most 1h"},
		{Name: "timeout", Kind: strict.KindDuration, Default: "1s", Example: "3s",
			Show: strict.Shown, Also: []string{"timeoutSeconds"},
			Decode: func(e strict.Entry) {
				d.Duration(e, &d.table.Ready.Timeout, strict.Between(10*time.Millisecond, time.Minute))
			},
			Doc: "no answer within this time is a no; at least 10ms, at most 1m"},
	}
}

// ready reads the readiness gate, which has exactly one way to ask.
func (d *decoder) ready(e strict.Entry) {
	d.table.Ready = &Ready{Interval: 2 * time.Second, Timeout: time.Second}
	seen := d.Mapping(e)
	named := ""
	for _, k := range e.Form.Choice {
		switch {
		case seen[k] == nil:
		case named == "":
			named = k
		case strict.Present(seen[k]) && strict.Present(seen[named]):
			d.Fail(seen[k], "keep one of url, tcp and exec", "ready.%s: ready.%s asks the app already", k, named)
		}
	}
	if named == "" && (e.IsNull() || e.Value.Kind == yaml.MappingNode) {
		d.Fail(e.At, "give it one of url, tcp and exec: {url: http://127.0.0.1:8080/readyz}", "ready: nothing to ask")
	}
}

func (d *decoder) readyURL(e strict.Entry) {
	t := d.Text(e)
	if !t.OK() {
		return
	}
	why, hint := checkHTTPURL(t.Value)
	if why == "" && !isLocal(t.Value) {
		why, hint = "must be this machine: localhost, 127.0.0.1, [::1] or a unix socket", besideHint
	}
	if why == "" {
		d.table.Ready.URL = t.Value
		return
	}
	if t.Opaque {
		hint = "check the values of its variables"
	}
	d.Bad(t, hint, "%s", why)
}

func (d *decoder) readyTCP(e strict.Entry) {
	t := d.Scalar(e, "!!str", "!!int")
	if !t.OK() {
		return
	}
	const form = "write host:port, as 127.0.0.1:8080"
	host, port, err := net.SplitHostPort(t.Value)
	switch {
	case err != nil && isNumber(t.Value) && !t.Opaque:
		d.Bad(t, `write "127.0.0.1:`+t.Value+`"`, "not an address")
	case err != nil, strings.ContainsAny(host, " /@"):
		d.Bad(t, form, "not an address")
	case port == "", badPort(port):
		d.Bad(t, form, "the port must be from 1 to 65535")
	case !IsLoopback(host):
		d.Bad(t, besideHint, "must be this machine: localhost, 127.0.0.1 or [::1]")
	default:
		d.table.Ready.TCP = t.Value
	}
}
