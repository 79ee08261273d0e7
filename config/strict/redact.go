package strict

import (
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// mask stands for the part of a line that is not shown.
const mask = "***"

// Visibility says which values of a key may be shown in messages and source lines.
type Visibility int

const (
	hidden     Visibility = iota // none: the zero value, so that a new key is safe until someone thinks about it
	Shown                        // all
	ShownURL                     // URLs without user, password and query
	ShownTime                    // those without a slash: a URL in the place of a time may be secret
	shownWord                    // those without a blank: arguments may follow a program
	ShownFirst                   // of a list only the first item, if it is one word: a program, but not its arguments
	ShownNames                   // of a mapping only the names: headers, environment
)

const variableInURL = `\$\{[A-Za-z_][A-Za-z0-9_]*\}`

// OpenURL matches URLs that hold no secret: scheme, host, port and a path of plain characters and variables.
var OpenURL = regexp.MustCompile(`^(?:https?://unix:|unix:(?://[A-Za-z0-9._-]*)?|(?:(?:https?|rediss?|ftp)://)?` +
	`(?:(?:[A-Za-z0-9._-]|\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[A-Za-z0-9._-]*)?\})+|\[[0-9A-Fa-f:.%]*\])` +
	`(?::(?:[0-9]{1,6}|` + variableInURL + `))?)?` +
	`(?:/(?:[A-Za-z0-9._~/%+,:; -]|` + variableInURL + `)*)?(?:\?db=[0-9]{1,5})?$`)

// reveals reports whether a value of the key may be shown.
func (k Key) reveals(value string) bool {
	switch k.Show {
	case Shown:
		return true
	case ShownURL:
		return OpenURL.MatchString(value)
	case ShownTime:
		return !strings.Contains(value, "/")
	case shownWord:
		return len(strings.Fields(value)) <= 1
	}
	return false
}

// redactor decides for every key and value of a file whether it may be shown.
type redactor struct {
	src    *source
	homes  func(name string) []string // the other places where a key is known
	hidden map[*yaml.Node]bool
}

// redact marks the keys and values below a node in the source.
func (r *redactor) redact(root *yaml.Node, keys []Key) {
	r.value(root, Key{Type: Type{Keys: keys}})
	for _, stretches := range r.src.stretches {
		sort.SliceStable(stretches, func(i, j int) bool { return stretches[i].from < stretches[j].from })
	}
}

func (r *redactor) value(n *yaml.Node, k Key) {
	switch {
	case n.Kind == yaml.AliasNode && (k.Show != hidden || len(k.Keys) > 0):
		r.mark(n, true)
	case n.Kind == yaml.MappingNode && k.Named:
		r.anchor(n)
		for i := 0; i+1 < len(n.Content); i += 2 {
			r.name(n.Content[i])
			r.value(n.Content[i+1], Key{Type: Type{Keys: k.Keys}})
		}
	case n.Kind == yaml.MappingNode && (k.Show == ShownNames || len(k.Keys) > 0):
		r.anchor(n)
		r.mapping(n, k)
	case n.Kind == yaml.SequenceNode && (k.Show != hidden || len(k.Keys) > 0):
		r.anchor(n)
		for i, item := range n.Content {
			r.value(item, k.item(i))
		}
	case n.Kind == yaml.ScalarNode && k.reveals(n.Value) && (k.Show == Shown || r.plain(n)):
		r.mark(n, true)
	default:
		r.hide(n)
	}
}

func (r *redactor) mapping(n *yaml.Node, k Key) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, val := n.Content[i], n.Content[i+1]
		if name.Kind != yaml.ScalarNode {
			r.hide(name)
			r.hide(val)
			continue
		}
		r.name(name)
		known, ok := Find(k.Keys, name.Value)
		if !ok {
			// The value of a misspelt key is shown: the reader looks for it. A key that is known elsewhere is not
			// misspelt, and another tool's word, such as password, may stand for a secret.
			known, ok = misspelt(k.Keys, name.Value)
			ok = ok && known.Show == Shown && val.Kind == yaml.ScalarNode && len(r.homes(name.Value)) == 0
		}
		// The second of two equal keys may have lost the line of its own mapping: a URL is secret in one mapping and
		// not in another.
		if ok && (!seen[name.Value] || known.Show != ShownURL) {
			r.value(val, known)
		} else if k.Each != nil && val.Kind == yaml.MappingNode && anyOf(k.Each.Keys, val) {
			r.value(val, *k.Each)
		} else {
			r.hide(val)
		}
		seen[name.Value] = true
	}
}

