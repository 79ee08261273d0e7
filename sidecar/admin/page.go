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

// files has the parts of the status page: one document with its style and script in it, which loads nothing else.
//
//go:embed page
var files embed.FS

// page serves the document with its content security policy. The policy allows the page's own style and script, known
// by their hashes, and requests to the page's origin. Text that gets into the page by mistake cannot be a script, and
// no script can turn text into elements (trusted-types).
func page() http.HandlerFunc {
	style := contents("*.css")
	script := "(() => {\n'use strict';\n" + contents("*.js") + "})();\n"
	html := []byte(strings.NewReplacer("{{style}}", style, "{{script}}", script).Replace(contents("*.html")))
	policy := "default-src 'none'; connect-src 'self'; style-src " + hash(style) + "; script-src " + hash(script) +
		"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" +
		"; require-trusted-types-for 'script'; trusted-types 'none'"
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Content-Length", strconv.Itoa(len(html)))
		_, _ = w.Write(html) // or the browser has gone
	}
}

// contents returns the contents of the matching files, in the order of their names.
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

// hash returns the name of an inline style or script in a policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
