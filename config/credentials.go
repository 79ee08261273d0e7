package config

import (
	"maps"
	"net/http"
	"slices"

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
			Also: "path valueFile fromFile",
			Doc:  "file with the value; one line break at its end does not count"},
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
