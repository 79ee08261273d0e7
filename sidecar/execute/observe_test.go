package execute

import (
	"context"
	"errors"
	"testing"
)

// TestAnObserverWaitsForTheTickAndCallsNothing: what ends the wait ends the attempt, before it has begun.
func TestAnObserverWaitsForTheTickAndCallsNothing(t *testing.T) {
	var steps []string
	r := Run{Await: func(context.Context) { steps = append(steps, "await") }, Started: func() { steps = append(steps, "started") }}
	if got := (Observer{}).Execute(t.Context(), r); got.Status != Observed || got.Err != nil || len(steps) != 2 || steps[0] != "await" {
		t.Errorf("%+v after %v", got, steps)
	}
	ctx, end := context.WithCancelCause(t.Context())
	lost := errors.New("lost")
	r.Await = func(context.Context) { end(lost) }
	if got := (Observer{}).Execute(ctx, r); got.Status != Canceled || !errors.Is(got.Err, lost) || len(steps) != 2 {
		t.Errorf("%+v after %v", got, steps)
	}
}
