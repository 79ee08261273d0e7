// Package webhook has a check of signatures, for docs/handlers.md.
package webhook

import (
	"bytes"
	"io"
	"net/http"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// signed lets calls through that are signed with the secret.
func signed(secret string, next http.Handler) (http.Handler, error) {
	webhook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err != nil || webhook.Verify(body, r.Header) != nil {
			http.Error(w, "the signature is missing or wrong", http.StatusForbidden)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	}), nil
}
