package admin

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
)

// The status page: one document with its style and script in it, and nothing of anywhere else.
//
//go:embed page
var files embed.FS

// page is the document and the policy under which a browser may show it: its own style and script, known by their
// hashes, and requests to where it came from. Text that got into the page by mistake would be no script, and no script
// can make a document of text (trusted-types).
type page struct{ html, policy string }

func newPage() page {
	style := contents("*.css")
	script := "(() => {\n'use strict';\n" + contents("*.js") + "})();\n"
	return page{
		html: strings.NewReplacer("{{style}}", style, "{{script}}", script).Replace(contents("*.html")),
		policy: "default-src 'none'; connect-src 'self'; style-src " + hash(style) + "; script-src " + hash(script) +
			"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	}
}

// contents are those of the files of the page that match, in the order of their names.
func contents(pattern string) string {
	names, err := fs.Glob(files, "page/"+pattern)
	if err != nil {
		panic(err) // the pattern is a constant
	}
	var all strings.Builder
	for _, name := range names {
		file, err := files.ReadFile(name)
		if err != nil {
			panic(err) // the binary holds it
		}
		all.Write(file)
	}
	return all.String()
}

// hash names an inline style or script in a policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (p page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", p.policy)
	w.Header().Set("Content-Length", strconv.Itoa(len(p.html)))
	_, _ = w.Write([]byte(p.html)) // or the browser has gone
}
