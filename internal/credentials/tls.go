package credentials

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"

	"github.com/solotick/solotick/config"
)

// maxCertificate is in bytes. The bundle of all that a system trusts has a quarter of it.
const maxCertificate = 4 << 20

// TLS is what a client needs for the connections that a table describes.
type TLS struct {
	roots      *Kept[*x509.CertPool]   // nil = the system's
	pair       *Kept[*tls.Certificate] // nil = no certificate
	serverName string
}

// NewTLS reads nothing yet. warn is that of Keep.
func NewTLS(c config.TLS, warn func(error)) *TLS {
	t := &TLS{serverName: c.ServerName}
	if c.CAFile != "" {
		t.roots = Keep(maxCertificate, parseRoots, warn, c.CAFile)
	}
	if c.CertFile != "" {
		t.pair = Keep(maxCertificate, parsePair, warn, c.CertFile, c.KeyFile)
	}
	return t
}

// Config reads the files. The roots are those of now. The certificate is read again at each handshake. Without a server
// name in the table, that of the configuration is empty.
func (t *TLS) Config(ctx context.Context) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.serverName}
	var err error
	if t.roots != nil {
		if c.RootCAs, err = t.roots.Get(ctx); err != nil {
			return nil, err
		}
	}
	if t.pair != nil {
		if _, err := t.pair.Get(ctx); err != nil {
			return nil, err
		}
		c.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return t.pair.Get(r.Context())
		}
	}
	return c, nil
}

// parseRoots refuses a file that ends within a certificate: the pool would lack it, and nobody would know.
func parseRoots(contents [][]byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(contents[0]) {
		return nil, errors.New("it holds no certificate")
	}
	rest := contents[0]
	for block := (&pem.Block{}); block != nil; {
		block, rest = pem.Decode(rest)
	}
	if bytes.Contains(rest, []byte("-----BEGIN")) {
		return nil, errors.New("it ends within a certificate")
	}
	return pool, nil
}

func parsePair(contents [][]byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	return &pair, err
}
