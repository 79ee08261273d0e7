package call

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/solotick/solotick/sidecar/execute"
)

// hidden stands for values that may be secrets.
const hidden = "***"

// lines describes a request: its first line, its headers, and the size of its body. The table's headers, the token
// for the app's reports and the query are hidden.
func (e *caller) lines(r execute.Run, req *http.Request) []string {
	u := *req.URL
	u.User = nil
	if u.RawQuery != "" {
		u.RawQuery = hidden
	}
	first := req.Method + " " + u.String()
	if e.transport.socket != "" && u.Host == e.url.Host {
		first += " over " + e.transport.socket
	}
	lines := []string{first}
	told := map[string]bool{}
	for _, f := range e.facts(r) {
		lines = append(lines, f.Header+": "+f.Value)
		told[f.Header] = true
	}
	if req.Host != req.URL.Host {
		lines = append(lines, "Host: "+hidden)
	}
	for _, name := range slices.Sorted(maps.Keys(req.Header)) {
		switch {
		case slices.Contains([]string{"User-Agent", "Content-Type", callbackHeader, heartbeatHeader}, name):
			lines = append(lines, name+": "+req.Header.Get(name))
		case !told[name]:
			lines = append(lines, name+": "+hidden)
		}
	}
	if req.ContentLength > 0 {
		lines = append(lines, fmt.Sprintf("a body of %d bytes", req.ContentLength))
	}
	return lines
}
