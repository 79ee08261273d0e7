package config

import (
	"net"
	"net/netip"
	"strings"

	"github.com/solotick/solotick/config/strict"
)

// listen reads host:port; "" is allowed and means off.
func (d *decoder) listen(e strict.Entry) {
	if t := d.listener(e, `":9747" or "127.0.0.1:9747"`, ":"); t.OK() {
		d.table.Listen = t.Value
	}
}

// admin reads the address of the status page and the API. It must be on this machine, because neither asks for a
// password.
func (d *decoder) admin(e strict.Entry) {
	t := d.listener(e, `"127.0.0.1:9748"`, "127.0.0.1:")
	if !t.OK() {
		return
	}
	if host, _, err := net.SplitHostPort(t.Value); err == nil && !IsLoopback(host) {
		d.Bad(t, "write \"127.0.0.1:9748\", and from elsewhere reach it with kubectl port-forward or ssh -L",
			"must be this machine alone, 127.0.0.1, [::1] or localhost: anyone who can reach it can trigger, pause and drain")
		return
	}
	d.table.Admin = t.Value
}

// listener reads an address to listen on, or "". form shows how to write one, and host is the host to suggest for a
// port alone.
func (d *decoder) listener(e strict.Entry, form, host string) strict.Text {
	t := d.Scalar(e, "!!str", "!!int")
	if !t.OK() || t.Value == "" {
		return t
	}
	name, port, err := net.SplitHostPort(t.Value)
	switch {
	case err != nil && isNumber(t.Value) && !t.Opaque:
		d.Bad(t, `write "`+host+t.Value+`"`, "not an address")
	case err != nil, strings.ContainsAny(name, " /@"):
		d.Bad(t, "write "+form+`; "" switches it off`, "not an address")
	case port == "" || port != "0" && badPort(port):
		d.Bad(t, "", "the port must be a number from 1 to 65535, or 0 for any free one")
	default:
		return t
	}
	return strict.Text{}
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// IsLoopback says whether a host is this machine without asking a name server.
func IsLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}
