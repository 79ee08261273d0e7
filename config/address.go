package config

import (
	"net"
	"net/netip"
	"strings"
)

// listen reads host:port; "" is allowed and means off.
func (d *decoder) listen(e entry) {
	if t := d.listener(e, `":9747" or "127.0.0.1:9747"`, ":"); t.ok() {
		d.table.Listen = t.value
	}
}

// admin reads the address of the status page and the API, which ask nobody who they are.
func (d *decoder) admin(e entry) {
	t := d.listener(e, `"127.0.0.1:9748"`, "127.0.0.1:")
	if !t.ok() {
		return
	}
	if host, _, err := net.SplitHostPort(t.value); err == nil && !isLoopback(host) {
		d.bad(t, "write \"127.0.0.1:9748\", and from elsewhere reach it with kubectl port-forward or ssh -L",
			"must be this machine alone, 127.0.0.1, [::1] or localhost: whoever reaches it may trigger, pause and drain")
		return
	}
	d.table.Admin = t.value
}

// listener reads an address to listen on, or "". form shows how to write one, and host is what a port alone lacks.
func (d *decoder) listener(e entry, form, host string) text {
	t := d.scalar(e, "!!str", "!!int")
	if !t.ok() || t.value == "" {
		return t
	}
	name, port, err := net.SplitHostPort(t.value)
	switch {
	case err != nil && isNumber(t.value) && !t.opaque:
		d.bad(t, `write "`+host+t.value+`"`, "not an address")
	case err != nil, strings.ContainsAny(name, " /@"):
		d.bad(t, "write "+form+`; "" switches it off`, "not an address")
	case port == "" || port != "0" && badPort(port):
		d.bad(t, "", "the port must be a number from 1 to 65535, or 0 for any free one")
	default:
		return t
	}
	return text{}
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// isLoopback says whether a host is this machine whatever a name server says.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
