package strict

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// timeForm is the hint for a time.
const timeForm = "write it like 2026-12-01T00:00:00Z or 2026-12-01T00:00:00+01:00"

// giveIt is the hint for a value that is not there.
const giveIt = "give it a value, or remove the key"

// longest bounds every duration. Sums of a few cannot overflow, and a longer one is a typing error.
const longest = 366 * 24 * time.Hour

// WrongKind records that a mapping, list or scalar stands where another kind is needed.
func (d *Decoder) WrongKind(e Entry) {
	at := e.Value
	if e.IsNull() {
		at = e.At
	}
	d.Fail(at, d.Rules.Remedy(e), "%s must be a %s, not %s", e.Path, e.Kind, KindOf(e.Value))
}

// KindOf names the kind of a node in the user's words.
func KindOf(n *yaml.Node) string {
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

// Scalar reads a scalar and fills in its variables. If the result is not OK, it has recorded a problem.
func (d *Decoder) Scalar(e Entry, tags ...string) Text {
	if e.IsNull() {
		d.Fail(e.At, giveIt, "%s has no value", e.Path)
		return Text{}
	}
	if e.Value.Kind != yaml.ScalarNode || !slices.Contains(tags, e.Value.Tag) {
		d.wrongScalar(e)
		return Text{}
	}
	t := Text{Node: e.Value, Label: d.label(e), Value: e.Value.Value}
	if !d.Subject.Literal {
		var errs []error
		t.Value, t.Opaque, errs = substitute(e.Value.Value, d.Env)
		if t.Opaque {
			d.References = append(d.References, [2]string{d.Scope + e.Path, e.Value.Value})
		}
		for _, err := range errs {
			d.badReference(e, err)
		}
		if len(errs) > 0 {
			return Text{}
		}
	}
	if strings.ContainsRune(t.Value, 0) {
		d.Bad(t, "", "holds a NUL character")
		return Text{}
	}
	return t
}

// wrongScalar records that the value has the wrong type.
func (d *Decoder) wrongScalar(e Entry) {
	hint := ""
	isText := e.Kind == KindText || e.Kind == KindTextMap || e.Kind == KindTextList
	if e.Value.Kind == yaml.ScalarNode && isText {
		hint = "put it in quotes"
		if label := d.label(e); label != e.Path && len(e.Value.Value) < 40 {
			hint = fmt.Sprintf(`put it in quotes: %q`, e.Value.Value)
		}
	} else if hint = d.Rules.Remedy(e); hint == "" && e.Value.Kind == yaml.MappingNode && isText {
		hint = "put text that contains a colon and a space in quotes"
	}
	want := "a " + e.Kind
	switch {
	case isText:
		want = "text"
	case e.Kind == KindBool:
		want = e.Kind
	case e.Kind == KindCodes:
		want, hint = "a code or a range of codes", "write 404 or 200-299"
	case e.Kind == KindTime:
		hint = timeForm
	}
	d.Fail(e.Value, hint, "%s must be %s, not %s", e.Path, want, KindOf(e.Value))
}

// badReference records what is wrong with a variable in a value.
func (d *Decoder) badReference(e Entry, err error) {
	missing, isMissing := errors.AsType[MissingError](err)
	line, column, width := d.placeReference(e, "${"+missing.Name)
	message := d.Scope + e.Path + ": " + err.Error()
	switch {
	case isMissing && d.Rules.Unset != nil:
		d.Rules.Unset(e, missing, func(hint string) Problem {
			return d.src.problem(line, column, width, hint, message)
		})
	case isMissing:
		hint := fmt.Sprintf("set it, or give a default: ${%s:-…}; for a literal ${ write $${", missing.Name)
		d.problem(line, column, width, hint, message)
	default:
		d.problem(line, column, width, "write ${NAME} or ${NAME:-default}; for a literal ${ write $${", message)
	}
}

// placeReference returns the place of a variable in a value if its line shows it, and otherwise the place of the value.
func (d *Decoder) placeReference(e Entry, look string) (line, column, width int) {
	line, column, width = d.place(e.Value)
	src := d.src.line(line)
	if d.hidden[e.Value] || column-1+width > len(src) || width >= 1000 {
		return line, column, width
	}
	value := string(src[column-1 : column-1+width])
	if i := strings.Index(value, look); i >= 0 {
		column += utf8.RuneCountInString(value[:i])
		width = max(len("${"), utf8.RuneCountInString(reference.FindString(value[i:])))
	}
	return line, column, width
}

// Text reads text.
func (d *Decoder) Text(e Entry) Text { return d.Scalar(e, "!!str") }

// Mapping is a mapping with these keys.
func Mapping(keys []Key) Type {
	return Type{Kind: KindMapping, Keys: keys, Decode: func(d *Decoder, e Entry) { d.Mapping(e) }}
}

// Accepted is a scalar with one of the tags. accept stores its value, or records what is wrong with it.
//
//go:noinline
func Accepted(kind string, accept func(d *Decoder, e Entry, t Text) bool, tags ...string) Type {
	return Type{Kind: kind, Decode: func(d *Decoder, e Entry) {
		if t := d.Scalar(e, tags...); t.OK() && accept(d, e, t) {
			d.Rules.Note(e, t)
		}
	}}
}

// Fitting is text that fits, for to. fits records what is wrong with other text.
//
//go:noinline
func Fitting(to *string, fits func(d *Decoder, t Text) bool) Type {
	return Accepted(KindText, func(d *Decoder, _ Entry, t Text) bool {
		ok := fits(d, t)
		if ok {
			*to = t.Value
		}
		return ok
	}, "!!str")
}

// Checked is text that check finds nothing wrong with, for set. The hint of a value with variables is opaque, because
// that of check may repeat parts of the value.
//
//go:noinline
func Checked(set func(text string), opaque string, check func(text string) (why, hint string)) Type {
	return Accepted(KindText, func(d *Decoder, _ Entry, t Text) bool {
		why, hint := check(t.Value)
		if why == "" {
			set(t.Value)
			return true
		}
		if t.Opaque {
			hint = opaque
		}
		return d.Bad(t, hint, "%s", why)
	}, "!!str")
}

// Into is for Checked: it sets a variable.
func Into(to *string) func(string) { return func(text string) { *to = text } }

// NonEmpty is text other than "".
func NonEmpty(to *string) Type {
	return Checked(Into(to), giveIt, func(text string) (why, hint string) {
		if strings.TrimSpace(text) == "" {
			return "must not be empty", giveIt
		}
		return "", ""
	})
}

// Bool is true or false. A variable can only give text, so their text is accepted too.
//
//go:noinline
func Bool(to *bool) Type {
	return Accepted(KindBool, func(d *Decoder, e Entry, t Text) bool {
		word, hint := strings.ToLower(t.Value), ""
		switch {
		case e.Value.Tag == "!!bool" || t.Opaque && (word == "true" || word == "false"):
			*to = word == "true"
			return true
		case t.Opaque:
		case slices.Contains([]string{"true", "yes", "on", "y"}, word):
			hint = "write true, without quotes"
		case slices.Contains([]string{"false", "no", "off", "n"}, word):
			hint = "write false, without quotes"
		}
		return d.Bad(t, hint, "must be true or false")
	}, "!!bool", "!!str")
}

// Number is a whole number within the bounds of the key's form.
//
//go:noinline
func Number(to *int) Type {
	return Accepted(KindNumber, func(d *Decoder, e Entry, t Text) bool {
		v, err := strconv.Atoi(t.Value)
		switch {
		case err == nil && e.Value.Tag == "!!str" && !t.Opaque:
			return d.Bad(t, "write it without quotes", "must be a number")
		case errors.Is(err, strconv.ErrSyntax):
			return d.Bad(t, "", "must be a whole number")
		case v < e.Form.Least || v > e.Form.Most:
			return d.Bad(t, "", "must be from %d to %d", e.Form.Least, e.Form.Most)
		}
		*to = v
		return true
	}, "!!int", "!!float", "!!str")
}

// Limits says what is wrong with a duration; "" = nothing.
type Limits func(time.Duration) string

// AtLeast accepts durations that are not shorter than least, up to a year.
func AtLeast(least time.Duration) Limits { return Between(least, longest) }

// Between accepts durations from least to most.
func Between(least, most time.Duration) Limits {
	return func(v time.Duration) string {
		switch {
		case v < 0:
			return "must not be negative"
		case v < least:
			return "must be at least " + ShortDuration(least)
		case v > most:
			return "must be at most " + ShortDuration(most)
		}
		return ""
	}
}

// ShortDuration writes 1h instead of 1h0m0s.
func ShortDuration(v time.Duration) string {
	s := v.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Duration is a duration in Go's syntax.
//
//go:noinline
func Duration(to *time.Duration, check Limits) Type {
	return Accepted(KindDuration, func(d *Decoder, e Entry, t Text) bool {
		v, err := time.ParseDuration(t.Value)
		switch {
		case err != nil || e.Value.Tag != "!!str" && t.Value != "0":
			return d.badDuration(t)
		case check(v) != "":
			return d.Bad(t, "", "%s", check(v))
		}
		*to = v
		return true
	}, "!!str", "!!int", "!!float")
}

// looseDuration is how people and other tools write durations.
var looseDuration = regexp.MustCompile(`(?i)^\s*([0-9]+(?:\.[0-9]+)?)\s*(` +
	`s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|ms|millis|milliseconds?|)\s*$`)

func (d *Decoder) badDuration(t Text) bool {
	const form = "write a number and a unit: 500ms, 10s, 5m, 1h30m"
	if t.Opaque {
		return d.Bad(t, form, "the variable's value is not a duration")
	}
	m := looseDuration.FindStringSubmatch(t.Value)
	if m == nil || len(m[1]) > 6 {
		return d.Bad(t, form, "not a duration")
	}
	unit := strings.ToLower(m[2])
	switch {
	case unit == "":
		return d.Bad(t, "for seconds write "+m[1]+"s", "a duration needs a unit")
	case strings.HasPrefix(unit, "d"):
		days, _ := strconv.ParseFloat(m[1], 64)
		return d.Bad(t, fmt.Sprintf("there is no unit for days; write %vh", 24*days), "not a duration")
	case strings.HasPrefix(unit, "ms"), strings.HasPrefix(unit, "mil"):
		return d.Bad(t, "write "+m[1]+"ms", "not a duration")
	}
	return d.Bad(t, "write "+m[1]+unit[:1], "not a duration")
}

// Time is a moment. The text of YAML's own timestamps is parsed here, so that a date alone is not silently midnight.
//
//go:noinline
func Time(to *time.Time) Type {
	return Accepted(KindTime, func(d *Decoder, _ Entry, t Text) bool {
		v, err := time.Parse(time.RFC3339, t.Value)
		// UTC makes tables equal that write one time with different offsets. The conversion may lead out of the years
		// that can be written.
		if v = v.UTC(); err == nil && v.Year() >= 1 && v.Year() <= 9999 {
			*to = v
			return true
		}
		joined := strings.Replace(t.Value, " ", "T", 1)
		if day, err := time.Parse(time.DateOnly, t.Value); err == nil && !t.Opaque {
			return d.Bad(t, "write "+day.Format(time.RFC3339), "a date needs a time and a zone")
		} else if local, err := time.Parse("2006-01-02T15:04:05", joined); err == nil && !t.Opaque {
			return d.Bad(t, "write "+local.Format(time.RFC3339)+", or an offset instead of Z", "a time needs a zone")
		}
		return d.Bad(t, timeForm, "not a time")
	}, "!!str", "!!timestamp")
}

// TextMap reads a mapping of names to text; check returns what is wrong with a name, and a hint. A mapping in place of
// a text goes to mapped, unless none of its keys is one of e.Each: then it may be text that lacks its quotes.
func (d *Decoder) TextMap(e Entry, check func(name string) (why, hint string),
	each func(name *yaml.Node, t Text), mapped func(item Entry)) {
	d.Pairs(e, func(name, val *yaml.Node) {
		if why, hint := check(name.Value); why != "" {
			d.Fail(name, hint, "%s %q: %s", e.Path, d.NameText(name), why)
			return
		}
		item := Entry{Key: Key{Type: Type{Kind: KindText}}, Path: under(e.Path, d.NameText(name)), At: name, Value: val}
		if !d.Plain(item) {
			return
		}
		if e.Each != nil && val.Kind == yaml.MappingNode && anyOf(e.Each.Keys, val) {
			item.Key = *e.Each
			mapped(item)
			return
		}
		if t := d.Text(item); t.OK() {
			each(name, t)
		}
	})
}

// anyOf reports whether a mapping has one of the keys, however it is spelt.
func anyOf(keys []Key, mapping *yaml.Node) bool {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if _, ok := NearestKey(keys, Resolved(mapping.Content[i]).Value); ok {
			return true
		}
	}
	return false
}
