package strict

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxProblems bounds the problems reported for one file. A user does not read more, and a hostile file has a million.
const maxProblems = 1000

// Decoder walks a tree of YAML. It records a problem for each value that it cannot accept, and goes on, so that one
// walk finds them all.
type Decoder struct {
	Subject    Subject
	Root       []Key // those at the top level
	Env        Env
	Rules      Rules
	Scope      string      // begins every message: `job "billing": `
	Problems   []Problem   // as they were found
	Warnings   []Problem   // as they were found
	References [][2]string // the values with variables, as they are written, each with its place
	src        *source
	hidden     map[*yaml.Node]bool // values and keys that messages must not repeat
	unplaced   bool                // ReadJSON has read the text: its problems are only counted
}

// Subject describes the decoded text for messages about the whole of it.
type Subject struct {
	Noun      string // "a table"
	Text      string // where it is: "the file"
	Begin     string // hint if it is empty
	Limit     int    // bytes
	Most      string // the same in words
	TooLarge  string // hint if it is larger
	Merge     string // hint for a merge key
	Literal   bool   // ${NAME} is text, and no key begins with x-
	NoAliases string // message for an alias; "" = aliases are supported
}

// Rules are the caller's callbacks. All of them must be set, except Unset.
type Rules struct {
	// Unset hears of a variable that is not set; nil = that is a problem.
	Unset   func(e Entry, missing MissingError, warning func(hint string) Problem)
	Note    func(e Entry, t Text)                             // a value was accepted, or a mapping begins
	Flawed  func(e Entry)                                     // a key has problems
	Homes   func(name string) []string                        // the places where a key of that name is known
	Explain func(e Entry, name string) (message, hint string) // why e does not have that key; "" = it is unknown
	Remedy  func(e Entry) string                              // hint for a value of the wrong kind
	Foreign func(content string, root *yaml.Node) bool        // it is of another format: the problem is recorded
}

// Name is the name of the file that is read.
func (d *Decoder) Name() string { return d.src.name }

// Again makes d decode the text that other has read.
func (d *Decoder) Again(other *Decoder) { d.src, d.hidden = other.src, other.hidden }

// Entry is one key of a mapping, or one item of a list, with its value.
type Entry struct {
	Key
	Path  string     // for messages: "lock.ttl"
	At    *yaml.Node // the key; of an item the item
	Value *yaml.Node // the value, aliases resolved
}

// Text is a decoded scalar.
type Text struct {
	Value  string // variables filled in
	Opaque bool   // had variables: value must not be shown
	Label  string // for messages: `lock.ttl "15s"`, or only the path when the value must not be shown
	Origin string // for messages: where it was set, if not here: " (from defaults)"
	Node   *yaml.Node
}

// OK is false for the zero Text, which stands for no value.
func (t Text) OK() bool { return t.Node != nil }

// IfShown returns words that repeat the value or a part of it; "" if the value must not be shown.
func (t Text) IfShown(words string) string {
	if t.Opaque {
		return ""
	}
	return words
}

// IsHidden reports whether messages must not repeat a value.
func (d *Decoder) IsHidden(n *yaml.Node) bool { return d.hidden[n] }

// Fail records a problem at a node.
func (d *Decoder) Fail(n *yaml.Node, hint, format string, args ...any) {
	line, column, width := d.place(n)
	d.problem(line, column, width, hint, d.Scope+fmt.Sprintf(format, args...))
}

// problem records a problem at a place; width is in characters.
func (d *Decoder) problem(line, column, width int, hint, message string) {
	if len(d.Problems) < maxProblems {
		d.Problems = append(d.Problems, d.src.problem(line, column, width, hint, message))
	}
}

// Warn records a warning at a node.
func (d *Decoder) Warn(n *yaml.Node, hint, format string, args ...any) {
	line, column, width := d.place(n)
	d.Warnings = append(d.Warnings, d.src.problem(line, column, width, hint, d.Scope+fmt.Sprintf(format, args...)))
}

