package config

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/solotick/solotick/config/strict"
)

// withoutFiles returns the key http as timers have it.
func withoutFiles(k strict.Key) strict.Key {
	namesAFile := func(sub strict.Key) bool { return slices.Contains(fileKeys, sub.Name) }
	k.Keys = slices.DeleteFunc(slices.Clone(k.Keys), namesAFile)
	for i := range k.Keys {
		k.Keys[i].Each = nil
	}
	return k
}

// headerFileKeys are the keys of a header whose value comes from a file.
func headerFileKeys(to *HeaderFile) []strict.Key {
	return []strict.Key{
		{Name: "file", Type: strict.NonEmpty(&to.File), Default: strict.Required,
			Example: "/var/run/secrets/tokens/app", Form: filledForm, Show: strict.Shown,
			Also: "path valueFile fromFile", Doc: "file with the value; one line break at its end does not count"},
		{Name: "prefix", Type: strict.Fitting(&to.Prefix, fitsHeader), Example: `"Bearer "`,
			Doc: "text before that value"},
	}
}

func signKeys(to *Sign) []strict.Key {
	return []strict.Key{
		{Name: "secretFile", Type: strict.NonEmpty(&to.SecretFile), Default: strict.Required,
			Example: "/run/secrets/whsec", Form: filledForm, Show: strict.Shown, Also: "secret signingSecret keyFile",
			Doc: "file with the secret `whsec_…`, or several in lines of their own"},
	}
}

// fitsHeader checks a header's value, or a part of it.
func fitsHeader(d *strict.Decoder, t strict.Text) bool {
	if IsHeaderValue(t.Value) {
		return true
	}
	return d.Bad(t, "a file or variable that ends in a newline is the usual cause",
		"a header's value cannot hold line breaks or control characters")
}

// webhookHeaders are those that a signature is made of.
var webhookHeaders = []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"}

// checkSigned refuses headers of the table that the signature brings.
func checkSigned(d *strict.Decoder, j *draft) {
	sign := j.at["http.sign"]
	if !sign.OK() {
		return
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(j.HTTP.Headers)), maps.Keys(j.HTTP.HeaderFiles))
	for _, own := range webhookHeaders {
		if slices.ContainsFunc(names, func(name string) bool { return http.CanonicalHeaderKey(name) == own }) {
			d.Fail(sign.Node, "remove one of them",
				"http.sign sets the header %s itself, and http.headers has it too", own)
		}
	}
}

// tlsKeys are the keys of a TLS connection.
func tlsKeys(to *TLS) []strict.Key {
	return []strict.Key{
		{Name: "caFile", Type: strict.NonEmpty(&to.CAFile),
			Example: "/etc/tls/ca.pem", Form: filledForm, Show: strict.Shown, Also: "ca cacert caCertFile",
			Doc: "PEM file with the roots to trust instead of the system's"},
		{Name: "certFile", Type: strict.NonEmpty(&to.CertFile),
			Example: "/etc/tls/tls.crt", Form: filledWith("keyFile"), Show: strict.Shown, Also: "cert",
			Doc: "PEM file with the client's certificate; needs `keyFile`"},
		{Name: "keyFile", Type: strict.NonEmpty(&to.KeyFile), Example: "/etc/tls/tls.key", Form: filledWith("certFile"),
			Show: strict.Shown, Also: "key", Doc: "PEM file with the client's key; needs `certFile`"},
		{Name: "serverName", Type: strict.NonEmpty(&to.ServerName), Example: "db.internal", Form: filledForm,
			Show: strict.Shown, Also: "sni", Doc: "name in the server's certificate, where it is not the URL's host"},
	}
}

// checkTLS refuses files for a connection that would be made without TLS.
func checkTLS(d *strict.Decoder, j *draft) {
	tls, target := j.at["http.tls"], j.at["http.url"]
	if tls.OK() && *j.HTTP.TLS == (TLS{}) {
		j.HTTP.TLS = nil // saying nothing makes no other table
	}
	if !tls.OK() || !target.OK() {
		return
	}
	hint := "write https:// to encrypt the connection"
	if strings.HasPrefix(j.HTTP.URL, unixURL) {
		hint = "requests over a unix socket do not leave the machine: remove tls"
	}
	if u, err := url.Parse(j.HTTP.URL); err != nil || u.Scheme != "https" {
		d.Fail(tls.Node, hint, "http.tls: http.url does not ask for TLS")
	}
}
