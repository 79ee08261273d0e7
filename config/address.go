package config

import (
	"net"
	"net/netip"
	"strings"

	"github.com/solotick/solotick/config/strict"
)

// listener is an address to listen on, or "" for none. form shows how to write one, and host is the host to suggest for
// a port alone. An address that asks for no password is local.
func listener(to *string, form, host string, local bool) strict.Type {
	return strict.Accepted(strict.KindText, func(d *strict.Decoder, _ strict.Entry, t strict.Text) bool {
		name, port, err := net.SplitHostPort(t.Value)
		switch {
		case t.Value == "": // switched off
		case err != nil && isNumber(t.Value) && !t.Opaque:
			return d.Bad(t, `write "`+host+t.Value+`"`, "not an address")
		case err != nil, strings.ContainsAny(name, " /@"):
			return d.Bad(t, "write "+form+`; "" switches it off`, "not an address")
		case port == "" || port != "0" && badPort(port):
			return d.Bad(t, "", "the port must be a number from 1 to 65535, or 0 for any free one")
		case local && !IsLoopback(name):
			return d.Bad(t, "write \"127.0.0.1:9748\", and from elsewhere reach it with kubectl port-forward or ssh -L",
				"must be this machine alone, 127.0.0.1, [::1] or localhost: "+
					"anyone who can reach it can trigger, pause and drain")
		}
		*to = t.Value
		return true
	}, "!!str", "!!int")
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// IsLoopback reports whether a host is this machine without asking a name server.
func IsLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}
