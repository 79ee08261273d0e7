package main

import (
	"strings"
	"testing"
)

func TestARowWithoutItsFigureMissesItsTarget(t *testing.T) {
	for _, c := range []struct {
		r      row
		missed bool
	}{
		{row{Ours: one(3), Targets: []target{oursAtMost(3)}}, false},
		{row{Ours: one(3.1), Targets: []target{oursAtMost(3)}}, true},
		{row{Ours: one(3), Targets: []target{oursAtLeast(4)}}, true},
		{row{Ours: one(3), Ratio: one(.5), Targets: []target{ratioAtMost(.4), oursAtMost(9)}}, true},
		{row{Ours: one(3), Targets: []target{ratioAtMost(.4)}}, true},
		{row{NotRun: "why", Targets: []target{oursAtMost(3)}}, true},
		{row{Ours: one(3)}, false},
	} {
		if got := c.r.missed(); got != c.missed {
			t.Errorf("%+v: got %t", c.r, got)
		}
	}
}

func TestADeviationIsToldWithTheNoiseOfBothRuns(t *testing.T) {
	was := row{Ours: one(9), Ratio: &figure{Value: .4, Low: .38, High: .42}}
	for _, c := range []struct {
		now    *figure
		text   string
		beyond bool
	}{
		{&figure{Value: .44, Low: .4, High: .46}, "+10 %, noise 15 %", false},
		{&figure{Value: .2, Low: .2, High: .2}, "-50 %, noise 5 %", true},
	} {
		text, beyond := row{Ours: one(1), Ratio: c.now}.deviation(was)
		if text != c.text || beyond != c.beyond {
			t.Errorf("%s: got %q, %t", c.now, text, beyond)
		}
	}
}

func TestWhatIsWorseIsListed(t *testing.T) {
	p := published{Parts: []part{
		{Name: "delay", Rows: []row{
			{What: "a draw", Ours: one(2), Theirs: one(2), Ratio: &figure{Value: 1, Low: .9, High: 1.1}},
			{What: "dearer", Ours: one(3), Theirs: one(2), Ratio: one(1.5)},
			{What: "fewer per second", Ours: one(2), Theirs: one(3), Ratio: one(.67), More: true},
			{What: "cheaper", Ours: one(2), Theirs: one(3), Ratio: one(.67)},
		}},
		{Name: "faults", Faults: []outcome{
			{Fault: "crash", Contender: "solotick", Ticks: 9, Late: 2},
			{Fault: "crash", Contender: "redsync", Ticks: 9, Lost: 2},
			{Fault: "empty", Contender: "solotick", Ticks: 9},
			{Fault: "empty", Contender: "redsync", Ticks: 9},
			{Fault: "crash", Contender: "nodecron", Ticks: 9, Lost: 3, Late: 1},
			{Fault: "crash", Contender: "nodecron-setnx", Ticks: 9, Lost: 1, Late: 1},
			{Fault: "crash", Contender: "apscheduler-setnx", Ticks: 9},
		}},
	}}
	got := strings.Join(p.worse(), "\n")
	want := "dearer: 3 against 2\nfewer per second: 2 against 3\nRedis killed: 2 late (gocron + redsync 0)\n" +
		"node-cron + Solotick, Redis killed: 3 lost (node-cron + SET NX EX 1)"
	if got != want {
		t.Errorf("got\n%s\nand not\n%s", got, want)
	}
}