// name shows a key only if it looks like one and a colon follows. For YAML everything in {TOKEN=secret} and {TOKEN,
// secret} is a key, and so is the text after a tag.
func (r *redactor) name(n *yaml.Node) {
	line := r.src.line(n.Line)
	at := n.Column - 1
	if at >= 0 && at <= len(line) {
		at = scalarEnd(line, at, n)
		for at < len(line) && line[at] == ' ' {
			at++
		}
	}
	if at < 0 || at >= len(line) || line[at] != ':' || n.Style&yaml.TaggedStyle != 0 || n.Tag == "!" {
		r.hide(n)
		return
	}
	r.mark(n, safeName(n.Value) == n.Value || n.Tag == "!!merge")
}

// hide masks a node and all nodes below it.
func (r *redactor) hide(n *yaml.Node) {
	r.hidden[n] = true
	for _, child := range n.Content {
		r.hide(child)
	}
	if n.Kind == yaml.ScalarNode {
		r.mark(n, false)
	}
}

// plain reports whether a scalar is written without an anchor or a tag: a typing error may turn a value into one.
func (r *redactor) plain(n *yaml.Node) bool {
	line, at := r.src.line(n.Line), n.Column-1
	return at < 0 || at >= len(line) || line[at] != '&' && line[at] != '!'
}

func (r *redactor) anchor(n *yaml.Node) {
	line := r.src.line(n.Line)
	if end, ok := match(line, n.Column-1, "&"+n.Anchor); ok && n.Anchor != "" {
		r.add(n.Line, stretch{from: n.Column - 1, to: end, open: true})
	}
}

// mark records whether the first line of a scalar or alias may be shown.
func (r *redactor) mark(n *yaml.Node, open bool) {
	if line, from := r.src.line(n.Line), n.Column-1; from >= 0 && from <= len(line) {
		r.add(n.Line, stretch{from: from, to: scalarEnd(line, from, n), open: open})
	}
}

func (r *redactor) add(line int, s stretch) { r.src.stretches[line] = append(r.src.stretches[line], s) }

// scalarEnd returns the column after a scalar or alias that begins at from. A scalar of several lines ends with its
// first line, or where the next stretch begins. It reads no further than needed: a hostile line may have a million
// scalars.
func scalarEnd(line []rune, from int, n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		return min(from+1+utf8.RuneCountInString(n.Value), len(line))
	}
	at := from
	for at < len(line) && (line[at] == '&' || line[at] == '!') {
		for at < len(line) && line[at] != ' ' {
			at++
		}
		for at < len(line) && line[at] == ' ' {
			at++
		}
	}
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 || n.Value == "" && n.Style&quotedStyle == 0:
		return at
	case n.Style&quotedStyle != 0 && at < len(line):
		if end := closingQuote(line, at); end >= 0 {
			return end + 1
		}
	default:
		if end, ok := match(line, at, n.Value); ok {
			return end
		}
	}
	end := len(line)
	for end > from && (line[end-1] == ' ' || line[end-1] == '\t') {
		end--
	}
	return end
}

const quotedStyle = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle

// closingQuote returns the column where the quote that opens at a column closes, or -1.
func closingQuote(line []rune, open int) int {
	for i := open + 1; i < len(line); i++ {
		switch {
		case line[open] == '"' && line[i] == '\\':
			i++
		case line[i] != line[open]:
		case line[open] == '\'' && i+1 < len(line) && line[i+1] == '\'':
			i++
		default:
			return i
		}
	}
	return -1
}

// match reports whether text stands at a column, and where it ends.
func match(line []rune, at int, text string) (end int, ok bool) {
	for _, r := range text {
		if at >= len(line) || line[at] != r {
			return 0, false
		}
		at++
	}
	return at, true
}

var nameLike = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,80}`)

// safeName returns the part of a key that may be shown: the beginning that looks like a name.
func safeName(name string) string {
	if like := nameLike.FindString(name); like != name {
		return like + mask
	}
	return name
}
