package strict

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// ReadJSON returns the tree of a text that is one JSON object, as Read does, and much sooner. Its nodes have no places,
// so that a text with problems has to be read again. It is nil for all that Read could take for something else.
func (d *Decoder) ReadJSON(data []byte) *yaml.Node {
	d.Begin("")
	if len(data) > d.Subject.Limit || bytes.Contains(data, []byte(`\u`)) || bytes.ContainsAny(data, "\ufffe\uffff") ||
		!d.isText(data) {
		return nil
	}
	from := json.NewDecoder(bytes.NewReader(data))
	from.UseNumber()
	root := node(from, 0)
	if _, err := from.Token(); err != io.EOF || root == nil || root.Kind != yaml.MappingNode {
		return nil
	}
	d.unplaced = true
	return root
}

// node reads one value.
func node(from *json.Decoder, depth int) *yaml.Node {
	token, err := from.Token()
	if err != nil {
		return nil
	}
	scalar := &yaml.Node{Kind: yaml.ScalarNode}
	switch v := token.(type) {
	case string:
		scalar.Tag, scalar.Style, scalar.Value = "!!str", yaml.DoubleQuotedStyle, v
	case bool:
		scalar.Tag, scalar.Value = "!!bool", "false"
		if v {
			scalar.Value = "true"
		}
	case json.Number:
		scalar.Tag, scalar.Value = "!!int", v.String()
		if scalar.Value == "-0" || strings.ContainsAny(scalar.Value, ".eE") {
			return nil
		}
	case json.Delim:
		return nodes(from, v, depth+1)
	default:
		scalar.Tag, scalar.Value = "!!null", "null"
	}
	return scalar
}

// nodes reads an object or a list.
func nodes(from *json.Decoder, begin json.Delim, depth int) *yaml.Node {
	const deepest, longestKey = 8, 1000 // bytes; YAML refuses keys that are a little longer
	all := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: yaml.FlowStyle}
	if begin == '[' {
		all.Kind, all.Tag = yaml.SequenceNode, "!!seq"
	}
	for from.More() {
		n := node(from, depth)
		if n == nil || depth >= deepest || begin == '{' && len(all.Content)%2 == 0 && len(n.Value) > longestKey {
			return nil
		}
		all.Content = append(all.Content, n)
	}
	if _, err := from.Token(); err != nil {
		return nil
	}
	return all
}
