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
var pageFiles embed.FS

// page is the document and the policy under which a browser may show it: its own style and script, known by their
// hashes, and requests to where it came from. Text that got into the page by mistake would be no script, and no script
// can make a document of text (trusted-types).
type page struct{ html, policy string }

func newPage() page {
	style, script := pageFile("page.css"), "(() => {\n'use strict';\n"
	scripts, err := fs.Glob(pageFiles, "page/*.js") // sorted: they are numbered
	if err != nil {
		panic(err) // of the pattern above
	}
	for _, name := range scripts {
		script += pageFile(strings.TrimPrefix(name, "page/"))
	}
	script += "})();\n"
	return page{
		html: strings.NewReplacer("{{style}}", style, "{{script}}", script).Replace(pageFile("page.html")),
		policy: "default-src 'none'; connect-src 'self'; style-src " + hash(style) + "; script-src " + hash(script) +
			"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	}
}

// pageFile reads what is compiled in; that it is there every test sees.
func pageFile(name string) string {
	text, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		panic(err)
	}
	return string(text)
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
