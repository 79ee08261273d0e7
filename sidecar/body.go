package sidecar

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/solotick/solotick/config"
)

// firstBody precedes, in the key of a due member, the digest of the body with which its tick was first sent. An app may
// refuse an Idempotency-Key that comes again with another body, so the key changes with the body. If the table has
// changed the body before a run takes over a tick, the digest of the new body follows the tick.
const firstBody = "~"

// body is the digest of the job's body; "" for a command. The digest goes to Redis, and a body may hold a secret.
// Sixteen bits tell two tables apart, but confirm no guess.
func (sp *spec) body() string {
	if sp.HTTP == nil || isTimer(sp.Name) { // a timer that has begun is not changed
		return ""
	}
	sum := sha256.Sum256([]byte(sp.HTTP.Body))
	return hex.EncodeToString(sum[:2])
}

// key follows the tick in the wake's Idempotency-Key.
func (w *wake) key() string {
	own, first, sent := strings.Cut(w.of.Key, firstBody)
	if now := w.spec.body(); sent && now != "" && now != first {
		return strings.TrimPrefix(own+"/"+now, "/")
	}
	return own
}

// againKey is the key of the due member by which a run that is cut short is run again.
func (w *wake) againKey() string {
	now := w.spec.body()
	if w.of.Data != "" { // the data are the body, and stay the same
		return ""
	}
	if w.spec.Guarantee != config.AtLeastOnce || now == "" || strings.Contains(w.of.Key, firstBody) {
		return w.of.Key
	}
	return w.of.Key + firstBody + now
}
