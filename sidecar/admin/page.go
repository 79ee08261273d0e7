package admin

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
)

// The status page: one document with its style and script in it, and nothing of anywhere else.
var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageCSS string
	//go:embed page/1-words.js
	pageWords string
	//go:embed page/2-labels.js
	pageLabels string
	//go:embed page/3-replicas.js
	pageReplicas string
	//go:embed page/4-runs.js
	pageRuns string
	//go:embed page/5-jobs.js
	pageJobs string
	//go:embed page/6-more.js
	pageMore string
	//go:embed page/7-act.js
	pageAct string
	//go:embed page/8-live.js
	pageLive string
)

// page is the document and the policy under which a browser may show it: its own style and script, known by their
// hashes, and requests to where it came from. Text that got into the page by mistake would be no script, and no script
// can make a document of text (trusted-types).
type page struct{ html, policy string }

func newPage() page {
	script := "(() => {\n'use strict';\n" + pageWords + pageLabels + pageReplicas + pageRuns + pageJobs + pageMore + pageAct + pageLive + "})();\n"
	return page{
		html: strings.NewReplacer("{{style}}", pageCSS, "{{script}}", script).Replace(pageHTML),
		policy: "default-src 'none'; connect-src 'self'; style-src " + hash(pageCSS) + "; script-src " + hash(script) +
			"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	}
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
