package strict

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

const (
	maxDepth = 64

	// maxValues bounds the values of a text with every alias expanded. The largest honest table has a third of it; a
	// few lines of aliases to lists of aliases have billions.
	maxValues = 250_000
)

// Begin forgets the text that was read before. Problems of a text as a whole have the new name.
func (d *Decoder) Begin(name string) {
	d.src, d.hidden, d.unplaced = newSource(name, "", d.Root), map[*yaml.Node]bool{}, false
}

// Read turns a file into a tree, and finds the parts that may be shown. A nil tree means that the problem is recorded.
func (d *Decoder) Read(name string, data []byte) *yaml.Node {
	d.Begin(name)
	if len(data) > d.Subject.Limit {
		d.File(d.Subject.TooLarge, "%s is larger than %s", d.Subject.Text, d.Subject.Most)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !d.isText(data) {
		return nil
	}
	d.src = newSource(name, string(data), d.Root)
	if d.Rules.Foreign(string(data), nil) {
		return nil
	}
	root, err := d.load(data)
	if err != nil {
		d.src.broken = true
		d.syntax(err)
		return nil
	}
	if root == nil {
		return nil
	}
	r := redactor{src: d.src, hidden: d.hidden, homes: d.Rules.Homes}
	r.redact(root, d.Root)
	if !d.bounded(root) {
		return nil
	}
	return root
}

// load parses exactly one document.
func (d *Decoder) load(data []byte) (root *yaml.Node, err error) {
	defer func() {
		// The library panics in states that it believes impossible. A text must never end the process that reads it.
		if r := recover(); r != nil {
			root, err = nil, errors.New("not valid YAML")
		}
	}()
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithV4Defaults(),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	if err != nil {
		return nil, err
	}
	var first, second yaml.Node
	switch err := loader.Load(&first); {
	case err == io.EOF:
		d.empty()
		return nil, nil
	case err != nil:
		return nil, err
	}
	switch err := loader.Load(&second); {
	case err == nil && len(first.Content) == 1 && d.Rules.Foreign("", first.Content[0]):
		return nil, nil
	case err == nil:
		d.src.broken = true
		line, column := d.src.clamp(second.Line, second.Column)
		d.problem(line, column, 3, "remove the --- and what follows, or keep it in a file of its own",
			"a second document begins here; "+d.Subject.Noun+" is one")
		return nil, nil
	case err != io.EOF:
		return nil, err
	}
	if len(first.Content) != 1 {
		return nil, errors.New("not valid YAML")
	}
	switch root := first.Content[0]; {
	case d.Rules.Foreign("", root):
		return nil, nil
	case root.Tag != "!!null":
		return root, nil
	}
	d.empty()
	return nil, nil
}

func (d *Decoder) empty() { d.File(d.Subject.Begin, "%s is empty", d.Subject.Text) }

// isText refuses characters that no editor writes into YAML, before the YAML library or a terminal sees them. It
// records one problem only: in a binary file everything is wrong.
func (d *Decoder) isText(data []byte) bool {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		d.File("save it as UTF-8", "%s is UTF-16, not UTF-8", d.Subject.Text)
		return false
	}
	// A binary file gets a message of its own, whatever else is in it.
	binary := !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0
	wrongFile := "is this the right file? " + d.Subject.Noun + " is text in UTF-8"
	for i, r := range string(data) {
		why, hint := "", ""
		switch {
		case r == utf8.RuneError && !bytes.HasPrefix(data[i:], []byte("\ufffd")):
			why, hint = fmt.Sprintf("byte 0x%02x is not UTF-8", data[i]), wrongFile
		case r == 0:
			why, hint = "a NUL byte", wrongFile
		case binary:
		case r == '\r' && (i+1 == len(data) || data[i+1] != '\n'):
			why, hint = "a carriage return without a line feed", "end lines with a line feed"
		case r == '\n' || r == '\r' || r == '\t':
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			why = fmt.Sprintf("the control character U+%04X", r)
			hint = fmt.Sprintf(`in a value write it in double quotes, as "\u%04x"`, r)
		}
		if why != "" {
			above, left := bytes.Count(data[:i], []byte("\n")), data[bytes.LastIndexByte(data[:i], '\n')+1:i]
			d.problem(above+1, utf8.RuneCount(left)+1, 1, hint, d.Subject.Text+" is not plain text here: "+why)
			return false
		}
	}
	return true
}

