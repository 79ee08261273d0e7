package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// timeForm tells how to write a moment.
const timeForm = "write it like 2026-12-01T00:00:00Z or 2026-12-01T00:00:00+01:00"

// longest bounds every duration: sums of a few cannot overflow, and more is a slip of the pen.
const longest = 366 * 24 * time.Hour

// wrongKind says that a mapping, list or scalar stands where another is needed.
func (d *decoder) wrongKind(e entry) {
	hint := ""
	switch {
	case e.kind == kindTextList && e.val.Kind == yaml.ScalarNode:
		hint = `write a list: ["/bin/tool", "--fast"], or for a shell ["sh", "-c", "…"]`
	case e.kind == kindJobs:
		hint = "begin each job with a dash: - name: …"
	case e.kind == kindTextMap:
		hint = "write a mapping: {NAME: value}"
	case e.kind == kindMapping:
		if k, ok := find(e.keys, "url"); ok && e.val.Kind == yaml.ScalarNode {
			hint = fmt.Sprintf("write %s: {%s: …}", e.name, k.name)
		} else if example := filled[e.name]; example != "" {
			hint = fmt.Sprintf("write %s: %s", e.name, example)
		}
	case e.kind == kindCodes && e.val.Kind == yaml.ScalarNode:
		hint = "write a list: [200-299, 404]"
	}
	at := e.val
	if e.isNull() {
		at = e.at
	}
	d.fail(at, hint, "%smust be a %s, not %s", lead(e.path), e.kind, kindOf(e.val))
}

// lead is a path as the subject of a message; the table itself has none.
func lead(path string) string {
	if path == "" {
		return "the table "
	}
	return path + " "
}

// kindOf names what a node is in the user's words.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!timestamp":
		return "a date"
	}
	return "text"
}

// scalar reads a scalar and fills in its variables. What is wrong with it has been reported when the result is not ok.
func (d *decoder) scalar(e entry, tags ...string) text {
	if e.isNull() {
		d.fail(e.at, "give it a value, or remove the key", "%shas no value", lead(e.path))
		return text{}
	}
	if e.val.Kind != yaml.ScalarNode || !slices.Contains(tags, e.val.Tag) {
		d.wrongScalar(e)
		return text{}
	}
	t := text{node: e.val, label: d.label(e), value: e.val.Value}
	if !d.of.api {
		var errs []error
		t.value, t.opaque, errs = substitute(e.val.Value, d.env)
		if t.opaque {
			d.references = append(d.references, [2]string{d.scope + e.path, e.val.Value})
		}
		for _, err := range errs {
			d.badReference(e, err)
		}
		if len(errs) > 0 {
			return text{}
		}
	}
	if strings.ContainsRune(t.value, 0) {
		d.bad(t, "", "holds a NUL character")
		return text{}
	}
	return t
}

// wrongScalar says that the value has another type.
func (d *decoder) wrongScalar(e entry) {
	hint := ""
	isText := e.kind == kindText || e.kind == kindTextMap || e.kind == kindTextList
	if e.val.Kind == yaml.ScalarNode && isText {
		hint = "put it in quotes"
		if label := d.label(e); label != e.path && len(e.val.Value) < 40 {
			hint = fmt.Sprintf(`put it in quotes: %q`, e.val.Value)
		}
	} else if isText && e.name == "body" {
		hint = `a body is text: put it in quotes, '{"dry": false}'`
	} else if e.val.Kind == yaml.MappingNode && isText {
		hint = "put text that contains a colon and a space in quotes"
	}
	want := "a " + e.kind
	switch {
	case isText:
		want = "text"
	case e.kind == kindBool:
		want = e.kind
	case e.kind == kindCodes:
		want, hint = "a code or a range of codes", "write 404 or 200-299"
	case e.kind == kindTime:
		hint = timeForm
	}
	d.fail(e.val, hint, "%smust be %s, not %s", lead(e.path), want, kindOf(e.val))
}

