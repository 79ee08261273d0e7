package config

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Schema is a JSON Schema (draft 2020-12) of the table, for editors and other tools. It is made of the description that
// decodes the table: every table that Parse accepts is one for the schema too. The reverse does not hold: what takes
// more than looking at one value is for Parse alone, as whether a schedule ever ticks or a name is there twice.
func Schema() []byte {
	root := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "Solotick table"},
		{"description", "What Solotick runs beside a service, and when. Every key is described in docs/table.md."},
	}
	root = append(root, ofMapping(key{keys: tableKeys()}, false)...)
	root = append(root, field{"patternProperties", object{{"^" + extension, true}}})
	root = append(root, field{"$defs", object{
		{"variable", object{
			{"description", "`${NAME}` or `${NAME:-default}`, from Solotick's environment"},
			{"type", "string"}, {"pattern", anyVariable},
		}},
		{"duration", object{
			{"description", "numbers with units: 500ms, 10s, 5m, 1h30m; there is no unit for days"},
			{"anyOf", []any{textOf(form{pattern: durations}), object{{"const", 0}}}},
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

// anyVariable finds a variable in text. With one in it a value can be anything.
const anyVariable = `\$\{`

func orVariable(pattern string) string { return pattern + "|" + anyVariable }

// ofKey describes the value of a key.
func ofKey(k key) object {
	out := object{{"description", link.ReplaceAllString(k.doc, "$1")}}
	out = append(out, ofKind(k)...)
	if k.def != required && k.def != none && !strings.Contains(k.def, " ") {
		out = append(out, field{"default", written(strings.Trim(k.def, "`"))})
	}
	if k.example != "" {
		out = append(out, field{"examples", []any{written(k.example)}})
	}
	return out
}

// link is a link of Markdown. Where a schema is shown it leads nowhere.
var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

func ofKind(k key) object {
	variable := ref("variable")
	switch k.kind {
	case kindMapping:
		return ofMapping(k, true)
	case kindJobs:
		job := ofMapping(key{keys: k.keys, form: k.form}, false)
		return object{{"type", []any{"array", "null"}}, {"items", job}}
	case kindTextMap:
		return object{
			{"type", []any{"object", "null"}},
			{"propertyNames", object{{"pattern", k.form.names}}},
			{"additionalProperties", object{{"type", "string"}}},
		}
	case kindTextList:
		return listOf(k, textOf(k.form))
	case kindCodes:
		return listOf(k, object{{"anyOf", []any{integerOf(k.form), textOf(k.form)}}})
	case kindDuration, kindTime:
		return object{{"anyOf", []any{ref(k.kind), variable}}}
	case kindNumber:
		return object{{"anyOf", []any{integerOf(k.form), variable}}}
	case kindBytes:
		return object{{"anyOf", []any{integerOf(k.form), textOf(k.form)}}}
	case kindBool:
		return object{{"anyOf", []any{object{{"type", "boolean"}}, variable}}}
	}
	if len(k.form.words) > 0 {
		return object{{"anyOf", []any{object{{"enum", k.form.words}}, variable}}}
	}
	return textOf(k.form)
}

// ofMapping describes a mapping. It may be left empty, with nothing under its key, when that alone is no error.
func ofMapping(k key, mayBeEmpty bool) object {
	var properties object
	var needed []string
	var needs object
	for _, sub := range k.keys {
		properties = append(properties, field{sub.name, ofKey(sub)})
		if sub.def == required {
			needed = append(needed, sub.name)
		}
		if sub.form.needs != "" {
			needs = append(needs, field{sub.name, []string{sub.form.needs}})
		}
	}
	out := object{{"type", "object"}}
	if mayBeEmpty && len(needed) == 0 && !k.form.chosen {
		out = object{{"type", []any{"object", "null"}}}
	}
	if len(needed) > 0 {
		out = append(out, field{"required", needed})
	}
	if len(needs) > 0 {
		out = append(out, field{"dependentRequired", needs})
	}
	var choice, pairs []any
	for i, a := range k.form.choice {
		choice = append(choice, object{{"required", []string{a}}})
		for _, b := range k.form.choice[:i] {
			pairs = append(pairs, object{{"type", "object"}, {"required", []string{b, a}}})
		}
	}
	switch {
	case k.form.chosen:
		out = append(out, field{"oneOf", choice})
	case len(pairs) > 0:
		out = append(out, field{"not", object{{"anyOf", pairs}}})
	}
	return append(out, field{"properties", properties}, field{"additionalProperties", false})
}

func ref(name string) object { return object{{"$ref", "#/$defs/" + name}} }

func textOf(f form) object {
	out := object{{"type", "string"}}
	if f.pattern != "" {
		out = append(out, field{"pattern", orVariable(f.pattern)})
	}
	if f.length > 0 { // with its variables written out it may be shorter
		out = object{{"anyOf", []any{append(out, field{"maxLength", f.length}), ref("variable")}}}
	}
	return out
}

func integerOf(f form) object {
	out := object{{"type", "integer"}, {"minimum", f.least}}
	if f.most != 0 {
		out = append(out, field{"maximum", f.most})
	}
	return out
}

func listOf(k key, item object) object {
	out := object{{"type", "array"}, {"items", item}}
	if k.form.filled {
		out = append(out, field{"minItems", 1})
	}
	return out
}

// written is a default or example of a description as JSON has it.
func written(value string) any {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(value), &n); err != nil || len(n.Content) != 1 {
		panic("config: not YAML: " + value)
	}
	return jsonOf(n.Content[0])
}

// jsonOf is a value of YAML as tools that know JSON see it.
func jsonOf(n *yaml.Node) any {
	switch n = resolved(n); {
	case n.Kind == yaml.MappingNode:
		out := object{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			out = append(out, field{resolved(n.Content[i]).Value, jsonOf(n.Content[i+1])})
		}
		return out
	case n.Kind == yaml.SequenceNode:
		out := []any{}
		for _, item := range n.Content {
			out = append(out, jsonOf(item))
		}
		return out
	case n.Tag == "!!null":
		return nil
	case n.Tag == "!!bool":
		return strings.EqualFold(n.Value, "true")
	case n.Tag == "!!int", n.Tag == "!!float":
		if v, err := strconv.ParseFloat(n.Value, 64); err == nil {
			return v
		}
	}
	return n.Value
}
