package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

// field is a key of a JSON object, with its value.
type field struct {
	name  string
	value any
}

func canonicalFields(keys []strict.Key, n *yaml.Node) object {
	out := object{}
	for _, k := range keys {
		if v := canonicalValue(k, valueOf(n, k.Name)); v != nil {
			out = append(out, field{k.Name, v})
		}
	}
	return out
}

// canonicalValue returns a value in its one form; nil for one that is not there.
func canonicalValue(k strict.Key, n *yaml.Node) any {
	if n == nil || n.Tag == "!!null" && k.Name != "async" { // which says something by being there
		return nil
	}
	switch k.Kind {
	case strict.KindMapping:
		return canonicalFields(k.Keys, n)
	case strict.KindTextMap:
		texts := map[string]string{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			texts[n.Content[i].Value] = n.Content[i+1].Value
		}
		return texts
	case kindSchedule:
		if n.Kind == yaml.ScalarNode {
			return n.Value
		}
		exprs := []string{}
		for _, expr := range n.Content {
			exprs = append(exprs, expr.Value)
		}
		return exprs
	case strict.KindCodes:
		codes := []string{}
		for _, code := range n.Content {
			codes = append(codes, strings.ReplaceAll(code.Value, " ", ""))
		}
		return codes
	case strict.KindDuration:
		v, _ := time.ParseDuration(n.Value)
		return strict.ShortDuration(v)
	case strict.KindTime:
		v, _ := time.Parse(time.RFC3339, n.Value)
		return v.UTC().Format(time.RFC3339Nano)
	case strict.KindNumber:
		v, _ := strconv.Atoi(n.Value)
		return v
	case strict.KindBool:
		return strings.EqualFold(n.Value, "true")
	}
	return n.Value
}

// object is a JSON object whose keys keep their order.
type object []field

// with returns the object with one more field, if it has one.
func (o object) with(has bool, name string, value any) object {
	if !has {
		return o
	}
	return append(o, field{name, value})
}

// MarshalJSON writes the fields one by one.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + f.name + `":`)
		b.Write(encode(f.value))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encode writes JSON. It escapes unprintable characters, so that YAML can read the text too.
func encode(v any) []byte {
	switch v := v.(type) {
	case object:
		out, _ := v.MarshalJSON()
		return out
	case string:
		if !strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
			return []byte(`"` + v + `"`)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("config: a value that cannot be written as JSON: %v", err))
	}
	var out bytes.Buffer
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		if r <= 0xffff && !strconv.IsPrint(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

// escape matches an escape in JSON, or the two that together stand for one character.
var escape = regexp.MustCompile(`\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|.)`)

// plainJSON turns JSON into text that YAML can read. YAML has no pairs of escapes for one character, so plainJSON
// writes the character itself.
func plainJSON(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\u`)) || !json.Valid(data) {
		return data
	}
	return escape.ReplaceAllFunc(data, func(escaped []byte) []byte { // in JSON a backslash is always in a string
		var character string
		if len(escaped) <= len(`\u`) || json.Unmarshal(fmt.Appendf(nil, `"%s"`, escaped), &character) != nil {
			return escaped
		}
		return []byte(character)
	})
}
