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
	src := source{name: d.src.name, keys: d.Root, stretches: map[int][]stretch{}}
	joined := joiner{src: src, hidden: map[*yaml.Node]bool{}}
	before := len(d.Problems)
	for _, f := range files {
		root := d.Read(f.Name, f.Data)
		if root != nil && root.Kind != yaml.MappingNode {
			d.Fail(root, d.Subject.Begin, "%s must be a mapping, not %s", d.Subject.Noun, KindOf(root))
		}
		joined.add(d.src, d.hidden, root)
	}
	if len(d.Problems) > before {
		return nil
	}
	d.src, d.hidden = &joined.src, joined.hidden
	return d.join(joined.roots, list)
}

// joiner collects files as one source.
type joiner struct {
	src    source
	hidden map[*yaml.Node]bool
	roots  []*yaml.Node
}

// add puts a file below those before it: its nodes get the lines that they have in the joined source.
func (j *joiner) add(src *source, hidden map[*yaml.Node]bool, root *yaml.Node) {
	offset := len(j.src.lines)
	j.src.parts = append(j.src.parts, part{name: src.name, from: offset})
	j.src.lines = append(j.src.lines, src.lines...)
	for n, s := range src.stretches {
		j.src.stretches[n+offset] = s
	}
	maps.Copy(j.hidden, hidden)
	if root != nil {
		moveDown(root, offset)
		j.roots = append(j.roots, root)
	}
}

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
				joined := *val
				items = &joined
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
