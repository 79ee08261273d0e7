package config

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// visibility says what of a key's value may be shown in messages and source lines.
type visibility int

const (
	hidden    visibility = iota // nothing: the zero value, so that a new key is safe until someone thinks about it
	shown                       // all
	shownURL                    // what a URL shows without user, password and query
	shownHead                   // of a list only the first item: a program, but not its arguments
	shownName                   // of a mapping only the names: headers, environment
	shownTime                   // what has no slash: a URL that slipped in from notify.start does
	shownWord                   // what has no blank: behind one a program has its arguments
)

// veil decides for every key and value of a file whether it may be shown.
type veil struct {
	src     *source
	root    []key // what is known at the top level
	literal bool  // a ${NAME} in a value is no variable
	hidden  map[*yaml.Node]bool
}

func (v *veil) value(n *yaml.Node, k key) {
	if k.show == hidden && len(k.keys) == 0 {
		v.hide(n)
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		v.anchor(n)
		v.mapping(n, k)
	case yaml.SequenceNode:
		v.anchor(n)
		for i, item := range n.Content {
			v.value(item, k.item(i))
		}
	case yaml.AliasNode:
		v.show(n)
	case yaml.ScalarNode:
		switch {
		case k.show == shown, k.show == shownTime && !strings.Contains(n.Value, "/"),
			k.show == shownWord && oneWord(n.Value):
			v.show(n)
		case k.show == shownURL:
			v.instead(n, safeURL(n.Value))
		default:
			v.hide(n)
		}
	}
}

// oneWord says whether there is at most one word in text.
func oneWord(text string) bool { return len(strings.Fields(text)) <= 1 }

func (v *veil) mapping(n *yaml.Node, k key) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, val := n.Content[i], n.Content[i+1]
		if name.Kind != yaml.ScalarNode || len(k.keys) == 0 && k.show != shownName {
			v.hide(name)
			v.hide(val)
			continue
		}
		v.name(name)
		known, ok := find(k.keys, name.Value)
		if !ok {
			// A key that is only misspelt keeps its value in sight: that is what its reader looks for. One that is
			// at home elsewhere is not misspelt, and another tool's word, as password, may stand for a secret.
			known, ok = misspelt(k.keys, name.Value)
			ok = ok && known.show == shown && val.Kind == yaml.ScalarNode && len(homes(v.root, name.Value, false)) == 0
		}
		// The second of two may have lost the line that it stood under: notify's url is secret, that of http is not.
		if ok && (!seen[name.Value] || known.show != shownURL) {
			v.value(val, known)
		} else {
			v.hide(val)
		}
		seen[name.Value] = true
	}
}

// name shows a key, or as much of it as can be one: in {TOKEN=secret} the key is all of it. In {TOKEN, secret} both are
// keys, and for YAML a tag makes a key of what follows it, so that only what a colon follows counts as a name.
func (v *veil) name(n *yaml.Node) {
	line := v.src.line(n.Line)
	at := n.Column - 1
	if at >= 0 && at <= len(line) {
		at = scalarEnd(line, at, n)
		for at < len(line) && line[at] == ' ' {
			at++
		}
	}
	if at < 0 || at >= len(line) || line[at] != ':' || n.Style&yaml.TaggedStyle != 0 || n.Tag == "!" {
		v.hide(n)
		return
	}
	if text := safeName(n.Value); text != n.Value && n.Tag != "!!merge" {
		v.instead(n, text)
	} else {
		v.show(n)
	}
}

// hide masks a node and all below it.
func (v *veil) hide(n *yaml.Node) {
	v.hidden[n] = true
	for _, child := range n.Content {
		v.hide(child)
	}
	switch {
	case n.Kind != yaml.ScalarNode:
	case v.literal:
		v.instead(n, mask)
	default:
		v.instead(n, hideLiterals(n.Value))
	}
}

func (v *veil) anchor(n *yaml.Node) {
	line := v.src.line(n.Line)
	if end, ok := match(line, n.Column-1, "&"+n.Anchor); ok && n.Anchor != "" {
		v.add(n.Line, token{from: n.Column - 1, to: end, open: true})
	}
}

// show leaves the first line of a scalar or alias as it stands.
func (v *veil) show(n *yaml.Node) {
	if line, from := v.src.line(n.Line), n.Column-1; from >= 0 && from <= len(line) {
		v.add(n.Line, token{from: from, to: scalarEnd(line, from, n), open: true})
	}
}

// instead puts text in the place of the first line of a scalar, in the same quotes.
func (v *veil) instead(n *yaml.Node, text string) {
	if line, from := v.src.line(n.Line), n.Column-1; from >= 0 && from <= len(line) {
		t := token{from: from, to: scalarEnd(line, from, n), text: quoteLike(line, from, text)}
		end, same := match(line, from, t.text)
		t.open = same && end == t.to
		v.add(n.Line, t)
	}
}

func (v *veil) add(line int, t token) {
	v.src.tokens[line] = append(v.src.tokens[line], t)
}

// draw fills in the source's tokens.
func (v *veil) draw(root *yaml.Node) {
	v.value(root, key{keys: v.root})
	for _, tokens := range v.src.tokens {
		slices.SortStableFunc(tokens, func(a, b token) int { return a.from - b.from })
	}
}

// scalarEnd is where a scalar or alias that begins at from ends on that line. Of one that goes on over several lines
// it is the end of the line: the next token cuts it short where something else follows. It looks no further than that,
// since a hostile line may have a million of them.
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
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 && at < len(line) {
		if end := closingQuote(line, at); end >= 0 {
			return end + 1
		}
	} else if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		if n.Value == "" {
			return at
		}
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

// closingQuote is where the quote that opens at a column closes, or -1.
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

// match says where text that stands at a column ends.
func match(line []rune, at int, text string) (end int, ok bool) {
	for _, r := range text {
		if at >= len(line) || line[at] != r {
			return 0, false
		}
		at++
	}
	return at, true
}

// quoteLike puts text into the quotes that the scalar at that place has.
func quoteLike(line []rune, from int, text string) string {
	if from >= 0 && from < len(line) && (line[from] == '"' || line[from] == '\'') {
		return string(line[from]) + text + string(line[from])
	}
	return text
}

var nameLike = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,80}`)

// safeName is a key as it may be shown: the part that looks like a name.
func safeName(name string) string {
	if like := nameLike.FindString(name); like != name {
		return like + mask
	}
	return name
}
