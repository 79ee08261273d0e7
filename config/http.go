package config

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

const (
	maxBody = 64 << 10

	// unixURL begins the URL of a unix socket: http://unix:/run/app.sock:/path, as nginx writes it.
	unixURL = "http://unix:"
)

func (d *decoder) http(e entry) {
	d.job.HTTP = &HTTP{Method: http.MethodPost, SuccessCodes: []CodeRange{{200, 299}}}
	if found := d.mapping(e); found["url"] == nil && (e.isNull() || e.val.Kind == yaml.MappingNode) {
		d.fail(e.at, "url: http://127.0.0.1:8080/path", "http.url is missing")
	}
}

var token7230 = regexp.MustCompile(headerNames)

func (d *decoder) method(e entry) {
	t := d.text(e)
	switch {
	case !t.ok():
	case !token7230.MatchString(t.value):
		d.bad(t, "write GET, POST, PUT, …", "not an HTTP method")
	case t.value != strings.ToUpper(t.value):
		hint := ""
		if !t.opaque {
			hint = "write " + strings.ToUpper(t.value)
		}
		d.bad(t, hint, "must be in capitals")
	case t.value == http.MethodConnect:
		d.bad(t, "", "opens a tunnel and runs nothing")
	default:
		d.job.HTTP.Method = t.value
	}
}

func (d *decoder) httpURL(e entry) {
	t := d.text(e)
	if !t.ok() {
		return
	}
	if why, hint := checkHTTPURL(t.value); why != "" {
		if t.opaque {
			hint = "check the values of its variables"
		}
		d.bad(t, hint, "%s", why)
		return
	}
	d.job.HTTP.URL = t.value
	d.noteText(e, t)
}

// checkHTTPURL says what is wrong with a target, and what to write instead. Neither repeats it.
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
		if better := "http://" + raw; !strings.Contains(raw, "://") && openURL.MatchString(better) {
			return "must begin with http:// or https://", "write " + better
		}
		return "must begin with http:// or https://", form
	case u.Hostname() == "":
		return "has no host", form
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

// isLocal says whether a target is on this machine whatever a name server says: by its address, not by a name that
// resolves to it. The address is looked at again when the connection is made.
func isLocal(raw string) bool {
	if strings.HasPrefix(raw, unixURL) {
		return true
	}
	u, err := url.Parse(raw)
	return err == nil && isLoopback(u.Hostname())
}

// ownHeaders are set by Solotick itself, or by HTTP; a value of the table would be overruled or break the request.
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

func (d *decoder) headers(e entry) {
	lines := map[string]int{}
	d.textMap(e, checkHeaderName, func(name *yaml.Node, t text) {
		canonical := http.CanonicalHeaderKey(name.Value)
		if line := lines[canonical]; line > 0 {
			d.fail(name, "", "%s %q: the same header is already set in line %d; case makes no difference",
				e.path, d.nameText(name), line)
			return
		}
		lines[canonical] = name.Line
		if strings.ContainsFunc(t.value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			d.bad(t, "a file or variable that ends in a newline is the usual cause",
				"a header's value cannot hold line breaks or control characters")
			return
		}
		set(&d.job.HTTP.Headers, name.Value, t.value)
	})
}

// oneTrace is why a table has no say about the trace of its runs.
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

func (d *decoder) body(e entry) {
	t := d.text(e)
	if t.ok() && len(t.value) > maxBody {
		d.bad(t, "", "must have at most 64 KiB, has %d", (len(t.value)+1023)>>10)
		return
	}
	d.job.HTTP.Body = t.value
}

var codeRange = regexp.MustCompile(codesForm.pattern)

// codes reads a list of codes. An empty one is refused: hint and complaint say why.
func (d *decoder) codes(e entry, to *[]CodeRange, hint, complaint string) {
	d.note(e)
	items, ok := d.list(e)
	if ok && len(items) == 0 {
		if e.isNull() || len(e.val.Content) == 0 {
			d.fail(e.at, hint, "%s: %s", e.path, complaint)
		}
		return
	}
	var codes []CodeRange
	noted := text{node: e.at, label: e.path}
	for _, item := range items {
		t := d.scalar(item, "!!int", "!!str")
		noted.opaque = noted.opaque || t.opaque || !t.ok()
		if !t.ok() {
			continue
		}
		m := codeRange.FindStringSubmatch(t.value)
		if m == nil {
			d.bad(t, "", "must be a code (404) or a range of codes (200-299)")
			continue
		}
		from, _ := strconv.Atoi(m[1])
		to := from
		if m[2] != "" {
			to, _ = strconv.Atoi(m[2])
		}
		switch {
		case from < 100 || from > 599 || to < 100 || to > 599:
			d.bad(t, "", "codes go from 100 to 599")
		case to < from:
			hint := ""
			if !t.opaque {
				hint = fmt.Sprintf("write %d-%d", to, from)
			}
			d.bad(t, hint, "the range is reversed")
		default:
			codes = append(codes, CodeRange{from, to})
		}
	}
	d.noteText(e, noted)
	*to = codes
}
