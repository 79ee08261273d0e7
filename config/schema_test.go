package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

const schemaFile = "../docs/table.schema.json"

// compiled is the schema as another tool sees it.
func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("table.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("table.schema.json") // which holds it against the schema of schemas
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// judged is what the schema says of a table; ok is false for what is no YAML, of which it can say nothing.
func judged(t testing.TB, s *jsonschema.Schema, data []byte) (verdict error, ok bool) {
	t.Helper()
	root := newTableDecoder(nil, testNow).Read("table.yaml", data)
	if root == nil {
		return nil, false
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(encode(jsonOf(root))))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v), true
}

// jsonOf converts a value of YAML into JSON, whatever is wrong with it.
func jsonOf(n *yaml.Node) any {
	switch n = strict.Resolved(n); {
	case n.Kind == yaml.MappingNode:
		out := object{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			out = append(out, field{strict.Resolved(n.Content[i]).Value, jsonOf(n.Content[i+1])})
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

func TestTheSchemaInTheDocsIsTheOneThatIsPrinted(t *testing.T) {
	if *update {
		if err := os.WriteFile(schemaFile, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, Schema()) {
		t.Errorf("%s is not what the keys say: run the test with -update", schemaFile)
	}
}

func TestEveryGoodTableIsGoodForTheSchema(t *testing.T) {
	s := compiled(t)
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d tables, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if verdict, ok := judged(t, s, data); verdict != nil || !ok {
			t.Errorf("%s: %v", file, verdict)
		}
	}
}

// TestAVariableCanStandForEveryValue, and what it stands for may be shorter than its name.
func TestAVariableCanStandForEveryValue(t *testing.T) {
	s := compiled(t)
	data, err := os.ReadFile("testdata/good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	root := newTableDecoder(nil, testNow).Read("table.yaml", data)
	values := 0
	var replace func(n *yaml.Node)
	replace = func(n *yaml.Node) {
		for i, child := range n.Content {
			switch {
			case n.Kind == yaml.MappingNode && i%2 == 0:
			case child.Kind == yaml.ScalarNode:
				values++
				child.Tag, child.Value = "!!str", "${"+strings.Repeat("LONG_", 15_000)+":-"+child.Value+"}"
			default:
				replace(child)
			}
		}
	}
	replace(root)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(encode(jsonOf(root))))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil || values < 60 {
		t.Errorf("%d values: %.2000v", values, err)
	}
}

// beyondTheSchema are the bad tables that are good for the schema, and why it cannot know better.
var beyondTheSchema = map[string]string{
	"admin-from-variable":                "a variable",
	"redis-url-from-variable":            "a variable",
	"schedule-from-variable":             "a variable",
	"variable-malformed":                 "a variable",
	"variable-missing":                   "a variable",
	"variable-not-a-duration":            "a variable",
	"crlf":                               "a schedule", // what is wrong with it is not its line ends
	"line-very-long":                     "twice",
	"schedule-descriptor-misspelt":       "a schedule",
	"schedule-every-too-short":           "a schedule",
	"schedule-never":                     "a schedule",
	"schedule-out-of-range":              "a schedule",
	"schedule-reboot":                    "a schedule",
	"schedule-reversed-range":            "a schedule",
	"schedule-too-few-fields":            "a schedule",
	"schedule-zone-prefix":               "a schedule",
	"window-without-tick":                "a schedule",
	"jitter-from-defaults":               "an order of values",
	"jitter-too-long":                    "an order of values",
	"redis-timeout-too-long":             "an order of values",
	"ttl-shorter-than-three-round-trips": "an order of values",
	"window-reversed":                    "an order of values",
	"redis-timeout-zero":                 "a duration's size",
	"ttl-too-short":                      "a duration's size",
	"listen-bad-port":                    "a number in text",
	"redis-url-database":                 "a number in text",
	"redis-socket-bad":                   "a part of a URL",
	"redis-url-options":                  "a part of a URL",
	"redis-url-two-colons":               "a part of a URL",
	"redis-url-ipv6-bare":                "a part of a URL",
	"redis-url-password-with-slash":      "a part of a URL",
	"redis-two-passwords":                "what a URL says already",
	"redis-embedded-with-identity":       "what a URL says already",
	"redis-password-beside-url":          "what a URL says already",
	"redis-password-twice":               "another key beside it",
	"redis-tls-without-rediss":           "what a URL says already",
	"http-tls-without-https":             "what a URL says already",
	"http-sign-twice":                    "another key beside it",
	"http-async-without-admin":           "another key beside it",
	"redis-embedded-with-replicas":       "what a URL says already",
	"redis-embedded-with-tls":            "what a URL says already",
	"url-remote":                         "allowRemote",
	"url-remote-with-secrets":            "allowRemote",
	"duplicate-key":                      "twice", // JSON has the last
	"duplicate-name":                     "twice",
}

// TestTheSchemaRefusesWhatCanBeSeen: of the bad tables it accepts those alone of which the list says why.
func TestTheSchemaRefusesWhatCanBeSeen(t *testing.T) {
	s := compiled(t)
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	left, refused := len(beyondTheSchema), 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		why, listed := beyondTheSchema[name]
		if listed {
			left--
		}
		switch verdict, ok := judged(t, s, data); {
		case !ok && listed:
			t.Errorf("%s is no YAML, but listed as %q", name, why)
		case !ok:
		case verdict == nil && !listed:
			t.Errorf("the schema accepts %s", name)
		case verdict != nil && listed:
			t.Errorf("the schema refuses %s, which is listed as %q", name, why)
		case verdict != nil:
			refused++
		}
	}
	if left != 0 || refused < 60 {
		t.Errorf("%d of the list are no tables, %d were refused", left, refused)
	}
}

// TestTheTablesOfTheExamplesNameTheSchema, by a path that leads to it in a clone, and are good for it.
func TestTheTablesOfTheExamplesNameTheSchema(t *testing.T) {
	s := compiled(t)
	want, err := filepath.Abs(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir("../examples", func(file string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Base(file) != "table.yaml" {
			return err
		}
		found++
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		line, _, _ := strings.Cut(string(data), "\n")
		path, ok := strings.CutPrefix(line, "# yaml-language-server: $schema=")
		if got, err := filepath.Abs(filepath.Join(filepath.Dir(file), path)); err != nil || !ok || got != want {
			rel, _ := filepath.Rel(filepath.Dir(file), schemaFile)
			t.Errorf("%s does not begin with # yaml-language-server: $schema=%s", file, rel)
		}
		if verdict, ok := judged(t, s, data); verdict != nil || !ok {
			t.Errorf("%s: %v", file, verdict)
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%d tables, %v", found, err)
	}
}

// TestTheSchemaExplainsItself: an editor shows a description, and where there is one the default, of every key.
func TestTheSchemaExplainsItself(t *testing.T) {
	s := compiled(t)
	described := 0
	var walk func(path string, s *jsonschema.Schema, keys []strict.Key)
	walk = func(path string, s *jsonschema.Schema, keys []strict.Key) {
		for _, k := range keys {
			p := s.Properties[k.Name]
			if p == nil || p.Description == "" || strings.Contains(p.Description, "](") {
				t.Errorf("%s%s: described as %v", path, k.Name, p)
				continue
			}
			described++
			if k.Keys == nil && len(p.Examples) == 0 {
				t.Errorf("%s%s has no example", path, k.Name)
			}
			for _, v := range append(p.Examples, value(p.Default)...) {
				if err := p.Validate(v); err != nil {
					t.Errorf("%s%s: its own example or default: %v", path, k.Name, err)
				}
			}
			switch k.Kind {
			case kindJobs:
				p = p.Items2020
			case kindCalendars:
				p, _ = p.AdditionalProperties.(*jsonschema.Schema)
			}
			walk(path+k.Name+".", p, k.Keys)
			if k.Each != nil {
				walk(path+k.Name+".*.", p.AdditionalProperties.(*jsonschema.Schema).AnyOf[1], k.Each.Keys)
			}
		}
	}
	walk("", s, blank.Root)
	if described != count(blank.Root) {
		t.Errorf("%d keys of %d are described", described, count(blank.Root))
	}
}

// value is the one behind the pointer, if any.
func value(p *any) []any {
	if p == nil {
		return nil
	}
	return []any{*p}
}
