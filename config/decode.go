package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxProblems bounds what is reported of one file: nobody reads more, and a hostile file has a million.
const maxProblems = 1000

// decoder walks the tree of a table and fills in what it finds; what it cannot accept becomes a problem and is passed
// over, so that one walk finds them all.
type decoder struct {
	src      *source
	root     []key // what is known at the top level
	of       subject
	env      Env
	now      time.Time
	hidden   map[*yaml.Node]bool // what must not be repeated in messages
	table    *Table
	problems []Problem

	base  draft  // what defaults says
	job   *draft // the job being decoded
	scope string // begins every message: `job "billing": `

	names        map[string]int // line of the job that has a name
	redisTimeout text

	lenient    bool // a variable that is not set is no problem, and its value unknown
	unset      []unsetVariable
	references [][2]string // the values with variables, as they are written, each with its place
}

// entry is one key of a mapping, or one item of a list, with its value.
type entry struct {
	key
	path string     // for messages: "lock.ttl"
	at   *yaml.Node // the key; of an item the item
	val  *yaml.Node // the value, aliases resolved
}

// text is a scalar that was read.
type text struct {
	value  string // variables filled in
	opaque bool   // had variables: value must not be shown
	label  string // for messages: `lock.ttl "15s"`, or only the path when the value must not be shown
	node   *yaml.Node
	common bool // comes from defaults
	unset  bool // could not be read, since a variable of it is not set
}

// ok is false for the zero text: nothing was read.
func (t text) ok() bool { return t.node != nil }

// fail records a problem of a node.
func (d *decoder) fail(n *yaml.Node, hint, format string, args ...any) {
	line, column, width := d.place(n)
	d.problem(line, column, width, hint, d.scope+fmt.Sprintf(format, args...))
}

// problem records a problem of a place; width is in characters.
func (d *decoder) problem(line, column, width int, hint, message string) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, d.src.problem(line, column, width, hint, message))
	}
}

// warn records what is odd but no error.
func (d *decoder) warn(n *yaml.Node, hint, format string, args ...any) {
	line, column, width := d.place(n)
	d.table.Warnings = append(d.table.Warnings,
		d.src.problem(line, column, width, hint, d.scope+fmt.Sprintf(format, args...)))
}

// place is where a node stands and how wide it is on its first line.
func (d *decoder) place(n *yaml.Node) (line, column, width int) {
	text := d.src.line(n.Line)
	if n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 && len(n.Content) > 0 {
		n = n.Content[0] // a mapping without braces begins where its first key does
	}
	if (n.Kind == yaml.ScalarNode || n.Kind == yaml.AliasNode) && n.Column > 0 && n.Column-1 <= len(text) {
		return n.Line, n.Column, scalarEnd(text, n.Column-1, n) - (n.Column - 1)
	}
	return n.Line, n.Column, 1
}

// bad records that the value of a text is not acceptable.
func (d *decoder) bad(t text, hint, format string, args ...any) {
	from := ""
	if t.common && d.job != &d.base {
		from = " (from defaults)"
	}
	d.fail(t.node, hint, "%s%s: %s", t.label, from, fmt.Sprintf(format, args...))
}

// label is a value's path, with the value when it may be shown.
func (d *decoder) label(e entry) string {
	if d.hidden[e.val] || e.val.Kind != yaml.ScalarNode || !e.reveals(e.val.Value) {
		return e.path
	}
	return e.path + " " + quoted(e.val.Value)
}

// quoted is text from the file for a message, cut when it is long.
func quoted(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return fmt.Sprintf("%q", s)
}

// mapping decodes the keys of a mapping, in the order of their description, and says which were there; one that was
// misspelt counts, so that it is not called missing as well. Nothing at all counts as an empty mapping: that is what is
// left when every line in it was commented out.
func (d *decoder) mapping(e entry) map[string]*yaml.Node {
	found := map[string]*yaml.Node{}
	if e.isNull() {
		return found
	}
	if e.val.Kind != yaml.MappingNode {
		d.wrongKind(e)
		return found
	}
	values := map[string]entry{}
	merged := d.pairs(e, func(name, val *yaml.Node) {
		k, ok := find(e.keys, name.Value)
		if !ok && e.path == "" && d.job == nil && strings.HasPrefix(name.Value, extension) {
			return
		}
		if !ok {
			if meant := d.unknown(e, name); meant != "" && found[meant] == nil {
				found[meant] = name
			}
			return
		}
		found[k.name] = name
		values[k.name] = entry{key: k, path: under(e.path, k.name), at: name, val: val}
	})
	for _, k := range e.keys {
		if merged != nil && found[k.name] == nil {
			found[k.name] = merged
		}
		if v, ok := values[k.name]; ok {
			before := len(d.problems)
			if d.plain(v) {
				k.decode(d, v)
			}
			if e.path == "" && d.job == nil && len(d.problems) > before {
				set(&d.table.Unknown, k.name, hasProblems)
			}
		}
	}
	return found
}