// bounded refuses aliases inside the value that they stand for, and aliases that expand to too many values.
func (d *Decoder) bounded(root *yaml.Node) bool {
	const underway = -1
	sizes := map[*yaml.Node]int{}
	var culprit, alias *yaml.Node
	cyclic := false
	var size func(n *yaml.Node) int
	size = func(n *yaml.Node) int {
		if known, ok := sizes[n]; ok {
			return known
		}
		sizes[n] = underway
		total := 1
		for _, child := range n.Content {
			total += size(child)
		}
		if n.Kind == yaml.AliasNode {
			alias = cmp.Or(alias, n)
			if total = size(n.Alias); total == underway {
				cyclic, total = true, maxValues+1
			}
		}
		if total > maxValues && culprit == nil {
			culprit = n
		}
		sizes[n] = min(total, maxValues+1)
		return sizes[n]
	}
	size(root)
	switch {
	case alias != nil && d.Subject.NoAliases != "":
		d.Fail(alias, "write out what it stands for", "%s", d.Subject.NoAliases)
		return false
	case cyclic:
		d.Fail(culprit, "", "this alias stands inside what it stands for")
	case culprit != nil:
		d.Fail(culprit, "", "with its aliases replaced by what they stand for, this has more than %d values", maxValues)
	}
	return culprit == nil
}

// syntax records an error of the YAML library in words of this package.
func (d *Decoder) syntax(err error) {
	le, ok := errors.AsType[*yaml.LoadError](err)
	if !ok || le.Mark.Line < 1 {
		d.File("", "not valid YAML")
		return
	}
	mark := le.Mark
	if strings.Contains(le.Message, "mapping values are not allowed") && d.noColon(le.Mark.Line) {
		return
	}
	why, hint := "not valid YAML here", ""
	for _, s := range syntaxErrors {
		if strings.Contains(le.Message, s.message) && strings.Contains(le.ContextMsg, s.context) {
			why, hint = s.why, s.hint
			if s.atStart && le.ContextMark.Line > 0 {
				mark = le.ContextMark
			}
			break
		}
	}
	line, column := d.src.clamp(mark.Line, mark.Column)
	width := 1
	if text := d.src.line(line); column <= len(text) && text[column-1] == '\t' {
		why, hint = "a tab cannot be used for indentation", "indent with spaces"
	} else if at, value := d.src.guessValue(line); value != "" && strings.Contains("*@&!%`", value[:1]) &&
		!strings.Contains(le.Message, "unknown anchor") {
		// The most common mistake is a schedule without quotes. The YAML library then complains of a later character.
		column, width = at+1, len([]rune(value))
		why = fmt.Sprintf("a value that begins with %c must stand in quotes", value[0])
		hint = fmt.Sprintf("write %q", value)
	}
	d.problem(line, column, width, hint, why)
}

var keyWithoutColon = regexp.MustCompile(`^[ ]*(?:- +)?([A-Za-z]+) +[^ :][^:]*$`)

// noColon recognizes a key without its colon, such as "- name a", in the line above the one that the library complains
// of. The library has read the two lines as one text.
func (d *Decoder) noColon(line int) bool {
	m := keyWithoutColon.FindStringSubmatchIndex(string(d.src.line(line - 1)))
	if m == nil {
		return false
	}
	name := string(d.src.line(line - 1)[m[2]:m[3]])
	if len(d.Rules.Homes(name)) == 0 {
		return false
	}
	d.problem(line-1, m[2]+1, m[3]-m[2], fmt.Sprintf("write %s:, then a space", name),
		fmt.Sprintf("the colon after %q is missing", name))
	return true
}