// place returns where a node stands and how wide it is on its first line.
func (d *Decoder) place(n *yaml.Node) (line, column, width int) {
	text := d.src.line(n.Line)
	if n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 && len(n.Content) > 0 {
		n = n.Content[0] // a mapping without braces begins where its first key does
	}
	if (n.Kind == yaml.ScalarNode || n.Kind == yaml.AliasNode) && n.Column > 0 && n.Column-1 <= len(text) {
		return n.Line, n.Column, scalarEnd(text, n.Column-1, n) - (n.Column - 1)
	}
	return n.Line, n.Column, 1
}

// Bad records a problem of a text's value. It returns false: the text is not accepted.
func (d *Decoder) Bad(t Text, hint, format string, args ...any) bool {
	d.Fail(t.Node, hint, "%s%s: %s", t.Label, t.Origin, fmt.Sprintf(format, args...))
	return false
}

// label returns a value's path, with the value if it may be shown.
func (d *Decoder) label(e Entry) string {
	if d.unplaced || d.hidden[e.Value] || e.Value.Kind != yaml.ScalarNode || !e.reveals(e.Value.Value) {
		return e.Path
	}
	return e.Path + " " + Quoted(e.Value.Value)
}

// Quoted quotes text from the file for a message, and cuts it if it is long.
func Quoted(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return strconv.Quote(s)
}

// Mapping decodes the keys of a mapping, in the order of their description, and returns those that it found. A misspelt
// key counts, so that it is not also reported as missing. No value counts as an empty mapping: all its lines may be
// commented out.
func (d *Decoder) Mapping(e Entry) map[string]*yaml.Node {
	d.NoteWhole(e)
	found := map[string]*yaml.Node{}
	if e.IsNull() {
		return found
	}
	if e.Value.Kind != yaml.MappingNode {
		d.WrongKind(e)
		return found
	}
	values := map[string]*yaml.Node{}
	merged := d.pairs(e, func(name, val *yaml.Node) {
		k, ok := Find(e.Keys, name.Value)
		if !ok && e.Extensible && strings.HasPrefix(name.Value, Extension) {
			return
		}
		if !ok {
			if meant := d.unknown(e, name); meant != "" && found[meant] == nil {
				found[meant] = name
			}
			return
		}
		found[k.Name], values[k.Name] = name, val
	})
	for _, k := range e.Keys {
		if merged != nil && found[k.Name] == nil {
			found[k.Name] = merged
		}
		if val, ok := values[k.Name]; ok {
			before := len(d.Problems)
			v := Entry{Key: k, Path: under(e.Path, k.Name), At: found[k.Name], Value: val}
			if d.Plain(v) {
				k.Decode(d, v)
			}
			if len(d.Problems) > before {
				d.Rules.Flawed(v)
			}
		}
	}
	for _, k := range e.Keys {
		if needs := k.Form.Needs; needs != "" && found[k.Name] != nil && found[needs] == nil {
			d.Fail(found[k.Name], "", "%s.%s needs %s", e.Path, k.Name, needs)
		}
	}
	return found
}

// NoteWhole tells the caller where a mapping or list stands.
func (d *Decoder) NoteWhole(e Entry) { d.Rules.Note(e, Text{Node: e.At, Label: e.Path}) }

// Extension begins keys that the decoder ignores in an extensible mapping. They are for anchors and other tools.
const Extension = "x-"

// Pairs calls do for each name and value of a mapping whose names are the user's. No value counts as an empty mapping.
func (d *Decoder) Pairs(e Entry, do func(name, val *yaml.Node)) {
	switch {
	case e.IsNull():
	case e.Value.Kind != yaml.MappingNode:
		d.WrongKind(e)
	default:
		d.pairs(e, do)
	}
}

// Present reports whether a key that Mapping returned is really there. Otherwise a merge key may have been meant to
// bring it.
func Present(name *yaml.Node) bool { return name != nil && name.Tag != "!!merge" }

