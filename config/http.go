package config

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

const (
	maxBody = 64 << 10

	// unixURL begins the URL of a unix socket: http://unix:/run/app.sock:/path, as nginx writes it.
	unixURL = "http://unix:"
)

func (d *decoder) http(e strict.Entry) {
	d.job.HTTP = &HTTP{Method: http.MethodPost, SuccessCodes: []CodeRange{{200, 299}}}
	if found := d.Mapping(e); found["url"] == nil && (e.IsNull() || e.Value.Kind == yaml.MappingNode) {
		d.Fail(e.At, "url: http://127.0.0.1:8080/path", "http.url is missing")
	}
}

var token7230 = regexp.MustCompile(headerNames)

func (d *decoder) method(e strict.Entry) {
	t := d.Text(e)
	switch {
	case !t.OK():
	case !token7230.MatchString(t.Value):
		d.Bad(t, "write GET, POST, PUT, …", "not an HTTP method")
	case t.Value != strings.ToUpper(t.Value):
		hint := ""
		if !t.Opaque {
			hint = "write " + strings.ToUpper(t.Value)
		}
		d.Bad(t, hint, "must be in capitals")
	case t.Value == http.MethodConnect:
		d.Bad(t, "", "opens a tunnel and runs nothing")
	default:
		d.job.HTTP.Method = t.Value
	}
}

func (d *decoder) httpURL(e strict.Entry) {
	t := d.Text(e)
	if !t.OK() {
		return
	}
	if why, hint := checkHTTPURL(t.Value); why != "" {
		if t.Opaque {
			hint = "check the values of its variables"
		}
		d.Bad(t, hint, "%s", why)
		return
	}
	d.job.HTTP.URL = t.Value
	d.note(e, t)
}

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

// isLocal says whether a target is on this machine, without asking a name server: by its address, not by a name that
// resolves to it. The executor checks the address again when it connects.
func isLocal(raw string) bool {
	if strings.HasPrefix(raw, unixURL) {
		return true
	}
	u, err := url.Parse(raw)
	return err == nil && IsLoopback(u.Hostname())
}

// isToy says whether a target is the toy app that a replica serves itself. Only a table with the embedded store can call
// it: elsewhere the host is an ordinary name, and refused as one that is not on this machine.
func isToy(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Scheme == "http" && u.Host == Embedded
}

// CallsToy tells whether the job calls the toy app that its replica serves itself, for trials on one machine. With
// allowRemote, the host of the URL is an ordinary name.
func (j *Job) CallsToy() bool { return j.HTTP != nil && !j.AllowRemote && isToy(j.HTTP.URL) }

// ownHeaders are set by Solotick itself, or by HTTP; a value in the table would have no effect or break the request.
var ownHeaders = map[string]string{
	"Idempotency-Key":   "Solotick",
	"User-Agent":        "Solotick",
	"Connection":        "HTTP",
	"Content-Length":    "HTTP",
	"Keep-Alive":        "HTTP",
	"Proxy-Connection":  "HTTP",
	"Te":                "HTTP",
	"Trailer":           "HTTP",
	"Transfer-Encoding": "HTTP",
	"Upgrade":           "HTTP",
}

func (d *decoder) headers(e strict.Entry) {
	before := map[string]*yaml.Node{}
	isNew := func(name *yaml.Node) bool {
		canonical := http.CanonicalHeaderKey(name.Value)
		if other := before[canonical]; other != nil {
			d.Fail(name, "", "%s %q: the same header is already set in %s; case makes no difference",
				e.Path, d.NameText(name), d.Place(other, name))
			return false
		}
		before[canonical] = name
		return true
	}
	if e.Each != nil {
		each := *e.Each
		each.Decode = func(item strict.Entry) {
			if isNew(item.At) {
				d.headerFile(item)
			}
		}
		e.Each = &each
	}
	d.TextMap(e, checkHeaderName, func(name *yaml.Node, t strict.Text) {
		if isNew(name) && d.fitsHeader(t) {
			set(&d.job.HTTP.Headers, name.Value, t.Value)
			d.oddVariable(t)
		}
	})
}

// fitsHeader checks a header's value, or a part of it.
func (d *decoder) fitsHeader(t strict.Text) bool {
	if IsHeaderValue(t.Value) {
		return true
	}
	d.Bad(t, "a file or variable that ends in a newline is the usual cause",
		"a header's value cannot hold line breaks or control characters")
	return false
}

// IsHeaderValue says whether a header can have that value.
func IsHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// oneTrace is the reason why a table cannot set the trace of its runs.
const oneTrace = "a value of the table would put all runs into one trace"

func checkHeaderName(name string) (why, hint string) {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !token7230.MatchString(name):
		return "not the name of a header", "write a mapping: {Authorization: \"Bearer ${TOKEN}\"}"
	case strings.HasPrefix(canonical, "Solotick-"):
		return "headers that begin with Solotick- are set by Solotick itself", ""
	case canonical == "Traceparent":
		return oneTrace, ""
	case ownHeaders[canonical] != "":
		return "this header is set by " + ownHeaders[canonical] + " itself", ""
	}
	return "", ""
}

func (d *decoder) body(e strict.Entry) {
	t := d.Text(e)
	if t.OK() && len(t.Value) > maxBody {
		d.Bad(t, "", "must have at most 64 KiB, has %d", (len(t.Value)+1023)>>10)
		return
	}
	d.oddVariable(t)
	d.job.HTTP.Body = t.Value
}

var codeRange = regexp.MustCompile(codesForm.Pattern)

// codes reads a list of codes. It refuses an empty list with the given hint and complaint.
func (d *decoder) codes(e strict.Entry, to *[]CodeRange, hint, complaint string) {
	d.noteMapping(e)
	items, ok := d.List(e)
	if ok && len(items) == 0 {
		if e.IsNull() || len(e.Value.Content) == 0 {
			d.Fail(e.At, hint, "%s: %s", e.Path, complaint)
		}
		return
	}
	var codes []CodeRange
	noted := strict.Text{Node: e.At, Label: e.Path}
	for _, item := range items {
		t := d.Scalar(item, "!!int", "!!str")
		noted.Opaque = noted.Opaque || t.Opaque || !t.OK()
		if !t.OK() {
			continue
		}
		m := codeRange.FindStringSubmatch(t.Value)
		if m == nil {
			d.Bad(t, "", "must be a code (404) or a range of codes (200-299)")
			continue
		}
		from, _ := strconv.Atoi(m[1])
		to := from
		if m[2] != "" {
			to, _ = strconv.Atoi(m[2])
		}
		switch {
		case from < 100 || from > 599 || to < 100 || to > 599:
			d.Bad(t, "", "codes go from 100 to 599")
		case to < from:
			hint := ""
			if !t.Opaque {
				hint = fmt.Sprintf("write %d-%d", to, from)
			}
			d.Bad(t, hint, "the range is reversed")
		default:
			codes = append(codes, CodeRange{from, to})
		}
	}
	d.note(e, noted)
	*to = codes
}
