package call

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/credentials"
	"github.com/solotick/solotick/sidecar/execute"
)

// prover makes the proofs of a job's calls out of the files that the table names.
type prover struct {
	headers map[string]*credentials.Kept[string] // by canonical name
	tls     *credentials.TLS                     // nil = the table says nothing
	secrets *credentials.Kept[credentials.Secrets]
}

// proof is what one attempt shows to the table's server, and to no other.
type proof struct {
	headers http.Header
	tls     *tls.Config // nil = the table says nothing
}

// newProver reads nothing yet. It returns nil if the table names no files.
func newProver(c config.HTTP, log *slog.Logger) *prover {
	if len(c.HeaderFiles) == 0 && c.TLS == nil && c.Sign == (config.Sign{}) {
		return nil
	}
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	warn := func(err error) {
		log.Warn("a file is damaged: what it held before stays in use", "err", err)
	}
	p := &prover{headers: map[string]*credentials.Kept[string]{}}
	if c.TLS != nil {
		p.tls = credentials.NewTLS(*c.TLS, warn)
	}
	if c.Sign.SecretFile != "" {
		p.secrets = credentials.SecretFile(c.Sign.SecretFile, warn)
	}
	for name, file := range c.HeaderFiles {
		p.headers[http.CanonicalHeaderKey(name)] = credentials.Header(file, warn)
	}
	return p
}

// prove reads the files. A call whose proof cannot be made is never begun.
func (p *prover) prove(ctx context.Context, r execute.Run, body string) (proof, error) {
	made := proof{headers: http.Header{}}
	if p == nil {
		return made, nil
	}
	for name, file := range p.headers {
		value, err := file.Get(ctx)
		if err != nil {
			return proof{}, err
		}
		made.headers[name] = []string{value}
	}
	if p.tls != nil {
		var err error
		if made.tls, err = p.tls.Config(ctx); err != nil {
			return proof{}, err
		}
	}
	if p.secrets != nil {
		secrets, err := p.secrets.Get(ctx)
		if err != nil {
			return proof{}, err
		}
		secrets.SignIn(made.headers, webhookID(r), body, time.Now())
	}
	return made, nil
}

// webhookID is the same for every attempt of a tick. It is made of the Idempotency-Key in its textual form. The key
// itself cannot be the id, which Standard Webhooks signs with a dot behind it: a key has dots of its own.
func webhookID(r execute.Run) string {
	sum := sha256.Sum256([]byte(strings.Trim(r.Facts()[0].Value, `"`)))
	return "tick_" + base64.RawURLEncoding.EncodeToString(sum[:])
}
