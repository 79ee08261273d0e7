// Package strict decodes YAML by a description of its keys, and knows nothing of what the keys mean.
//
// The caller describes each key (Key) and says what follows from its value (Key.Decode). A Decoder reads a text, walks
// it once and reports everything that is wrong in it: each Problem has a line and column, the source line with a caret
// and, where one can be guessed, the remedy.
//
// Problems show no secret. They never repeat values of variables. They show a source line up to the first value that
// its key hides (Key.Show), and *** for the rest of it. The limit: they show a secret that stands in the wrong place,
// as a key or in a value that may be shown.
//
// Reading is bounded: the decoder refuses texts above the caller's limit, nesting deeper than 64, and aliases that
// expand to more than a quarter of a million values, before they cost time. The package has no goroutines and opens no
// file.
//
//	source, problem  lines, carets, and the order of problems
//	redact, guess    which part of a line is shown: of YAML, and of a text that is none
//	read             text to tree; errors of the YAML library in words that say what to do
//	decode, value    tree to values: mappings, lists, text, numbers, durations, times
//	variable         ${NAME} and ${NAME:-default}
//	key, nearest     descriptions of keys, and which key a misspelt one was meant to be
package strict