// badReference says what is wrong with a variable in a value.
func (d *decoder) badReference(e entry, err error) {
	hint := "write ${NAME} or ${NAME:-default}; for a literal ${ write $${"
	look := "${"
	var missing missingError
	if errors.As(err, &missing) {
		if d.lenient {
			d.leftUnset(e, missing)
			return
		}
		hint = fmt.Sprintf("set it, or give a default: ${%s:-…}; for a literal ${ write $${", missing.name)
		look = "${" + missing.name
	}
	line, column, width := d.placeReference(e, look)
	d.problem(line, column, width, hint, d.scope+e.path+": "+err.Error())
}

// placeReference is where a variable stands in a value, if its line shows it, and else where the value does.
func (d *decoder) placeReference(e entry, look string) (line, column, width int) {
	line, column, width = d.place(e.val)
	if src := d.src.line(line); column-1+width <= len(src) && width < 1000 {
		if i := strings.Index(string(src[column-1:column-1+width]), look); i >= 0 && !d.hidden[e.val] {
			value := string(src[column-1 : column-1+width])
			column += len([]rune(value[:i]))
			width = 2
			if ref := reference.FindString(value[i:]); ref != "" {
				width = len([]rune(ref))
			}
		}
	}
	return line, column, width
}

// text reads text.
func (d *decoder) text(e entry) text { return d.scalar(e, "!!str") }

// nonEmpty reads text that says something.
func (d *decoder) nonEmpty(e entry, to *string) text {
	t := d.text(e)
	if t.ok() && strings.TrimSpace(t.value) == "" {
		d.bad(t, "give it a value, or remove the key", "must not be empty")
		return text{}
	}
	if t.ok() {
		*to = t.value
		d.noteText(e, t)
	}
	return t
}

// oneOf reads one of the words of a key.
func oneOf[T ~string](d *decoder, e entry, to *T) {
	t := d.text(e)
	if !t.ok() {
		return
	}
	words := e.form.words
	if slices.Contains(words, t.value) {
		*to = T(t.value)
		d.noteText(e, t)
		return
	}
	hint := ""
	if !t.opaque {
		hint = wordHint(e.name, t.value, words)
	}
	d.bad(t, hint, "must be %s", strings.Join(words, " or "))
}

// bool reads true or false. A variable can only give text, so that its text counts too.
func (d *decoder) bool(e entry, to *bool) {
	t := d.scalar(e, "!!bool", "!!str")
	if !t.ok() {
		return
	}
	word := strings.ToLower(t.value)
	switch {
	case e.val.Tag == "!!bool" || t.opaque && (word == "true" || word == "false"):
		*to = word == "true"
		d.noteText(e, t)
	case slices.Contains([]string{"true", "yes", "on", "y"}, word) && !t.opaque:
		d.bad(t, "write true, without quotes", "must be true or false")
	case slices.Contains([]string{"false", "no", "off", "n"}, word) && !t.opaque:
		d.bad(t, "write false, without quotes", "must be true or false")
	default:
		d.bad(t, "", "must be true or false")
	}
}

// number reads a whole number.
func (d *decoder) number(e entry, to *int) {
	t := d.scalar(e, "!!int", "!!str")
	if !t.ok() {
		return
	}
	v, err := strconv.Atoi(t.value)
	switch {
	case err == nil && e.val.Tag == "!!str" && !t.opaque:
		d.bad(t, "write it without quotes", "must be a number")
	case err != nil:
		d.bad(t, "", "must be a whole number")
	case v < e.form.least || v > e.form.most:
		d.bad(t, "", "must be from %d to %d", e.form.least, e.form.most)
	default:
		*to = v
		d.noteText(e, t)
	}
}

// limits says which durations are acceptable: a complaint, or "".
type limits func(time.Duration) string

func atLeast(least time.Duration) limits { return between(least, longest) }

func between(least, most time.Duration) limits {
	return func(v time.Duration) string {
		switch {
		case v < 0:
			return "must not be negative"
		case v < least:
			return "must be at least " + shortDuration(least)
		case v > most:
			return "must be at most " + shortDuration(most)
		}
		return ""
	}
}

