package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

const (
	maxDepth = 128

	// budget bounds the steps of reading one file: a step is a value, or 16 bytes of text. A few lines of aliases to
	// lists of aliases have billions of values. The largest honest file takes a third of the budget.
	budget = 10_000_000
)

// manifests are the documents of one file.
type manifests struct {
	file  string
	left  int // of the budget
	jobs  []job
	other map[string]int // objects of other kinds
}

var errBomb = errors.New("its aliases stand for more than can be read")

// object is a value of a manifest; the zero object stands for a missing one.
type object struct {
	all  *manifests
	node *yaml.Node
}

// documents calls do for each document.
func (m *manifests) documents(data []byte, do func(object) error) (err error) {
	defer func() {
		// The library panics in states that it believes impossible.
		if r := recover(); r != nil {
			err = errors.New("not valid YAML")
		}
	}()
	if text := bytes.TrimSpace(data); bytes.HasPrefix(text, []byte("{")) {
		data = joined(data)
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithV4Defaults(),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	if err != nil {
		return err
	}
	for {
		var doc yaml.Node
		switch err := loader.Load(&doc); {
		case err == io.EOF:
			return nil
		case err != nil:
			return syntax(err, data)
		case len(doc.Content) != 1:
			continue
		}
		if err := do(object{m, doc.Content[0]}); err != nil {
			return err
		}
	}
}

// surrogates matches two escapes of JSON that together are one character, or half of such a pair. YAML knows the other
// escapes.
var surrogates = regexp.MustCompile(
	`\\\\|\\u[dD][89a-bA-B][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}`)

// joined replaces pairs of escapes by the character that they stand for.
func joined(data []byte) []byte {
	return surrogates.ReplaceAllFunc(data, func(escapes []byte) []byte {
		if len(escapes) == 2 { // an escaped backslash: the u after it begins no escape
			return escapes
		}
		var s string
		if json.Unmarshal([]byte(`"`+string(escapes)+`"`), &s) != nil {
			return escapes
		}
		return []byte(s)
	})
}

// syntax says where the text is not YAML.
func syntax(err error, data []byte) error {
	var le *yaml.LoadError
	why := "not valid YAML"
	if errors.As(err, &le) && le.Mark.Line > 0 {
		why = fmt.Sprintf("line %d is not valid YAML", le.Mark.Line)
		if strings.Contains(le.Message, "max depth") {
			why = fmt.Sprintf("line %d is nested too deep", le.Mark.Line)
		}
	}
	if bytes.Contains(data, []byte("{{")) {
		why += "; it looks like a template"
	}
	return errors.New(why)
}

// spend takes steps from the budget; false if it is used up.
func (m *manifests) spend(steps int) bool {
	m.left -= steps
	return m.left >= 0
}

// is reports whether the value exists and is not null.
func (o object) is() bool {
	return o.node != nil && !(o.node.Kind == yaml.ScalarNode && o.node.Tag == "!!null")
}

func (o object) of(n *yaml.Node) object {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return object{o.all, n}
}

// get returns the value at a path of keys.
func (o object) get(path ...string) object {
	for _, key := range path {
		found := object{}
		o.each(0, func(k string, value object, own bool) {
			if k == key && (own || found.node == nil) {
				found = value
			}
		})
		o = found
	}
	return o
}

// each calls do for each key of a mapping, in the order of the file, and then for those that merge keys bring. Own keys
// win, and then the first.
func (o object) each(depth int, do func(key string, value object, own bool)) {
	if o.node == nil || o.node.Kind != yaml.MappingNode || depth > maxDepth || !o.all.spend(len(o.node.Content)) {
		return
	}
	var merged []object
	for i := 0; i+1 < len(o.node.Content); i += 2 {
		key, value := o.of(o.node.Content[i]).node.Value, o.of(o.node.Content[i+1])
		switch {
		case key != "<<":
			do(key, value, depth == 0)
		case value.node.Kind == yaml.SequenceNode:
			merged = append(merged, value.items()...)
		default:
			merged = append(merged, value)
		}
	}
	for _, m := range merged {
		m.each(depth+1, do)
	}
}

func (o object) text() string {
	if !o.is() || o.node.Kind != yaml.ScalarNode || !o.all.spend(1+len(o.node.Value)/16) {
		return ""
	}
	return o.node.Value
}

func (o object) items() []object {
	if o.node == nil || o.node.Kind != yaml.SequenceNode || !o.all.spend(len(o.node.Content)) {
		return nil
	}
	out := make([]object, 0, len(o.node.Content))
	for _, n := range o.node.Content {
		out = append(out, o.of(n))
	}
	return out
}

func (o object) texts() []string {
	var out []string
	for _, item := range o.items() {
		out = append(out, item.text())
	}
	return out
}

// keys returns the keys of a mapping, in the order of the file.
func (o object) keys() []string {
	var out []string
	seen := map[string]bool{}
	o.each(0, func(key string, _ object, _ bool) {
		if !seen[key] {
			seen[key], out = true, append(out, key)
		}
	})
	return out
}

// empty reports whether a value says nothing: missing, null, "", 0, false, {} or [].
func (o object) empty() bool {
	switch {
	case !o.is():
		return true
	case o.node.Kind == yaml.ScalarNode:
		return o.node.Value == "" || o.node.Value == "0" || o.node.Value == "false"
	}
	return len(o.node.Content) == 0
}
