package command

import (
	"context"
	"errors"
	"testing"

	"github.com/solotick/solotick/sidecar/execute"
)

var errLockLost = errors.New("the lock was lost")

func contextWithCause(t *testing.T) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, cancel
}

// wantCause checks that an attempt was ended by errLockLost and says so.
func wantCause(t *testing.T, res execute.Result) {
	t.Helper()
	wantStatus(t, res, execute.Canceled)
	if !errors.Is(res.Err, errLockLost) {
		t.Fatalf("error %v does not carry the cause", res.Err)
	}
}