// pairs calls do for each plain key of a mapping, once. It refuses a merge key, and returns it because it may have been
// meant to bring missing keys.
func (d *Decoder) pairs(e Entry, do func(name, val *yaml.Node)) (merged *yaml.Node) {
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(e.Value.Content) && len(d.Problems) < maxProblems; i += 2 {
		name, val := e.Value.Content[i], Resolved(e.Value.Content[i+1])
		at := name
		name = Resolved(name)
		switch {
		case name.Tag == "!!merge":
			d.Fail(at, d.Subject.Merge, "%smerge keys (<<) are not supported", in(e.Path))
			merged = name
		case name.Kind != yaml.ScalarNode || at != name:
			d.Fail(at, "", "%sa key must be plain text", in(e.Path))
		case name.Tag != "!!str":
			d.Fail(at, "put it in quotes", "%sa key must be text, not %s", in(e.Path), KindOf(name))
		case seen[name.Value] != nil:
			d.Fail(at, "", "%sduplicate key %q: it is already set in %s",
				in(e.Path), d.NameText(name), d.Place(seen[name.Value], at))
		default:
			seen[name.Value] = name
			if d.Plain(Entry{Path: under(e.Path, d.NameText(name)), At: name, Value: name}) {
				do(name, val)
			}
		}
	}
	return merged
}

// Plain refuses a value with an explicit tag: the decoder knows the types, and a tag can only contradict them.
func (d *Decoder) Plain(e Entry) bool {
	if e.Value.Style&yaml.TaggedStyle == 0 && e.Value.Tag != "!" {
		return true
	}
	d.Fail(e.Value, "remove the tag; to make a number text, put it in quotes",
		"%sYAML tags (!…) are not supported", in(e.Path))
	return false
}

// unknown reports a key that the mapping e does not have, and returns the key that was probably meant.
func (d *Decoder) unknown(e Entry, name *yaml.Node) (meant string) {
	hint := "allowed here: " + strings.Join(Names(e.Keys), ", ")
	message := fmt.Sprintf("unknown key %q", d.NameText(name))
	near, ok := NearestKey(e.Keys, name.Value)
	homes := d.Rules.Homes(name.Value)
	why, instead := d.Rules.Explain(e, name.Value)
	switch {
	case why != "":
		message, hint = why, instead
	case ok && len(homes) == 0:
		meant = near.Name
		hint = fmt.Sprintf("did you mean %q?", near.Name)
	case strings.HasPrefix(name.Value, Extension) && !d.Subject.Literal:
		hint = "keys that begin with x- are ignored at the top level only"
	case len(homes) > 0:
		hint = fmt.Sprintf("%q belongs %s", name.Value, strings.Join(homes, " or "))
	}
	d.Fail(name, hint, "%s%s", in(e.Path), message)
	return meant
}

// NameText returns a key for a message.
func (d *Decoder) NameText(n *yaml.Node) string {
	if d.hidden[n] {
		return mask
	}
	return safeName(n.Value)
}

// List returns the items of a list. No value counts as an empty list.
func (d *Decoder) List(e Entry) ([]Entry, bool) {
	if e.IsNull() {
		return nil, true
	}
	if e.Value.Kind != yaml.SequenceNode {
		d.WrongKind(e)
		return nil, false
	}
	var out []Entry
	for i, item := range e.Value.Content {
		it := Entry{Key: e.item(i), Path: fmt.Sprintf("%s[%d]", e.Path, i), At: item, Value: Resolved(item)}
		if d.Plain(it) {
			out = append(out, it)
		}
	}
	return out, true
}

// IsMapping reports whether the value is a mapping; no value counts as an empty one.
func (e Entry) IsMapping() bool { return e.IsNull() || e.Value.Kind == yaml.MappingNode }

func (e Entry) IsNull() bool { return e.Value.Kind == yaml.ScalarNode && e.Value.Tag == "!!null" }

// Resolved returns the node that an alias stands for, and any other node as it is.
func Resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// under returns the path of a key in a mapping.
func under(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// in returns the beginning of a message about a key of the mapping at path.
func in(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}
