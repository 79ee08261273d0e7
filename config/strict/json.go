package strict

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v4"
)

// ReadJSON returns the tree of a text that is one JSON object, as Read does, and much sooner. Its nodes have no places,
// so that a text with problems has to be read again. It is nil for all that Read could take for something else.
func (d *Decoder) ReadJSON(data []byte) (root *yaml.Node) {
	d.Begin("")
	if len(data) > d.Subject.Limit || bytes.Contains(data, []byte(`\u`)) || bytes.ContainsAny(data, "\ufffe\uffff") ||
		!d.isText(data) || !json.Valid(data) {
		return nil
	}
	rest := string(data)
	if root = node(&rest, 0); root == nil || root.Kind != yaml.MappingNode {
		return nil
	}
	d.unplaced = true
	return root
}

// node reads the first value of rest, which is a part of valid JSON, and cuts it off.
func node(rest *string, depth int) *yaml.Node {
	const between = " \t\r\n,:"         // what separates values
	const deepest, longestKey = 8, 1000 // bytes; YAML refuses keys that are a little longer
	text, end := strings.TrimLeft(*rest, between), 1
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch begin := text[0]; begin {
	case '{', '[':
		n.Kind, n.Tag, n.Style = yaml.SequenceNode, "!!seq", yaml.FlowStyle
		if begin == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		for text = strings.TrimLeft(text[1:], between); text[0] != '}' && text[0] != ']'; {
			item, isKey := node(&text, depth+1), begin == '{' && len(n.Content)%2 == 0
			if item == nil || depth+1 >= deepest || isKey && len(item.Value) > longestKey {
				return nil
			}
			n.Content = append(n.Content, item)
			text = strings.TrimLeft(text, between)
		}
	case '"':
		for ; text[end] != '"'; end++ {
			if text[end] == '\\' {
				end++
			}
		}
		n.Tag, n.Style, n.Value = "!!str", yaml.DoubleQuotedStyle, text[1:end]
		end++
		if strings.Contains(n.Value, `\`) && json.Unmarshal([]byte(text[:end]), &n.Value) != nil {
			return nil
		}
	default:
		end = max(strings.IndexAny(text, between+"]}"), 0)
		switch n.Tag, n.Value = "!!int", text[:end]; {
		case n.Value == "null":
			n.Tag = "!!null"
		case n.Value == "true", n.Value == "false":
			n.Tag = "!!bool"
		case n.Value == "-0", strings.ContainsAny(n.Value, ".eE"):
			return nil
		}
	}
	*rest = text[end:]
	return n
}
