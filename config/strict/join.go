package strict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// File is one of the files that make up a text.
type File struct {
	Name string
	Data []byte
}

// ReadAll is Read for a text in several files. The files are read one by one, and joined as if one stood below the
// other: their lists under the key named list become one list, and any other key at the top level may be in one file
// only. Keys for extensions belong to their file. Problems of the whole have the name that Begin got. A nil tree means
// that problems are recorded.
func (d *Decoder) ReadAll(files []File, list string) *yaml.Node {
	joined := &source{name: d.src.name, keys: d.Root, stretches: map[int][]stretch{}}
	hidden, before := map[*yaml.Node]bool{}, len(d.Problems)
	var roots []*yaml.Node
	for _, f := range files {
		root := d.Read(f.Name, f.Data)
		if root != nil && root.Kind != yaml.MappingNode {
			d.Fail(root, d.Subject.Begin, "%s must be a mapping, not %s", d.Subject.Noun, KindOf(root))
		}
		offset := len(joined.lines) // the file stands below those before it
		joined.parts = append(joined.parts, part{name: d.src.name, from: offset})
		joined.lines = append(joined.lines, d.src.lines...)
		for n, s := range d.src.stretches {
			joined.stretches[n+offset] = s
		}
		maps.Copy(hidden, d.hidden)
		if root != nil {
			moveDown(root, offset)
			roots = append(roots, root)
		}
	}
	if len(d.Problems) > before {
		return nil
	}
	d.src, d.hidden = joined, hidden
	return d.join(roots, list)
}

// moveDown gives nodes the lines that they have in a joined source.
func moveDown(n *yaml.Node, lines int) {
	n.Line += lines
	for _, c := range n.Content {
		moveDown(c, lines)
	}
}

// join makes one mapping of several.
func (d *Decoder) join(roots []*yaml.Node, list string) *yaml.Node {
	all := *roots[0]
	all.Content = nil
	var items *yaml.Node // the joined list
	for _, root := range roots {
		for i := 0; i+1 < len(root.Content); i += 2 {
			name, val := root.Content[i], Resolved(root.Content[i+1])
			switch {
			case strings.HasPrefix(name.Value, Extension):
			case name.Value != list:
				all.Content = append(all.Content, name, root.Content[i+1])
			case items == nil:
				items = new(*val)
				all.Content = append(all.Content, name, items)
			case Entry{Value: val}.IsNull():
			case val.Kind == yaml.SequenceNode && items.Kind == yaml.SequenceNode:
				items.Content = slices.Concat(items.Content, val.Content)
				items.Style |= val.Style & yaml.TaggedStyle
			case val.Kind == yaml.SequenceNode && items.Tag == "!!null":
				*items = *val
			default:
				d.Fail(val, "", "%s must be a list, not %s", list, KindOf(val))
			}
		}
	}
	return &all
}

// part is a file in a joined source.
type part struct {
	name string
	from int // lines before it
}

// partOf returns the file that a line of the source is in, and its number there.
func (s *source) partOf(line int) (name string, n int) {
	name, n = s.name, line
	for _, p := range s.parts {
		if line > p.from {
			name, n = p.name, line-p.from
		}
	}
	return name, n
}

// Place says where a node stands, as seen from another one: "line 12", or "b.yaml:12" if it is in another file.
func (d *Decoder) Place(n, from *yaml.Node) string {
	name, line := d.src.partOf(n.Line)
	if here, _ := d.src.partOf(from.Line); here == name {
		return fmt.Sprintf("line %d", line)
	}
	return fmt.Sprintf("%s:%d:%d", Printable(name), line, n.Column)
}
