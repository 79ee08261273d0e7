package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/rig"
)

// tries is how often the gate measures at most. A change that costs more fails each time; a busy machine does not.
const tries = 3

// It takes less than a minute unless something is worse. Ratios are compared, so a slow machine does not matter.
func TestNoRatioIsWorseThanTheCommittedOne(t *testing.T) {
	redistest.Start(t) // for what it says and does where there is no redis-server
	b := &bench{ctx: t.Context()}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if err := b.prepare(false); err != nil {
		t.Fatal(err)
	}
	p, err := load(filepath.Join(b.root, "docs", "benchmarks.json"))
	if err != nil {
		t.Fatal(err)
	}
	committed := p.part("gate")
	if len(committed.Rows) == 0 {
		t.Fatal("docs/benchmarks.json has no figures to compare with: make benchmarks")
	}
	for try := 1; ; try++ {
		now, err := b.gate()
		if err != nil {
			t.Fatal(err)
		}
		found := worse(now, committed)
		for _, w := range found {
			t.Logf("try %d: %s", try, w)
		}
		if len(found) == 0 {
			return
		}
		if try == tries {
			t.Fatal("Solotick is dearer than what is committed in docs/benchmarks.json")
		}
	}
}

func TestARatioThatIsWorseByMoreThanItsNoiseIsToldApart(t *testing.T) {
	with := func(ratio *figure) part { return part{Rows: []row{{What: "CPU", Ours: one(1), Ratio: ratio}}} }
	committed := with(&figure{Value: 1, Low: .9, High: 1.05})
	for _, c := range []struct {
		now   *figure
		worse bool
	}{{one(1.14), false}, {one(.5), false}, {one(1.17), true}} {
		if got := worse(with(c.now), committed); (len(got) > 0) != c.worse {
			t.Errorf("%s over %s: got %q", c.now, committed.Rows[0].Ratio, got)
		}
	}
	if got := worse(part{}, committed); len(got) != 1 {
		t.Errorf("a row that was not measured: got %q", got)
	}
	if got := worse(with(one(1.14)), with(one(1))); len(got) != 1 {
		t.Errorf("beyond the least noise: got %q", got)
	}
}

func TestThePageIsTheOneThatItsFiguresMake(t *testing.T) {
	root, err := rig.Root()
	if err != nil {
		t.Fatal(err)
	}
	p, err := load(filepath.Join(root, "docs", "benchmarks.json"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := p.page()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"benchmarks.md": want, "benchmarks.svg": delayChart(p.part("delay")),
		"benchmarks-crowd.svg": crowdChart(p.part("crowd").Curve)} {
		got, err := os.ReadFile(filepath.Join(root, "docs", name))
		if err != nil || string(got) != want {
			t.Errorf("docs/%s is not made of docs/benchmarks.json (%v): cd bench && go run . -render", name, err)
		}
	}
}
