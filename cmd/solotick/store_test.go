package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/solotick/solotick/lock"
)

// TestWhatWasNotAnsweredMayHaveBeenDone: who triggers a job and hears nothing must not simply do it again.
func TestWhatWasNotAnsweredMayHaveBeenDone(t *testing.T) {
	for err, want := range map[error]string{
		lock.ErrNoAnswer:    "it may have been done or not: solotick status shows it",
		lock.ErrUnknownJob:  "a replica registers its jobs when it starts: solotick status shows which replicas there are",
		lock.ErrTimerFired:  "for a day the id is not taken again: use another one",
		errors.New("other"): "",
	} {
		f := cannot(fmt.Errorf("triggering job %q: %w", "a", err))
		if f.hint != want || !strings.HasPrefix(f.Error(), "triggering job") {
			t.Errorf("%v: hint %q, want %q", err, f.hint, want)
		}
	}
}
