package admin

import (
	"maps"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// methods has the handlers of one path. GET also answers HEAD.
type methods map[string]http.HandlerFunc

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if h := m[method]; h != nil {
		h(w, r)
		return
	}
	allowed := slices.Sorted(maps.Keys(m))
	if m[http.MethodGet] != nil {
		allowed = append(allowed, http.MethodHead)
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	write(w, refuse(http.StatusMethodNotAllowed, "it takes "+strings.Join(allowed, ", "),
		"this path does not take that method"))
}

// guard lets through requests to a name of this machine and, from browsers, only those of our own page. A browser on
// this machine runs scripts of all kinds of sites. A site may have its own name resolve to 127.0.0.1 and so reach us,
// but the request still bears that name. A site may also send a request blindly to our name, but the browser says where
// it comes from. A read is refused, too: a site cannot see its answer, but it costs memory. So the check, which lets
// reads through, is shown a POST.
//
// guard also refuses requests of jobs. A job's request is for the app, and gets here only by its URL or a redirect.
// Otherwise a job could operate every replica that runs it.
func (a *api) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Solotick-Replica", a.Name)
		forbid := func(hint, why string) { write(w, refuse(http.StatusForbidden, hint, "%s", why)) }
		posted := &http.Request{Method: http.MethodPost, URL: r.URL, Host: r.Host, Header: r.Header}
		switch {
		case !isLoopback(r.Host):
			forbid("ask for localhost or 127.0.0.1, through kubectl port-forward for example",
				"this is served to the machine itself alone, and the request names another host")
		case a.crossOrigin.Check(posted) != nil:
			forbid("type the address of the status page into the browser",
				"the request comes from a page of another origin")
		case r.Header["Solotick-Run"] != nil:
			forbid("an app that calls the API itself must not send the header Solotick-Run",
				"a job sent this request, and jobs may not call the API")
		case r.URL.Path != clean(r.URL.Path): // which the mux would redirect
			write(w, refuse(http.StatusNotFound, "", "there is nothing here"))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isLoopback reports whether a Host header names this machine. A tunnel may have changed the port, so any port will do.
func isLoopback(host string) bool {
	name := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if strings.Trim(port, "0123456789") != "" {
			return false
		}
		name = h
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		name = host[1 : len(host)-1]
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Zone() == "" && addr.IsLoopback() && !addr.Is4In6()
}

// clean returns the one form of a path that the API answers.
func clean(p string) string {
	cleaned := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && cleaned != "/" {
		return cleaned + "/"
	}
	return cleaned
}
