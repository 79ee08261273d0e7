package config

// form is what can be said of a value without reading it. What is not zero holds for the decoder and the JSON Schema.
type form struct {
	words       []string // the only values
	least, most int      // of a number
	length      int      // of text, in characters: at most
	pattern     string   // of text, or of the texts in a list; it lets pass what the decoder looks at more closely
	names       string   // the same for the names in a mapping of text
	filled      bool     // a list has items
	choice      []string // keys of a mapping, of which no two can stand together
	chosen      bool     // and of which one must
	needs       string   // another key that must be there too
}

func words[T ~string](all ...T) form {
	var f form
	for _, w := range all {
		f.words = append(f.words, string(w))
	}
	return f
}

// Patterns are written so that Go and the ECMAScript of JSON Schema read them alike.
const (
	localhost = `[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt]`
	webScheme = `[Hh][Tt][Tt][Pp][Ss]?://`
	onLocal   = `(` + localhost + `|127\.[0-9.]+|\[[^\]]*\])`

	headerNames   = "^[-!#$%&'*+.^_`|~0-9A-Za-z]+$"
	variableNames = `^[A-Za-z_][A-Za-z0-9_]*$`

	// durations are Go's, but for those that are always refused.
	durations = `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	moments   = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{1,2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})$`
)

// The forms of the values that need more than their kind.
var (
	nameForm    = form{pattern: `^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`, length: 63}
	filledForm  = form{pattern: `\S`}
	listenForm  = form{pattern: `^$|:[0-9]+$`}
	adminForm   = form{pattern: `^$|^` + onLocal + `:[0-9]+$`}
	tcpForm     = form{pattern: `^` + onLocal + `:[0-9]+$`}
	addrsForm   = form{pattern: `^[^ /@]+:[0-9]+$`, filled: true}
	redisForm   = form{pattern: `^` + Embedded + `$|^[Rr][Ee][Dd][Ii][Ss]{1,2}://.|^[Uu][Nn][Ii][Xx]:/.`}
	webForm     = form{pattern: `^` + webScheme + `.`}
	localForm   = form{pattern: `^http://unix:/|^` + webScheme + `([^/?#]*@)?` + onLocal}
	pingForm    = form{pattern: `^$|^` + webScheme + `.`}
	methodForm  = form{pattern: "^[-!#$%&'*+.^_`|~0-9A-Z]+$"}
	bodyForm    = form{length: maxBody}
	codesForm   = form{pattern: `^([0-9]{3})(?: *- *([0-9]{3}))?$`, least: 100, most: 599, filled: true}
	programForm = form{filled: true}
	bytesForm   = form{pattern: `^([0-9]{1,19})(k|M|G|Ki|Mi|Gi)?$`, least: leastMemory}
)
