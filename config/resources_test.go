package config

import (
	"fmt"
	"testing"
)

func TestQuantitiesAreThoseOfKubernetes(t *testing.T) {
	for text, want := range map[string]int64{
		"1048576": 1 << 20, `"1048576"`: 1 << 20, "1049k": 1049e3, "2M": 2e6, "3G": 3e9, "1024Ki": 1 << 20, "128Mi": 128 << 20, "2Gi": 2 << 30,
		"8589934591Gi": 8589934591 << 30,
		"1048575":      0, "128": 0, "0": 0, "-1": 0, "1.5Gi": 0, "128MB": 0, "128m": 0, "128mi": 0, "128 Mi": 0, "Mi": 0, `""`: 0,
		"8589934592Gi": 0, "99999999999999999999": 0, "0x100000": 0, "1e9": 0, "1_048_576": 0,
	} {
		table, err := parse("t", fmt.Appendf(nil, "service: s\njobs: [{name: a, schedule: \"@daily\", exec: {command: [a]}, resources: {memory: %s}}]\n", text), testEnv, testNow)
		switch {
		case (err == nil) != (want > 0):
			t.Errorf("%s: %v", text, err)
		case err == nil && table.Jobs[0].Resources.Memory != want:
			t.Errorf("%s is %d", text, table.Jobs[0].Resources.Memory)
		}
	}
}

func TestResourcesOfDefaultsAreForProcesses(t *testing.T) {
	table := parsed(t, `
service: s
defaults: {resources: {memory: 64Mi, nice: 5}}
jobs:
  - {name: a, schedule: "@daily", exec: {command: [a]}}
  - {name: b, schedule: "@daily", exec: {command: [a]}, resources: {nice: 7}}
  - {name: c, schedule: "@daily", http: {url: "http://127.0.0.1/x"}}
`)
	equal(t, "a", table.Jobs[0].Resources, Resources{64 << 20, 5})
	equal(t, "b", table.Jobs[1].Resources, Resources{64 << 20, 7})
	equal(t, "c", table.Jobs[2].Resources, Resources{})
	equal(t, "warnings", len(table.Warnings), 0)
}
