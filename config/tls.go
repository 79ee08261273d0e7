package config

import (
	"net/url"
	"strings"

	"github.com/solotick/solotick/config/strict"
)

// TLS names the files of a TLS connection; an empty name leaves the part to the system's defaults.
type TLS struct{ CAFile, CertFile, KeyFile, ServerName string }

// tlsKeys are the keys of a TLS connection, the settings of which of returns.
func (d *decoder) tlsKeys(of func() *TLS) []strict.Key {
	file := func(name, needs, example, doc string, to func(*TLS) *string, aka ...string) strict.Key {
		f := filledForm
		f.Needs = needs
		return strict.Key{Name: name, Kind: strict.KindText, Default: strict.None, Example: example, Show: strict.Shown, Doc: doc, Also: aka, Form: f,
			Decode: func(e strict.Entry) { d.NonEmpty(e, to(of())) }}
	}
	return []strict.Key{
		file("caFile", "", "/etc/tls/ca.pem", "PEM file with the roots to trust instead of the system's",
			func(t *TLS) *string { return &t.CAFile }, "ca", "cacert", "caCertFile"),
		file("certFile", "keyFile", "/etc/tls/tls.crt", "PEM file with the client's certificate; needs `keyFile`",
			func(t *TLS) *string { return &t.CertFile }, "cert"),
		file("keyFile", "certFile", "/etc/tls/tls.key", "PEM file with the client's key; needs `certFile`",
			func(t *TLS) *string { return &t.KeyFile }, "key"),
		file("serverName", "", "redis.internal", "name that the server's certificate must have, where it is not the URL's host",
			func(t *TLS) *string { return &t.ServerName }, "sni"),
	}
}

// tls reads the keys of a TLS connection.
func (d *decoder) tls(e strict.Entry) {
	seen := d.Mapping(e)
	for _, k := range e.Keys {
		if needs := k.Form.Needs; needs != "" && seen[k.Name] != nil && seen[needs] == nil {
			d.Fail(seen[k.Name], "", "%s.%s needs %s", e.Path, k.Name, needs)
		}
	}
}

func (d *decoder) httpTLSKey() strict.Key {
	keys := d.tlsKeys(func() *TLS { return d.job.HTTP.TLS })
	for i := range keys {
		if keys[i].Name == "serverName" {
			keys[i].Example = "billing.internal"
		}
	}
	return strict.Key{Name: "tls", Kind: strict.KindMapping, Default: strict.None, Keys: keys, Decode: d.httpTLS,
		Doc: "for `https://`: where the system's own roots and names do not fit, or the app wants a certificate"}
}

func (d *decoder) httpTLS(e strict.Entry) {
	h := d.job.HTTP
	h.TLS = &TLS{}
	d.noteMapping(e)
	if d.tls(e); *h.TLS == (TLS{}) {
		h.TLS = nil // saying nothing makes no other table
	}
}

// checkTLS refuses files for a connection that would be made without TLS.
func (d *decoder) checkTLS() {
	tls, target := d.job.at["http.tls"], d.job.at["http.url"]
	if !tls.OK() || !target.OK() {
		return
	}
	hint := "write https:// to encrypt the connection"
	if strings.HasPrefix(d.job.HTTP.URL, unixURL) {
		hint = "requests over a unix socket do not leave the machine: remove tls"
	}
	if u, err := url.Parse(d.job.HTTP.URL); err != nil || u.Scheme != "https" {
		d.Fail(tls.Node, hint, "http.tls: http.url does not ask for TLS")
	}
}
