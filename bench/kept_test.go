package main

import (
	"slices"
	"strings"
	"testing"
)

func TestEachAdapterStandsBeforeItsPlainLock(t *testing.T) {
	for pair := range slices.Chunk(kept, 2) {
		if len(pair) != 2 || !pair[0].asks || pair[1].asks || pair[1].key != pair[0].key+"-setnx" {
			t.Errorf("got %v", pair)
		}
	}
	for _, c := range contenders {
		if c.asks {
			t.Errorf("%s asks", c.name)
		}
	}
}

func TestKeptSchedulersHaveATableOnceTheyAreMeasured(t *testing.T) {
	p := published{Parts: []part{{Name: "faults",
		Faults: []outcome{{Fault: "calm", Contender: "solotick", Ticks: 64}}}}}
	before, err := p.page()
	if err != nil {
		t.Fatal(err)
	}
	p.Parts[0].Faults = append(p.Parts[0].Faults, outcome{Fault: "calm", Contender: "nodecron", Ticks: 64, Doubled: 3})
	after, err := p.page()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| fault | ticks | node-cron + Solotick |", "| none | 64 | 3 doubled |",
		"| node-cron + Solotick | the adapter ", "- node-cron + Solotick, none: 3 doubled"} {
		if strings.Contains(before, want) || !strings.Contains(after, want) {
			t.Errorf("%q is on the page before: %t, after: %t", want, strings.Contains(before, want),
				strings.Contains(after, want))
		}
	}
}
