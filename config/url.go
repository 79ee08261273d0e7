package config

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/solotick/solotick/config/strict"
)

// unixURL begins the URL of a unix socket: http://unix:/run/app.sock:/path, as nginx writes it.
const unixURL = "http://unix:"

// checkVariables is the hint for a URL that is wrong with its variables filled in.
const checkVariables = "check the values of its variables"

// checkHTTPURL says what is wrong with a target, and what to write instead. It repeats nothing of the target.
func checkHTTPURL(raw string) (why, hint string) {
	const form = "write it like http://127.0.0.1:8080/path, or http://unix:/run/app.sock:/path"
	if socket, ok := strings.CutPrefix(raw, unixURL); ok {
		file, path, found := strings.Cut(socket, ":")
		switch {
		case !strings.HasPrefix(file, "/"):
			return "the path of the unix socket must begin with /", form
		case !found || !strings.HasPrefix(path, "/"):
			return "the path of the request is missing after the unix socket", form
		}
		raw = "http://localhost" + path
	}
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return "must not be empty", form
	case strings.HasPrefix(raw, "unix:"), strings.HasPrefix(raw, "https://unix:"), strings.HasPrefix(raw, "http+unix:"):
		return "not a URL of a unix socket", form
	case err != nil && strings.Contains(raw, "://"), strings.ContainsAny(raw, " \t\r\n"):
		return "not a URL", form
	case err != nil, u.Scheme != "http" && u.Scheme != "https":
		if better := "http://" + raw; !strings.Contains(raw, "://") && strict.OpenURL.MatchString(better) {
			return "must begin with http:// or https://", "write " + better
		}
		return "must begin with http:// or https://", form
	case u.Hostname() == "":
		return "has no host", form
	case strings.ContainsFunc(raw, func(r rune) bool { return r > unicode.MaxASCII }):
		return "has letters beyond ASCII", "escape them: %C3%B6 stands for ö"
	case u.Fragment != "" || strings.HasSuffix(raw, "#"):
		return "a fragment (#…) is never sent", "leave out what follows the #"
	case badPort(u.Port()):
		return "the port must be from 1 to 65535", ""
	}
	return "", ""
}

func badPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port != "" && (err != nil || n < 1)
}

// isLocal reports whether a target is on this machine, without asking a name server: by its address, not by a name that
// resolves to it. The executor checks the address again when it connects.
func isLocal(raw string) bool {
	if strings.HasPrefix(raw, unixURL) {
		return true
	}
	u, err := url.Parse(raw)
	return err == nil && IsLoopback(u.Hostname())
}

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