// syntaxErrors has the common errors of the YAML library, in words that say what to do. The library's own words are
// never shown: they describe its internals, and may repeat parts of the file.
var syntaxErrors = []struct {
	message, context string
	atStart          bool // the place is where the construct began
	why, hint        string
}{
	{message: "alphabetic or numeric character", context: "alias", atStart: true,
		why: "a value that begins with * must stand in quotes", hint: "put it in quotes"},
	{message: "unknown anchor", why: "there is no anchor of this name above",
		hint: "if it is not meant as an alias, put it in quotes"},
	{message: "alphabetic or numeric character", context: "anchor", atStart: true,
		why: "a value that begins with & must stand in quotes"},
	{message: "mapping values are not allowed", why: "there cannot be a key here",
		hint: "put a value that holds \": \" in quotes, and check the indentation"},
	{message: "could not find expected ':'", atStart: true, why: "a key must be followed by a colon and a space",
		hint: "check the indentation of the lines around it"},
	{message: "did not find expected key", why: "this does not fit the lines above",
		hint: "check the indentation, and that all quotes above are closed and nothing follows them"},
	{message: "did not find expected '-' indicator", why: "this does not fit the list above",
		hint: "check the indentation; each item of a list begins with -"},
	{message: "block sequence entries are not allowed", why: "a list cannot begin here",
		hint: "begin it on a line of its own, or put a value that begins with - in quotes"},
	{message: "unexpected end of stream", context: "quoted", atStart: true, why: "this quote is never closed"},
	{message: "unexpected document indicator", context: "quoted", atStart: true, why: "this quote is never closed"},
	{message: "expected ',' or ']'", atStart: true, why: "this list is not closed, or lacks a comma",
		hint: "between [ and ] put values that hold one of , [ ] { } in quotes"},
	{message: "expected ',' or '}'", atStart: true, why: "this mapping is not closed, or lacks a comma",
		hint: "between { and } put values that hold one of , [ ] { } in quotes: \"${NAME}\""},
	{message: "unknown escape character", why: "double quotes do not know this escape",
		hint: "in single quotes a backslash stands for itself"},
	{message: "hexadecimal number", why: "the escape needs hexadecimal digits"},
	{message: "Unicode character escape", why: "there is no such Unicode character"},
	{message: "tab character", why: "a tab cannot be used for indentation", hint: "indent with spaces"},
	{message: "cannot start any token", why: "a value cannot begin like this", hint: "put it in quotes"},
	{message: "max depth", why: "nested deeper than 64"},
	{message: "node content", why: "a value is missing here"},
	{message: "document start", why: "this follows what has ended already",
		hint: "check the brackets, and the line above"},
	{message: "tag", why: "YAML tags (!…) are not supported", hint: "put a value that begins with ! in quotes"},
	{context: "tag", why: "YAML tags (!…) are not supported", hint: "put a value that begins with ! in quotes"},
	{context: "directive", why: "YAML directives (%…) are not supported", hint: "remove the line"},
	{message: "directive", why: "YAML directives (%…) are not supported", hint: "remove the line"},
	{context: "block scalar", why: "nothing may follow | or > on its line, and their text is indented further"},
	{message: "comment without preceding whitespace", why: "a comment needs a space before its #"},
}

// File records a problem with the file as a whole.
func (d *Decoder) File(hint, format string, args ...any) {
	d.problem(0, 0, 0, hint, fmt.Sprintf(format, args...))
}

// Found returns the problems as an error; nil if there are none.
func (d *Decoder) Found() error {
	if len(d.Problems) >= maxProblems {
		more := fmt.Sprintf("there may be more than these %d problems", maxProblems)
		d.Problems = append(d.Problems, Problem{File: d.src.name, Message: more})
	}
	if len(d.Problems) == 0 {
		return nil
	}
	return Problems(Tidy(d.Problems))
}