// shortDuration writes 1h instead of 1h0m0s.
func shortDuration(v time.Duration) string {
	s := v.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// duration reads a duration in Go's syntax.
func (d *decoder) duration(e entry, to *time.Duration, check limits) text {
	t := d.scalar(e, "!!str", "!!int", "!!float")
	if !t.ok() {
		return text{}
	}
	v, err := time.ParseDuration(t.value)
	switch {
	case err != nil || e.val.Tag != "!!str" && t.value != "0":
		d.badDuration(t)
	case check(v) != "":
		d.bad(t, "", "%s", check(v))
	default:
		*to = v
		d.noteText(e, t)
		return t
	}
	return text{}
}

// looseDuration is how people and other tools write durations.
var looseDuration = regexp.MustCompile(`(?i)^\s*([0-9]+(?:\.[0-9]+)?)\s*(` +
	`s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|ms|millis|milliseconds?|)\s*$`)

func (d *decoder) badDuration(t text) {
	const form = "write a number and a unit: 500ms, 10s, 5m, 1h30m"
	if t.opaque {
		d.bad(t, form, "the variable's value is not a duration")
		return
	}
	m := looseDuration.FindStringSubmatch(t.value)
	if m == nil || len(m[1]) > 6 {
		d.bad(t, form, "not a duration")
		return
	}
	unit := strings.ToLower(m[2])
	switch {
	case unit == "":
		d.bad(t, "for seconds write "+m[1]+"s", "a duration needs a unit")
		return
	case strings.HasPrefix(unit, "d"):
		days, _ := strconv.ParseFloat(m[1], 64)
		d.bad(t, fmt.Sprintf("there is no unit for days; write %vh", 24*days), "not a duration")
		return
	case strings.HasPrefix(unit, "ms"), strings.HasPrefix(unit, "mil"):
		unit = "ms"
	default:
		unit = unit[:1]
	}
	d.bad(t, "write "+m[1]+unit, "not a duration")
}

// time reads a moment. YAML's own timestamps are taken by their text, so that a date alone is not silently midnight.
func (d *decoder) time(e entry, to *time.Time) {
	t := d.scalar(e, "!!str", "!!timestamp")
	if !t.ok() {
		return
	}
	v, err := time.Parse(time.RFC3339, t.value)
	// In UTC, so that the same moment written with another offset is the same table. The offset may lead out of the
	// years that can be written.
	if v = v.UTC(); err == nil && v.Year() >= 1 && v.Year() <= 9999 {
		*to = v
		d.noteText(e, t)
		return
	}
	if day, err := time.Parse(time.DateOnly, t.value); err == nil && !t.opaque {
		d.bad(t, "write "+day.Format(time.RFC3339), "a date needs a time and a zone")
		return
	}
	if local, err := time.Parse("2006-01-02T15:04:05", strings.Replace(t.value, " ", "T", 1)); err == nil && !t.opaque {
		d.bad(t, "write "+local.Format(time.RFC3339)+", or an offset instead of Z", "a time needs a zone")
		return
	}
	d.bad(t, timeForm, "not a time")
}

// set puts text into a mapping that is made for the first one: none and an empty one are the same in every hash.
func set(to *map[string]string, name, value string) {
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[name] = value
}

// textMap reads a mapping of names to text; check says what is wrong with a name, and what to do.
func (d *decoder) textMap(e entry, check func(name string) (why, hint string),
	each func(name *yaml.Node, t text)) {
	if e.isNull() {
		return
	}
	if e.val.Kind != yaml.MappingNode {
		d.wrongKind(e)
		return
	}
	d.pairs(e, func(name, val *yaml.Node) {
		if why, hint := check(name.Value); why != "" {
			d.fail(name, hint, "%s %q: %s", e.path, d.nameText(name), why)
			return
		}
		item := entry{key: key{kind: kindText}, path: under(e.path, d.nameText(name)), at: name, val: val}
		if !d.plain(item) {
			return
		}
		if t := d.text(item); t.ok() {
			each(name, t)
		}
	})
}
