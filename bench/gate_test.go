package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solotick/solotick/internal/testing/rig"
)

func withRatio(ratio *figure) part {
	return part{Rows: []row{{What: "CPU", Ours: one(1), Ratio: ratio}}}
}

func TestARatioThatIsWorseByMoreThanItsNoiseIsToldApart(t *testing.T) {
	committed := withRatio(&figure{Value: 1, Low: .9, High: 1.05})
	for _, c := range []struct {
		now, committed part
		worse          bool
		line           string
	}{
		{withRatio(one(1.14)), committed, false, "CPU 1.14 1 +14 %, noise 10 % 1.15 fine"},
		{withRatio(&figure{Value: .5, Low: .4, High: .6}), committed, false, "CPU 0.50 0.40–0.60 1 -50 %, noise 20 % 1.15 fine"},
		{withRatio(one(1.17)), committed, true, "CPU 1.17 1 +17 %, noise 10 % 1.15 WORSE"},
		{withRatio(one(1.14)), withRatio(one(1)), true, "CPU 1.14 1 +14 %, noise 0 % 1.05 WORSE"}, // beyond the least noise
		{part{}, committed, true, "CPU 1 1.15 NOT MEASURED"},
	} {
		var out strings.Builder
		worse, err := compare(c.now, c.committed, &out)
		if err != nil || worse != c.worse {
			t.Errorf("%s: got %t, %v", c.line, worse, err)
		}
		_, line, _ := strings.Cut(out.String(), "\n")
		if got := strings.Join(strings.Fields(line), " "); got != c.line {
			t.Errorf("got  %s\nwant %s", got, c.line)
		}
	}
}

func TestOneTryThatIsFineIsEnough(t *testing.T) {
	broken := errors.New("no Redis")
	for _, c := range []struct {
		ratios []float64 // by try
		fails  error
		tries  int
		worse  bool
	}{
		{ratios: []float64{1}, tries: 1},
		{ratios: []float64{2, 2, 1}, tries: 3},
		{ratios: []float64{2, 2, 2, 1}, tries: 3, worse: true},
		{ratios: []float64{2}, fails: broken, tries: 2},
	} {
		tries := 0
		measure := func() (part, error) {
			tries++
			if tries > len(c.ratios) {
				return part{}, c.fails
			}
			return withRatio(one(c.ratios[tries-1])), nil
		}
		worse, err := compareOften(measure, withRatio(one(1)), io.Discard)
		if worse != c.worse || tries != c.tries || !errors.Is(err, c.fails) {
			t.Errorf("%v: got %t, %v after %d tries", c.ratios, worse, err, tries)
		}
	}
	if _, err := compareOften(nil, part{}, io.Discard); err == nil {
		t.Error("there is nothing to compare with, and no error")
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
