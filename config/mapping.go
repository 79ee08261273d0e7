package config

import (
	"cmp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

// made is a mapping that read decodes into a new T, which begins as start.
//
//go:noinline
func made[T any](to **T, start T, keys func(*T) []strict.Key, read func(*strict.Decoder, strict.Entry)) strict.Type {
	draft := new(T)
	return strict.Type{Kind: strict.KindMapping, Keys: keys(draft), Decode: func(d *strict.Decoder, e strict.Entry) {
		*draft = start
		read(d, e)
		*to = new(*draft)
	}}
}

// complete reads a mapping that must have its required keys. hint says how to write a missing one; "" = by its example.
func complete(hint string) func(*strict.Decoder, strict.Entry) {
	return func(d *strict.Decoder, e strict.Entry) {
		seen := d.Mapping(e)
		for _, k := range e.Keys {
			if k.Default == strict.Required && seen[k.Name] == nil && e.IsMapping() {
				d.Fail(e.At, cmp.Or(hint, "add "+k.Name+": "+k.Example), "%s.%s is missing", e.Path, k.Name)
			}
		}
	}
}

// single refuses a second one of some keys of a mapping, and reports whether there is any of them. says tells what the
// first one does.
func single(d *strict.Decoder, e strict.Entry, seen map[string]*yaml.Node, keys []string, says string) (found bool) {
	first := ""
	for _, k := range keys {
		found = found || seen[k] != nil
		switch {
		case !strict.Present(seen[k]):
		case first == "":
			first = k
		default:
			d.Fail(seen[k], "keep one of "+listed(keys), "%s.%s: %s.%s %s", e.Path, k, e.Path, first, says)
		}
	}
	return found
}

// valueOf returns the value of a key of a mapping; nil if there is none.
func valueOf(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return strict.Resolved(mapping.Content[i+1])
		}
	}
	return nil
}

// listed writes some keys as a sentence has them: "url, tcp and exec".
func listed(keys []string) string {
	last := len(keys) - 1
	return strings.Join(keys[:last], ", ") + " and " + keys[last]
}

// later returns the one of two keys that stands below or behind the other.
func later(a, b *yaml.Node) *yaml.Node {
	if a.Line > b.Line || a.Line == b.Line && a.Column > b.Column {
		return a
	}
	return b
}