// extension begins the keys of the table that are left alone: a home for anchors, and for what other tools read.
const extension = "x-"

// present says whether a key that mapping found is there, and not only may be, in what a merge key was meant to bring.
func present(name *yaml.Node) bool { return name != nil && name.Tag != "!!merge" }

// pairs calls do for each key of a mapping that is a plain, new key. It gives back the merge key, which is refused but
// may have been meant to bring what is missing.
func (d *decoder) pairs(e entry, do func(name, val *yaml.Node)) (merged *yaml.Node) {
	seen := map[string]int{}
	for i := 0; i+1 < len(e.val.Content) && len(d.problems) < maxProblems; i += 2 {
		name, val := e.val.Content[i], resolved(e.val.Content[i+1])
		at := name
		name = resolved(name)
		switch {
		case name.Tag == "!!merge":
			d.fail(at, "put what jobs share under defaults", "%smerge keys (<<) are not supported", in(e.path))
			merged = name
		case name.Kind != yaml.ScalarNode || at != name:
			d.fail(at, "", "%sa key must be plain text", in(e.path))
		case name.Tag != "!!str":
			d.fail(at, "put it in quotes", "%sa key must be text, not %s", in(e.path), kindOf(name))
		case seen[name.Value] > 0:
			d.fail(at, "", "%sduplicate key %q: it is already set in line %d",
				in(e.path), d.nameText(name), seen[name.Value])
		default:
			seen[name.Value] = name.Line
			if d.plain(entry{path: under(e.path, d.nameText(name)), at: name, val: name}) {
				do(name, val)
			}
		}
	}
	return merged
}

// plain refuses a value with an explicit tag: the types are known here, and a tag can only contradict them.
func (d *decoder) plain(e entry) bool {
	if e.val.Style&yaml.TaggedStyle == 0 && e.val.Tag != "!" {
		return true
	}
	d.fail(e.val, "remove the tag; to make a number text, put it in quotes",
		"%sYAML tags (!…) are not supported", in(e.path))
	return false
}

// unknown explains a key that the mapping e does not have, and gives the one that was probably meant.
func (d *decoder) unknown(e entry, name *yaml.Node) (meant string) {
	known := make([]string, len(e.keys))
	for i, k := range e.keys {
		known[i] = k.name
	}
	hint := "allowed here: " + strings.Join(known, ", ")
	message := fmt.Sprintf("%sunknown key %q", in(e.path), d.nameText(name))
	near, ok := misspelt(e.keys, name.Value)
	homes := homes(d.root, name.Value, !d.of.api && d.job != nil)
	if !ok || len(homes) > 0 {
		near, ok = nearestKey(e.keys, name.Value)
		ok = ok && len(homes) == 0
	}
	switch {
	case d.of.api && e.path == "" && slices.Contains(tableOnly, name.Value):
		message, hint = fmt.Sprintf("%q is for jobs of the table alone", name.Value), toTheTable
	case ok:
		meant = near.name
		hint = fmt.Sprintf("did you mean %q?", near.name)
	case len(homes) > 0 && e.name == "defaults" && slices.Contains(homes, inAJob):
		hint = "each job sets its own; allowed here: " + strings.Join(known, ", ")
		message = fmt.Sprintf("%s%q cannot have a default", in(e.path), name.Value)
	case strings.HasPrefix(name.Value, extension) && !d.of.api:
		hint = "keys that begin with x- are ignored at the top level only"
	case len(homes) > 0:
		hint = fmt.Sprintf("%q belongs %s", name.Value, strings.Join(homes, " or "))
	}
	d.fail(name, hint, "%s", message)
	return meant
}

// nameText is a key for a message.
func (d *decoder) nameText(n *yaml.Node) string {
	if d.hidden[n] {
		return mask
	}
	return safeName(n.Value)
}

// list gives the items of a list; nothing at all counts as an empty one, like a mapping.
func (d *decoder) list(e entry) ([]entry, bool) {
	if e.isNull() {
		return nil, true
	}
	if e.val.Kind != yaml.SequenceNode {
		d.wrongKind(e)
		return nil, false
	}
	var out []entry
	for i, item := range e.val.Content {
		it := entry{key: e.item(i), path: fmt.Sprintf("%s[%d]", e.path, i), at: item, val: resolved(item)}
		if d.plain(it) {
			out = append(out, it)
		}
	}
	return out, true
}

func (e entry) isNull() bool { return e.val.Kind == yaml.ScalarNode && e.val.Tag == "!!null" }

// resolved follows an alias to what it stands for.
func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// under is the path of a key in a mapping.
func under(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// in begins the message about a key of the mapping at path.
func in(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}
