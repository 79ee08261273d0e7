package admin

import (
	"regexp"
	"strings"
	"testing"
)

func TestThePageIsOneDocumentThatAPolicyHoldsToItself(t *testing.T) {
	w := newWorld(t)
	got := w.ask("GET", "/", "")
	h, html := got.Header(), got.Body.String()
	if got.Code != 200 || h.Get("Content-Type") != "text/html; charset=utf-8" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", got.Code, h)
	}
	policy := h.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'; ", "connect-src 'self'; ", "base-uri 'none'; ", "form-action 'none'; ", "frame-ancestors 'none'; ", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("no %s in %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Error(policy)
	}
	// The hashes are those of the text that a browser reads as the style and the script.
	for tag, directive := range map[string]string{"style": "style-src ", "script": "script-src "} {
		parts := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(html, -1)
		if len(parts) != 1 || !strings.Contains(policy, directive+hash(parts[0][1])+";") {
			t.Errorf("%d times <%s>, and its hash is not in %s", len(parts), tag, policy)
		}
	}
	// The page loads nothing, and no element has a handler or style: the policy would forbid them.
	for _, never := range []string{`https?://`, `\bsrc=`, `<link`, `@import`, `url\(`, `\son\w+=`, `\sstyle=`, `innerHTML`, `{{`} {
		if found := regexp.MustCompile(never).FindString(html); found != "" {
			t.Errorf("%q is in the page", found)
		}
	}
	if got := w.ask("HEAD", "/", ""); got.Code != 200 {
		t.Errorf("HEAD: %d", got.Code)
	}
}

func TestAScriptIsNamedInAPolicyByItsSHA256(t *testing.T) {
	if got := hash("alert(1)"); got != "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='" { // openssl's
		t.Errorf("the hash of alert(1) is %s", got)
	}
}
