package strict

import (
	"slices"
	"strings"
)

// Key describes one key of a mapping. This one description decodes the key, masks its value and gives the hints for its
// misspellings. Callers derive a schema from it and check documentation against it, so all of them know the same keys.
type Key struct {
	Name string
	Type
	Default    string     // as one would write it, or "required", or words for what happens without it; "" = none
	Doc        string     // one line
	Example    string     // a value; mappings have the examples of their keys
	Show       Visibility // which values are no secret
	Common     bool       // for the caller: may stand in a second place too
	Extensible bool       // keys that begin with x- are ignored
	Named      bool       // a mapping with names of the user's: each value is a mapping of Keys
	Also       string     // what it is called elsewhere, in words, for hints
	Each       *Key       // of a mapping of text: a mapping that may stand in place of each text; nil = none
	Form       Form       // what a good value looks like
}

// Type says what the value of a key is, and reads it to where it goes.
type Type struct {
	Kind   string // in words: "duration"
	Keys   []Key  // of a mapping, or of each mapping in a list
	Decode func(d *Decoder, e Entry)
}

// Kinds of values, as the user reads them.
const (
	KindText     = "text"
	KindDuration = "duration"
	KindNumber   = "number"
	KindBool     = "true or false"
	KindTime     = "time"
	KindMapping  = "mapping"
	KindTextMap  = "mapping of text"
	KindTextList = "list of text"
	KindCodes    = "list of codes"
	Required     = "required"
)

// Form describes good values. The decoder and the JSON Schema both check every field that is not zero.
type Form struct {
	Words       []string // the only values
	Least, Most int      // of a number; Most also of the texts in a mapping
	Length      int      // of text, or of the texts in a mapping, in characters: at most
	Pattern     string   // of text, or of texts in a list or mapping; it lets pass what the decoder checks more closely
	Names       string   // a pattern of the names in a mapping of text
	Filled      bool     // a list has items
	Choice      []string // keys of a mapping, of which no two can stand together
	Chosen      bool     // and of which one must
	Needs       string   // another key that must be there too
}

// Words returns the form of a value that must be one of some words.
func Words[T ~string](all ...T) Form {
	var f Form
	for _, w := range all {
		f.Words = append(f.Words, string(w))
	}
	return f
}

// item describes the i-th item of a list.
func (k Key) item(i int) Key {
	switch {
	case k.Show == ShownFirst && i == 0:
		k.Show = shownWord
	case k.Show == ShownFirst:
		k.Show = hidden
	}
	return k
}

// Find returns the key of a name.
func Find(keys []Key, name string) (Key, bool) {
	for _, k := range keys {
		if k.Name == name {
			return k, true
		}
	}
	return Key{}, false
}

// NearestKey returns the key that name probably means: name is misspelt, or another tool's word for the key.
func NearestKey(keys []Key, name string) (Key, bool) {
	if k, ok := misspelt(keys, name); ok {
		return k, true
	}
	for _, k := range keys {
		for other := range strings.FieldsSeq(k.Also) {
			if PlainName(other) == PlainName(name) {
				return k, true
			}
		}
	}
	return Key{}, false
}

// misspelt returns the key that name is another spelling of, or a misspelling.
func misspelt(keys []Key, name string) (Key, bool) {
	plain := func(k Key) bool { return PlainName(k.Name) == PlainName(name) }
	if i := slices.IndexFunc(keys, plain); i >= 0 {
		return keys[i], true
	}
	return Find(keys, Nearest(name, Names(keys)))
}

// Names returns the names of keys.
func Names(keys []Key) (names []string) {
	for _, k := range keys {
		names = append(names, k.Name)
	}
	return names
}

// PlainName returns a name in one form for the spellings time_zone, time-zone and timeZone.
func PlainName(name string) string { return strings.ToLower(separators.Replace(name)) }

var separators = strings.NewReplacer("_", "", "-", "")

// Nearest returns the word of words that word may have been meant to be: equal except for case, or at most two typing
// errors away. It allows fewer errors for short words, which are all alike. It returns "" if none is near.
func Nearest(word string, words []string) string {
	best, bestSlips := "", 3
	for _, w := range words {
		if strings.EqualFold(w, word) {
			return w
		}
		limit := 2
		if min(len(w), len(word)) < 5 {
			limit = 1
		}
		if diff := len(w) - len(word); diff > limit || diff < -limit {
			continue
		}
		if n := slips(strings.ToLower(word), strings.ToLower(w)); n <= limit && n < bestSlips {
			best, bestSlips = w, n
		}
	}
	return best
}

// slips counts the typing errors between two words: letters added, left out, changed, or swapped with a neighbour
// (Damerau–Levenshtein distance, restricted form).
func slips(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
