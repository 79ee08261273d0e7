package config

import (
	"net/http"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/strict"
)

// HeaderFile names the file that a header's value comes from.
type HeaderFile struct {
	File   string // read for each attempt
	Prefix string // stands before what the file holds
}

// Sign says how requests prove that Solotick made them. The zero value is no signature.
type Sign struct {
	SecretFile string // signs as Standard Webhooks; read for each attempt
}

// fileKeys are the keys of http that name files. Dynamic jobs and timers cannot have them: with them the API could have
// every file that the replica may read sent to a listener of the caller's.
var fileKeys = []string{"tls", "sign"}

// withoutFiles returns the key http as dynamic jobs and timers have it.
func withoutFiles(k strict.Key) strict.Key {
	var keys []strict.Key
	for _, sub := range k.Keys {
		if !slices.Contains(fileKeys, sub.Name) {
			sub.Each = nil
			keys = append(keys, sub)
		}
	}
	k.Keys = keys
	return k
}

// headerFileKeys are the keys of a header whose value comes from a file.
func (d *decoder) headerFileKeys(of *HeaderFile) []strict.Key {
	return []strict.Key{
		{Name: "file", Kind: strict.KindText, Default: strict.Required, Example: "/var/run/secrets/tokens/app", Form: filledForm,
			Show: strict.Shown, Also: []string{"path", "valueFile", "fromFile"},
			Decode: func(e strict.Entry) { d.NonEmpty(e, &of.File) },
			Doc:    "file with the value, read for each attempt; one line break at its end does not count"},
		{Name: "prefix", Kind: strict.KindText, Default: strict.None, Example: `"Bearer "`,
			Decode: func(e strict.Entry) {
				if t := d.Text(e); t.OK() && d.fitsHeader(t) {
					of.Prefix = t.Value
				}
			},
			Doc: "text before that value"},
	}
}

// headerFileKey describes a mapping in place of a header's value. Decode comes from headers.
func (d *decoder) headerFileKey() *strict.Key {
	return &strict.Key{Kind: strict.KindMapping, Keys: d.headerFileKeys(&HeaderFile{})}
}

// headerFile reads a header whose value comes from a file.
func (d *decoder) headerFile(e strict.Entry) {
	switch http.CanonicalHeaderKey(e.At.Value) {
	case "Host", "Content-Type":
		d.Fail(e.At, "it is no secret: write it as text", "%s cannot come from a file", e.Path)
		return
	}
	var h HeaderFile
	e.Keys = d.headerFileKeys(&h)
	d.complete(e, "file")
	if d.job.HTTP.HeaderFiles == nil {
		d.job.HTTP.HeaderFiles = map[string]HeaderFile{}
	}
	d.job.HTTP.HeaderFiles[e.At.Value] = h
}

func (d *decoder) signKey() strict.Key {
	return strict.Key{Name: "sign", Kind: strict.KindMapping, Default: strict.None, Keys: d.signKeys(), Decode: d.sign,
		Also: []string{"signature", "hmac", "webhook"},
		Doc:  "signs each request, so that the app can tell who called: see [handlers.md](handlers.md#prove-that-it-was-solotick-that-called)"}
}

func (d *decoder) signKeys() []strict.Key {
	return []strict.Key{
		{Name: "secretFile", Kind: strict.KindText, Default: strict.Required, Example: "/run/secrets/whsec", Form: filledForm,
			Show: strict.Shown, Also: []string{"secret", "signingSecret", "keyFile"},
			Decode: func(e strict.Entry) { d.NonEmpty(e, &d.job.HTTP.Sign.SecretFile) },
			Doc:    "file with the secret `whsec_…`, or several of them in lines of their own; read for each attempt"},
	}
}

func (d *decoder) sign(e strict.Entry) {
	d.noteMapping(e)
	d.complete(e, "secretFile")
}

// webhookHeaders are those that a signature is made of.
var webhookHeaders = []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"}

// checkCredentials makes the checks of what the request proves itself with that need the whole job.
func (d *decoder) checkCredentials() {
	if d.job.HTTP == nil {
		return
	}
	d.checkTLS()
	if sign := d.job.at["http.sign"]; sign.OK() {
		d.checkSigned(sign.Node)
	}
}

// checkSigned refuses headers of the table that the signature brings.
func (d *decoder) checkSigned(at *yaml.Node) {
	taken := map[string]bool{}
	for name := range d.job.HTTP.Headers {
		taken[http.CanonicalHeaderKey(name)] = true
	}
	for name := range d.job.HTTP.HeaderFiles {
		taken[http.CanonicalHeaderKey(name)] = true
	}
	for _, own := range webhookHeaders {
		if taken[own] {
			d.Fail(at, "remove one of them", "http.sign sets the header %s itself, and http.headers has it too", own)
		}
	}
}
