package config

import (
	"strings"
	"testing"
)

func TestALineIsNeitherEmptyNorTooLong(t *testing.T) {
	for text, ok := range map[string]bool{
		"a": true, strings.Repeat("é", 200): true, strings.Repeat("é", 201): false, "": false, " \u00a0": false,
		"a\nb": false, "a\u2028b": false, "a\u0085b": false, "a\x1bb": false, "a\u200bb": true,
	} {
		if why, _ := checkLine(text, 200); (why == "") != ok {
			t.Errorf("%q: %q", text, why)
		}
	}
}

// TestAJobsLabelsAreOnTopOfThoseOfDefaults, and no job's labels get into those of another.
func TestAJobsLabelsAreOnTopOfThoseOfDefaults(t *testing.T) {
	table := parsed(t, `
service: s
defaults: {labels: {a: "1", b: "2", c: "3"}}
jobs:
  - {name: own, schedule: "@daily", exec: {command: [x]}, labels: {b: "4", d: "5"}}
  - {name: none, schedule: "@daily", exec: {command: [x]}}
  - {name: full, schedule: "@daily", exec: {command: [x]}, labels: {d: "6", e: "7"}}
  - {name: empty, schedule: "@daily", exec: {command: [x]}, labels: {}}
`)
	for i, want := range []map[string]string{
		{"a": "1", "b": "4", "c": "3", "d": "5"}, {"a": "1", "b": "2", "c": "3"},
		{"a": "1", "b": "2", "c": "3", "d": "6", "e": "7"}, {"a": "1", "b": "2", "c": "3"},
	} {
		equal(t, table.Jobs[i].Name, table.Jobs[i].Labels, want)
	}
}
