package call

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/solotick/solotick/sidecar/execute"
)

func TestTheReasonOfAFailedCallIsWhatItsBodyTells(t *testing.T) {
	const page = "<!DOCTYPE html>\n<html><head><title>OperationalError at /jobs</title>\n<style>\nh1 { color: red }\n</style>" +
		"<script>alert('x')</script></head>\n<body><!-- a <b>comment</b> -->\n" +
		"<h1>could not connect to &quot;ledger&quot;</h1>\n</body>\n</html>\n"
	const python = "Traceback (most recent call last):\n  File \"/app/x.py\", line 3, in <module>\n    f()\nValueError: no invoices\n"
	for _, c := range []struct{ kind, body, want string }{
		{"application/json", "{\n  \"error\": \"no such customer\",\n  \"id\": 7\n}\n", `{"error":"no such customer","id":7}`},
		{"text/plain", "[\n \"a\",\n \"b\"\n]", `["a","b"]`},
		{"application/problem+json", "{\n  \"title\": \"cut", `{ "title": "cut`},
		{"text/html; charset=utf-8", page, `OperationalError at /jobs could not connect to "ledger"`},
		{"", "<html><body>&#27;[2J <b>bad", "␛[2J bad"},
		{"text/plain", "\n\nno such table: invoices\napp/jobs.rb:4:in `create'\n", "no such table: invoices"},
		{"text/plain", python, "ValueError: no invoices"},
		{"", "no newline \x1b[31m", "no newline ␛[31m"},
		{"", "", ""},
		{"application/json", `{"error":"` + strings.Repeat("é", 400) + `"}`, `{"error":"` + strings.Repeat("é", 289) + "…"},
		{"text/html", "<p>" + strings.Repeat("x", 40_000), strings.Repeat("x", 299) + "…"},
	} {
		a := newApp(t, func(w http.ResponseWriter, _ *http.Request) {
			if c.kind != "" {
				w.Header().Set("Content-Type", c.kind)
			}
			w.WriteHeader(500)
			fmt.Fprint(w, c.body)
		})
		res := call(t, a.URL)
		wantStatus(t, res, execute.Failed)
		if res.Reason != c.want || utf8.RuneCountInString(res.Reason) > 300 {
			t.Errorf("%s %.60q: the reason is %q, want %q", c.kind, c.body, res.Reason, c.want)
		}
	}
}

func TestASuccessfulCallHasNoReason(t *testing.T) {
	a := newApp(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "all is well") })
	if res := call(t, a.URL); res.Reason != "" {
		t.Errorf("the reason is %q", res.Reason)
	}
}
