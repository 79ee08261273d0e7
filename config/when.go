package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/config/strict"
)

// expressions are one schedule, or a list of them.
func expressions(j *draft) strict.Type {
	return strict.Type{Kind: kindSchedule, Decode: func(d *strict.Decoder, e strict.Entry) {
		const form = `write five fields, "0 9 * * MON-FRI", or @hourly, @every 30s, …`
		items, most := []strict.Entry{e}, mostExpressions
		if d.Subject.Literal {
			most = mostOfTimer
		}
		if e.Value.Kind == yaml.SequenceNode {
			items, _ = d.List(e)
			switch n := len(items); {
			case n == 0:
				d.Fail(e.Value, form, "schedule must not be empty")
				return
			case n > most:
				d.Fail(e.Value, "", "schedule must have at most %d items, has %d", most, n)
				return
			}
		}
		j.exprs = nil
		for _, item := range items {
			item.Kind = strict.KindText
			t := d.Text(item)
			if t.OK() && strings.TrimSpace(t.Value) == "" {
				d.Bad(t, form, "must not be empty")
			} else if t.OK() {
				j.exprs = append(j.exprs, t)
			}
		}
		switch {
		case len(j.exprs) < len(items):
		case e.Value.Kind == yaml.SequenceNode:
			d.Rules.Note(e, strict.Text{Node: e.Value, Label: e.Path})
		default:
			d.Rules.Note(e, j.exprs[0])
		}
	}}
}

// isZone reports whether a text is a zone, and records the problem if it is none: that points at the zone then, and not
// at the schedule.
func isZone(d *strict.Decoder, t strict.Text) bool {
	if schedule.IsZone(t.Value) {
		return true
	}
	hint, why := "write an IANA name, as UTC or Europe/Berlin", "there is no such time zone"
	switch near, fixed := nearestZone(t.Value), offsetZone(t.Value); {
	case t.Opaque:
	case strings.EqualFold(t.Value, "local"):
		why = "means another zone on each machine"
	case near != "":
		hint = fmt.Sprintf("did you mean %q?", near)
	case fixed != "":
		hint = "write " + fixed + ", with the sign reversed; or a place such as Europe/Berlin, for daylight saving"
	}
	return d.Bad(t, hint, "%s", why)
}

// nearestZone finds a zone written in another case, with a space, or without its region; "" when there is none.
func nearestZone(name string) string {
	before := '/'
	titled := strings.Map(func(r rune) rune {
		if r = unicode.ToLower(r); strings.ContainsRune("/_-", before) {
			r = unicode.ToUpper(r)
		}
		before = r
		return r
	}, strings.ReplaceAll(strings.TrimSpace(name), " ", "_"))
	tries := []string{titled, strings.ToUpper(titled)}
	for _, region := range strings.Fields("Europe America Asia Africa Australia Pacific Atlantic") {
		tries = append(tries, region+"/"+titled)
	}
	for _, try := range tries {
		if schedule.IsZone(try) && try != "LOCAL" {
			return try
		}
	}
	return ""
}

var fixedOffset = regexp.MustCompile(`(?i)^(?:utc|gmt)?\s*([-+])0?([0-9]{1,2})(?::?00)?$`)

// offsetZone returns the zone with a fixed offset from UTC for a name such as UTC+1; "" if there is none. The names of
// these zones have the opposite sign, as POSIX has it.
func offsetZone(name string) string {
	m := fixedOffset.FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	sign := map[string]string{"+": "-", "-": "+"}[m[1]]
	hours, _ := strconv.Atoi(m[2])
	zone := fmt.Sprintf("Etc/GMT%s%d", sign, hours)
	if !schedule.IsZone(zone) {
		return ""
	}
	return zone
}
