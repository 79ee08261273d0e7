package config

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

// schemaID is where the newest schema is to be had.
const schemaID = "https://raw.githubusercontent.com/solotick/solotick/main/docs/table.schema.json"

// Schema is a JSON Schema (draft 2020-12) of the table, for editors and other tools. It is made of the description that
// decodes the table: every table that Parse accepts is one for the schema too. The reverse does not hold: only Parse
// checks more than single values, such as whether a schedule ever ticks or two jobs have one name.
func Schema() []byte {
	root := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", schemaID},
		{"title", "Solotick table"},
		{"description", "What Solotick runs beside a service, and when. Every key is described in docs/table.md."},
	}
	root = append(root, ofMapping(strict.Key{Type: strict.Mapping(newTableDecoder(nil, time.Time{}).Root)}, false)...)
	root = append(root, field{"patternProperties", object{{"^" + strict.Extension, true}}})
	root = append(root, field{"$defs", object{
		{"variable", object{
			{"description", "`${NAME}` or `${NAME:-default}`, from Solotick's environment"},
			{"type", "string"}, {"pattern", anyVariable},
		}},
		{"duration", object{
			{"description", "numbers with units: 500ms, 10s, 5m, 1h30m; there is no unit for days"},
			{"anyOf", []any{textOf(strict.Form{Pattern: durations}), object{{"const", 0}}}},
		}},
		{"time", object{
			{"description", "date, time and zone: 2026-12-01T00:00:00Z"},
			{"type", "string"}, {"pattern", orVariable(moments)},
		}},
	}})
	var out bytes.Buffer
	if err := json.Indent(&out, encode(root), "", "  "); err != nil {
		panic("config: the schema is no JSON: " + err.Error())
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// anyVariable finds a variable in text. A value with a variable in it can be anything.
const anyVariable = `\$\{`

func orVariable(pattern string) string { return pattern + "|" + anyVariable }

// ofKey describes the value of a key.
func ofKey(k strict.Key) object {
	out := object{{"description", link.ReplaceAllString(k.Doc, "$1")}}
	out = append(out, ofKind(k)...)
	if k.Default != strict.Required && k.Default != "" && !strings.Contains(k.Default, " ") {
		out = append(out, field{"default", written(strings.Trim(k.Default, "`"))})
	}
	if k.Example != "" {
		out = append(out, field{"examples", []any{written(k.Example)}})
	}
	return out
}

// link matches a link of Markdown, which leads nowhere in a schema.
var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

func ofKind(k strict.Key) object {
	variable := ref("variable")
	switch k.Kind {
	case strict.KindMapping:
		return ofMapping(k, true)
	case kindJobs:
		job := ofMapping(k, false)
		return object{{"type", []any{"array", "null"}}, {"items", job}}
	case kindCalendars:
		return mapOf(k, ofMapping(strict.Key{Type: k.Type}, false))
	case kindSchedule:
		return object{{"anyOf", []any{textOf(k.Form), append(listOf(k, textOf(k.Form)), field{"minItems", 1})}}}
	case kindDates:
		return listOf(k, object{{"type", "string"}, {"pattern", k.Form.Pattern}})
	case strict.KindTextMap:
		each := textOf(strict.Form{Pattern: k.Form.Pattern, Length: k.Form.Length})
		if k.Each != nil {
			each = object{{"anyOf", []any{each, ofMapping(*k.Each, false)}}}
		}
		return mapOf(k, each).with(k.Form.Most > 0, "maxProperties", k.Form.Most)
	case strict.KindTextList:
		return listOf(k, textOf(k.Form))
	case strict.KindCodes:
		return listOf(k, object{{"anyOf", []any{integerOf(k.Form), textOf(k.Form)}}})
	case strict.KindDuration, strict.KindTime:
		return object{{"anyOf", []any{ref(k.Kind), variable}}}
	case strict.KindNumber:
		return object{{"anyOf", []any{integerOf(k.Form), variable}}}
	case strict.KindBool:
		return object{{"anyOf", []any{object{{"type", "boolean"}}, variable}}}
	}
	return textOf(k.Form)
}

// ofMapping describes a mapping. With mayBeEmpty it may also be null, as a key with nothing under it is.
func ofMapping(k strict.Key, mayBeEmpty bool) object {
	var properties object
	var needed []string
	var needs object
	for _, sub := range k.Keys {
		properties = append(properties, field{sub.Name, ofKey(sub)})
		if sub.Default == strict.Required {
			needed = append(needed, sub.Name)
		}
		if sub.Form.Needs != "" {
			needs = append(needs, field{sub.Name, []string{sub.Form.Needs}})
		}
	}
	out := object{{"type", "object"}}
	if mayBeEmpty && len(needed) == 0 && !k.Form.Chosen {
		out = object{{"type", []any{"object", "null"}}}
	}
	out = out.with(len(needed) > 0, "required", needed).with(len(needs) > 0, "dependentRequired", needs)
	var choice, pairs []any
	for i, a := range k.Form.Choice {
		choice = append(choice, object{{"required", []string{a}}})
		for _, b := range k.Form.Choice[:i] {
			pairs = append(pairs, object{{"type", "object"}, {"required", []string{b, a}}})
		}
	}
	out = out.with(k.Form.Chosen, "oneOf", choice)
	out = out.with(!k.Form.Chosen && len(pairs) > 0, "not", object{{"anyOf", pairs}})
	return append(out, field{"properties", properties}, field{"additionalProperties", false})
}

func ref(name string) object { return object{{"$ref", "#/$defs/" + name}} }

// textOf describes text that is one of some words, or has another form.
func textOf(f strict.Form) object {
	if len(f.Words) > 0 {
		return object{{"anyOf", []any{object{{"enum", f.Words}}, ref("variable")}}}
	}
	out := object{{"type", "string"}}.with(f.Pattern != "", "pattern", orVariable(f.Pattern))
	if f.Length > 0 { // with its variables replaced it may be shorter
		out = object{{"anyOf", []any{append(out, field{"maxLength", f.Length}), ref("variable")}}}
	}
	return out
}

func integerOf(f strict.Form) object {
	return object{{"type", "integer"}, {"minimum", f.Least}}.with(f.Most != 0, "maximum", f.Most)
}

func listOf(k strict.Key, item object) object {
	return object{{"type", "array"}, {"items", item}}.with(k.Form.Filled, "minItems", 1)
}

// mapOf describes a mapping with names of the user's.
func mapOf(k strict.Key, value object) object {
	return object{{"type", []any{"object", "null"}}, {"propertyNames", object{{"pattern", k.Form.Names}}},
		{"additionalProperties", value}}
}

// written converts a default or example of a description into JSON.
func written(value string) (v any) {
	var n yaml.Node
	err := yaml.Unmarshal([]byte(value), &n)
	if err == nil {
		datesToText(&n)
		err = n.Decode(&v)
	}
	if err != nil {
		panic("config: not YAML: " + value)
	}
	return v
}

// datesToText makes text of dates and times, which JSON does not have.
func datesToText(n *yaml.Node) {
	if n.Tag == "!!timestamp" {
		n.Tag = "!!str"
	}
	for _, child := range n.Content {
		datesToText(child)
	}
}
