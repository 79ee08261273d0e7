package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Which of the flags that several verbs have are of which verb. Those of its own each verb shows in its transcript.
func TestEachVerbHasTheFlagsThatItUses(t *testing.T) {
	const operator = "config redis service"
	want := map[string]string{
		"run": "config redis replica log-format log-level", "validate": "config", "next": "config", "drain": "config", "claim": "config", "try": "config replica", "doctor": operator, "backfill": "config redis",
		"history": operator + " replica", "status": operator, "why": operator, "events": operator, "trigger": operator, "rerun": operator, "cancel": operator,
		"pause": operator, "resume": operator, "timer": operator, "job": operator,
	}
	var walk func(c *cobra.Command, verb string)
	walk = func(c *cobra.Command, verb string) {
		for _, flag := range []string{"config", "redis", "service", "replica", "log-format", "log-level"} {
			wanted := strings.Contains(" "+want[verb]+" ", " "+flag+" ")
			if has := c.Flag(flag) != nil; has != wanted {
				t.Errorf("%s has --%s: %t, want %t", c.CommandPath(), flag, has, wanted)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub, verb)
		}
	}
	for _, c := range (&app{out: io.Discard, err: io.Discard}).root().Commands() {
		walk(c, c.Name())
	}
}
