package main

import (
	"testing"

	"github.com/solotick/solotick/internal/testing/rig"
)

// Only a table with the embedded store begins at level debug.
func TestOfATrialTheLogSaysWhichTicksAnotherReplicaHasFired(t *testing.T) {
	t.Parallel()
	table := `
service: quickstart
redis: {url: embedded}
listen: ""
admin: ""
jobs:
  - {name: hello, schedule: "@every 1s", exec: {command: [/bin/echo, hello]}}
`
	env := []string{embeddedVariable + "=" + rig.FreeAddr(t)}
	r := launch(t, table, env, "--replica", "one")
	r.await("finished", "job", "hello", "outcome", "succeeded", "code", "0")
	other := launch(t, table, env, "--replica", "two", "--log-level", "info")
	other.await("finished", "job", "hello")
	// Only the first one was not told how much to say.
	awaitAny(t, []*replica{r}, "a skip", func(l line) bool { return l.is("skipped", "reason", "fired_elsewhere", "by", "two") })
	other.kill()
	r.kill()
	for _, l := range other.lines {
		if l.is("skipped", "reason", "fired_elsewhere") {
			t.Errorf("at --log-level info: %v", l)
		}
	}
}
