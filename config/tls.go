package config

import (
	"net/url"
	"strings"

	"github.com/solotick/solotick/config/strict"
)

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
