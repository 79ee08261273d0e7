package config

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/solotick/solotick/config/strict"
)

// placeholders are the names that a Link can have in braces.
var placeholders = []string{"service", "job", "run", "trace", "tick", "from", "to", "replica"}

var (
	placeholder = regexp.MustCompile(`\{([^{}]*)\}`)
	inHost      = regexp.MustCompile(`^[^/?#]*://[^/?#\\]*\{`)
)

// Fill puts values in place of the names in braces. Each value is escaped, so it stays within its part of the path, the
// query or the fragment. Fill returns "" if a value is missing. It also does so for a value of dots alone: no escaping
// keeps a browser from taking that for a step up in the path.
func (l Link) Fill(values map[string]string) string {
	whole := true
	filled := placeholder.ReplaceAllStringFunc(string(l), func(name string) string {
		value := values[name[1:len(name)-1]]
		whole = whole && strings.Trim(value, ".") != ""
		return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") // a + is a blank in a query alone
	})
	if !whole {
		return ""
	}
	return filled
}

func linkKeys(to *Links) []strict.Key {
	return []strict.Key{
		{Name: "logs", Type: strict.Fitting((*string)(&to.Logs), isLink),
			Example: `"https://logs.example.com/search?q={run}&from={from}&to={to}"`, Form: webForm, Show: strict.Shown,
			Also: "log logging", Doc: "page with the log of a run"},
		{Name: "traces", Type: strict.Fitting((*string)(&to.Traces), isLink),
			Example: `"https://traces.example.com/trace/{trace}"`, Form: webForm, Show: strict.Shown,
			Also: "trace tracing", Doc: "page with the traces of a run"},
	}
}

func isLink(d *strict.Decoder, t strict.Text) bool {
	before := len(d.Problems)
	checkPlaceholders(d, t)
	if why, hint := checkOpenURL(placeholder.ReplaceAllString(t.Value, "x")); why != "" {
		if t.Opaque {
			hint = checkVariables
		}
		d.Bad(t, hint, "%s", why)
	}
	return len(d.Problems) == before
}

func checkPlaceholders(d *strict.Decoder, t strict.Text) {
	hint := "allowed are {" + strings.Join(placeholders, "}, {") + "}"
	for _, m := range placeholder.FindAllStringSubmatch(t.Value, -1) {
		if !slices.Contains(placeholders, m[1]) {
			d.Bad(t, hint, "unknown placeholder%s", t.IfShown(" "+strict.Quoted(m[0])))
		}
	}
	if strings.ContainsAny(placeholder.ReplaceAllString(t.Value, ""), "{}") {
		d.Bad(t, "for a brace of the URL itself write %7B or %7D", "has a brace that is not part of a placeholder")
	}
	if inHost.MatchString(t.Value) {
		d.Bad(t, "put it into the path or the query", "a placeholder cannot stand in the host")
	}
}
