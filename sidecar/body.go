package sidecar

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/solotick/solotick/config"
)

// An app may refuse an Idempotency-Key that comes again with another body. So the key changes with the body: a run that takes
// over a tick after the table has changed what the job sends has the new body's digest behind the tick. The key of a due member
// tells which body its tick was first sent with, by the digest behind a tilde.
const firstBody = "~"

// body is the digest of what the job sends; "" for a command. It goes to Redis, and what a body holds may be secret: sixteen
// bits tell two tables apart, and confirm no guess.
func (j *job) body() string {
	if j.HTTP == nil || isTimer(j.Name) { // a timer that has begun is not changed
		return ""
	}
	sum := sha256.Sum256([]byte(j.HTTP.Body))
	return hex.EncodeToString(sum[:2])
}

// key is what stands behind the tick in the wake's Idempotency-Key.
func (w *wake) key() string {
	own, first, sent := strings.Cut(w.of.Key, firstBody)
	if now := w.job.body(); sent && now != "" && now != first {
		return strings.TrimPrefix(own+"/"+now, "/")
	}
	return own
}

// againKey is the key of the due member by which a run that is cut short is run again.
func (w *wake) againKey() string {
	now := w.job.body()
	if w.job.Guarantee != config.AtLeastOnce || now == "" || strings.Contains(w.of.Key, firstBody) {
		return w.of.Key
	}
	return w.of.Key + firstBody + now
}
