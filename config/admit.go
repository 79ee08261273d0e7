package config

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/solotick/solotick/config/strict"
)

// Admits returns why a timer must not run beside this table; nil if it may. It may connect to this
// machine by TCP, except to the replica's own admin address. Unix sockets can belong to other programs, such as a
// container runtime: it may connect only to those that a job of the table or the readiness gate calls. The File of the
// problem is "body".
func (t *Table) Admits(j *Job) *Problem {
	var what, hint string
	socket := socketOf(j.HTTP.URL)
	calls := func(other Job) bool { return other.HTTP != nil && socketOf(other.HTTP.URL) == socket }
	switch known := t.Ready != nil && socketOf(t.Ready.URL) == socket || slices.ContainsFunc(t.Jobs, calls); {
	case socket != "" && !known:
		what = "http.url is a unix socket that neither a job of the table nor its readiness gate calls"
		hint = "call the app at http://127.0.0.1:PORT, or " + toTheTable
	case socket == "" && t.isAdmin(j.HTTP.URL):
		what = "http.url is the replica's own admin address, which jobs may not call"
		hint = "call the app, and let the app call the API"
	case j.HTTP.Async != nil && t.Admin == "":
		what = "http.async: the app reports to the admin address, and the table's admin is \"\""
		hint = "let the answer end the run"
	default:
		return nil
	}
	name := strict.Quoted(strings.TrimPrefix(j.Name, "timer:"))
	return &Problem{File: "body", Message: fmt.Sprintf("timer %s: %s", name, what), Hint: hint}
}

// isAdmin reports whether a URL has the port of the admin address. It does not see every spelling: the executor checks
// the address itself when it connects.
func (t *Table) isAdmin(raw string) bool {
	_, port, err := net.SplitHostPort(t.Admin)
	u, failed := url.Parse(raw)
	return err == nil && failed == nil && u.Port() == port && IsLoopback(u.Hostname())
}

// socketOf returns the path of the unix socket that a URL names; "" if it names none.
func socketOf(raw string) string {
	rest, ok := strings.CutPrefix(raw, unixURL)
	if !ok {
		return ""
	}
	file, _, _ := strings.Cut(rest, ":")
	return path.Clean(file)
}
