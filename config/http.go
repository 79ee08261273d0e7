package config

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

func httpKeys(to *HTTP) []strict.Key {
	return []strict.Key{
		{Name: "method", Type: strict.Fitting(&to.Method, isMethod), Default: "POST", Example: "PUT",
			Form: methodForm, Show: strict.Shown, Also: "verb", Doc: "HTTP method, in capitals"},
		{Name: "url", Type: strict.Checked(strict.Into(&to.URL), checkVariables, checkHTTPURL),
			Default: strict.Required, Example: "http://unix:/run/app.sock:/tidy", Form: webForm, Show: strict.ShownURL,
			Also: "uri target endpoint", Doc: "`http://127.0.0.1:8080/path`, or `http://unix:/run/app.sock:/path`"},
		headersKey(to),
		{Name: "body", Type: strict.Fitting(&to.Body, isBody), Example: `'{"dry": false}'`, Form: bodyForm,
			Also: "data payload json", Doc: "request body, at most 64 KiB"},
		{Name: "successCodes", Type: codes(&to.SuccessCodes, "[200-299]", "a success"), Default: "[200-299]",
			Example: "[200-204, 404]", Form: codesForm, Show: strict.Shown, Also: "status expectedStatus",
			Doc: "answers that count as success: codes and ranges from 100 to 599"},
		{Name: "idempotencyKey", Type: word(&to.IdempotencyKey), Default: string(KeyText),
			Example: "uuid", Form: strict.Words(KeyText, KeyUUID), Show: strict.Shown, Also: "idempotency",
			Doc: "the header `Idempotency-Key`: `text` is `\"service/job/tick\"`, `uuid` a UUID made of it"},
		{Name: "tls", Type: made(&to.TLS, TLS{}, tlsKeys, complete("")),
			Doc: "for `https://`: other roots or names than the system's, or a client's certificate"},
		{Name: "sign", Type: strict.Type{Kind: strict.KindMapping, Keys: signKeys(&to.Sign), Decode: complete("")},
			Also: "signature hmac webhook",
			Doc:  "signs each request: see [handlers.md](handlers.md#prove-that-it-was-solotick-that-called)"},
		{Name: "async", Type: asyncType(&to.Async), Also: "callback longRunning",
			Doc: "the app may answer 202 and report the end later, see [Long jobs](#long-jobs); `{}` has the defaults"},
	}
}

var token7230 = regexp.MustCompile(headerNames)

func isMethod(d *strict.Decoder, t strict.Text) bool {
	upper := strings.ToUpper(t.Value)
	switch {
	case !token7230.MatchString(t.Value):
		return d.Bad(t, "write GET, POST, PUT, …", "not an HTTP method")
	case t.Value != upper:
		return d.Bad(t, t.IfShown("write "+upper), "must be in capitals")
	case t.Value == http.MethodConnect:
		return d.Bad(t, "", "opens a tunnel and runs nothing")
	}
	return true
}

// These are set by Solotick itself, or by HTTP; a value in the table would have no effect or break the request.
var (
	ownHeaders  = strings.Fields("Idempotency-Key User-Agent")
	httpHeaders = strings.Fields("Connection Content-Length Keep-Alive Proxy-Connection Te Trailer " +
		"Transfer-Encoding Upgrade")
)

