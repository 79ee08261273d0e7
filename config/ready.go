package config

import (
	"net"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

const besideHint = "what is asked is the app that this replica runs beside"

func readyKeys() []key {
	return []key{
		{name: "url", kind: kindText, def: "url, tcp or exec", example: "http://127.0.0.1:8080/readyz", form: localForm,
			show: shownURL, aka: []string{"http", "httpGet", "uri", "endpoint"},
			decode: (*decoder).readyURL,
			doc:    "ready is what answers a GET with a code from 200 to 399; on this machine, or `http://unix:/run/app.sock:/path`"},
		{name: "tcp", kind: kindText, def: "url, tcp or exec", example: "127.0.0.1:8080", form: tcpForm,
			show: shownURL, aka: []string{"tcpSocket", "port", "addr"},
			decode: (*decoder).readyTCP,
			doc:    "ready is what accepts a connection: `host:port` on this machine"},
		{name: "exec", kind: kindTextList, def: "url, tcp or exec", example: `["/bin/app", "--ready"]`, form: programForm,
			show: shownHead, aka: []string{"command", "cmd"},
			decode: func(d *decoder, e entry) { d.program(e, &d.table.Ready.Exec) },
			doc:    "ready is what a program, given with its arguments, says with exit code 0"},
		{name: "interval", kind: kindDuration, def: "2s", example: "5s",
			show: shown, aka: []string{"periodSeconds", "period", "every"},
			decode: func(d *decoder, e entry) {
				d.duration(e, &d.table.Ready.Interval, between(100*time.Millisecond, time.Hour))
			},
			doc: "how often it is asked; at least 100ms, at most 1h"},
		{name: "timeout", kind: kindDuration, def: "1s", example: "3s",
			show: shown, aka: []string{"timeoutSeconds"},
			decode: func(d *decoder, e entry) {
				d.duration(e, &d.table.Ready.Timeout, between(10*time.Millisecond, time.Minute))
			},
			doc: "no answer within this time is a no; at least 10ms, at most 1m"},
	}
}

// ready reads the readiness gate, which is exactly one question.
func (d *decoder) ready(e entry) {
	d.table.Ready = &Ready{Interval: 2 * time.Second, Timeout: time.Second}
	seen := d.mapping(e)
	named := ""
	for _, k := range e.form.choice {
		switch {
		case seen[k] == nil:
		case named == "":
			named = k
		case present(seen[k]) && present(seen[named]):
			d.fail(seen[k], "keep one of url, tcp and exec", "ready.%s: ready.%s asks the app already", k, named)
		}
	}
	if named == "" && (e.isNull() || e.val.Kind == yaml.MappingNode) {
		d.fail(e.at, "give it one of url, tcp and exec: {url: http://127.0.0.1:8080/readyz}", "ready: nothing to ask")
	}
}

func (d *decoder) readyURL(e entry) {
	t := d.text(e)
	if !t.ok() {
		return
	}
	why, hint := checkHTTPURL(t.value)
	if why == "" && !isLocal(t.value) {
		why, hint = "must be this machine: localhost, 127.0.0.1, [::1] or a unix socket", besideHint
	}
	if why == "" {
		d.table.Ready.URL = t.value
		return
	}
	if t.opaque {
		hint = "check the values of its variables"
	}
	d.bad(t, hint, "%s", why)
}

func (d *decoder) readyTCP(e entry) {
	t := d.scalar(e, "!!str", "!!int")
	if !t.ok() {
		return
	}
	const form = "write host:port, as 127.0.0.1:8080"
	host, port, err := net.SplitHostPort(t.value)
	switch {
	case err != nil && isNumber(t.value) && !t.opaque:
		d.bad(t, `write "127.0.0.1:`+t.value+`"`, "not an address")
	case err != nil, strings.ContainsAny(host, " /@"):
		d.bad(t, form, "not an address")
	case port == "", badPort(port):
		d.bad(t, form, "the port must be from 1 to 65535")
	case !isLoopback(host):
		d.bad(t, besideHint, "must be this machine: localhost, 127.0.0.1 or [::1]")
	default:
		d.table.Ready.TCP = t.value
	}
}