// headersKey describes the headers. The value of each is text, or a mapping that names a file.
func headersKey(h *HTTP) strict.Key {
	var of HeaderFile
	file := strict.Key{Type: strict.Mapping(headerFileKeys(&of))}
	return strict.Key{Name: "headers", Example: `{Authorization: "Bearer ${TOKEN}"}`,
		Form: strict.Form{Names: headerNames}, Show: strict.ShownNames, Also: "header", Each: &file,
		Doc: "headers beside those that Solotick sets itself; the value is text, or [a file](#httpheaders)",
		Type: strict.Type{Kind: strict.KindTextMap, Decode: func(d *strict.Decoder, e strict.Entry) {
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
			d.TextMap(e, CheckHeaderName, func(name *yaml.Node, t strict.Text) {
				if isNew(name) && fitsHeader(d, t) {
					set(&h.Headers, name.Value, t.Value)
					oddVariable(d, t)
				}
			}, func(item strict.Entry) {
				name := item.At.Value
				switch canonical := http.CanonicalHeaderKey(name); {
				case !isNew(item.At):
				case canonical == "Host", canonical == "Content-Type":
					d.Fail(item.At, "it is no secret: write it as text", "%s cannot come from a file", item.Path)
				default:
					of = HeaderFile{}
					complete("")(d, item)
					set(&h.HeaderFiles, name, of)
				}
			})
		}}}
}

// IsHeaderValue reports whether a header can have that value.
func IsHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// oneTrace is the reason why a table cannot set the trace of its runs.
const oneTrace = "a value of the table would put all runs into one trace"

// CheckHeaderName says why the table may not set a header, and what to write instead. Such a header tells the job of
// its run, governs the connection and not the call, or would be the same for all runs.
func CheckHeaderName(name string) (why, hint string) {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !token7230.MatchString(name):
		return "not the name of a header", "write a mapping: {Authorization: \"Bearer ${TOKEN}\"}"
	case strings.HasPrefix(canonical, "Solotick-"):
		return "headers that begin with Solotick- are set by Solotick itself", ""
	case canonical == "Traceparent":
		return oneTrace, ""
	case slices.Contains(ownHeaders, canonical):
		return "this header is set by Solotick itself", ""
	case slices.Contains(httpHeaders, canonical):
		return "this header is set by HTTP itself", ""
	}
	return "", ""
}

func isBody(d *strict.Decoder, t strict.Text) bool {
	if len(t.Value) > maxBody {
		return d.Bad(t, "", "must have at most 64 KiB, has %d", (len(t.Value)+1023)>>10)
	}
	oddVariable(d, t)
	return true
}

var codeRange = regexp.MustCompile(codesForm.Pattern)

// codes is a list of codes. An empty one is refused: instead says what to write, and lost what no answer would be.
func codes(to *[]CodeRange, instead, lost string) strict.Type {
	return strict.Type{Kind: strict.KindCodes, Decode: func(d *strict.Decoder, e strict.Entry) {
		d.NoteWhole(e)
		items, ok := d.List(e)
		if ok && len(items) == 0 {
			if e.IsNull() || len(e.Value.Content) == 0 {
				d.Fail(e.At, "write "+instead+", or remove the key",
					"%s: without a code no answer would be %s", e.Path, lost)
			}
			return
		}
		var codes []CodeRange
		noted := strict.Text{Node: e.At, Label: e.Path}
		for _, item := range items {
			t := d.Scalar(item, "!!int", "!!str")
			noted.Opaque = noted.Opaque || t.Opaque || !t.OK()
			if code, ok := codeOf(d, t); ok {
				codes = append(codes, code)
			}
		}
		d.Rules.Note(e, noted)
		*to = codes
	}}
}

// codeOf reads a code or a range of codes.
func codeOf(d *strict.Decoder, t strict.Text) (code CodeRange, ok bool) {
	if !t.OK() {
		return code, false
	}
	m := codeRange.FindStringSubmatch(t.Value)
	if m == nil {
		return code, d.Bad(t, "", "must be a code (404) or a range of codes (200-299)")
	}
	code.From, _ = strconv.Atoi(m[1])
	code.To, _ = strconv.Atoi(cmp.Or(m[2], m[1]))
	switch {
	case min(code.From, code.To) < codesForm.Least || max(code.From, code.To) > codesForm.Most:
		return code, d.Bad(t, "", "codes go from 100 to 599")
	case code.To < code.From:
		return code, d.Bad(t, t.IfShown(fmt.Sprintf("write %d-%d", code.To, code.From)), "the range is reversed")
	}
	return code, true
}
