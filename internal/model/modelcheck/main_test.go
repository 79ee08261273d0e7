package main

import (
	"strings"
	"testing"

	"github.com/solotick/solotick/internal/model"
	"github.com/solotick/solotick/internal/testing/results"
)

func only(t *testing.T, scale, name string) []model.Scenario {
	t.Helper()
	worlds, err := choose(scale, name)
	if err != nil {
		t.Fatal(err)
	}
	return worlds
}

func TestExpectedResultsExitWithZero(t *testing.T) {
	var out strings.Builder
	worlds := append(only(t, "small", "all/amo/R1"), only(t, "pairs", "known limit")...)
	if exit := checkAll(&out, worlds, 100_000, results.Begin("modelcheck", "")); exit != 0 || !strings.Contains(out.String(), "2 worlds, ") ||
		!strings.Contains(out.String(), "1 pass in full, 0 up to the limit, 1 known limits found, 0 unexpected") {
		t.Errorf("exit code %d\n%s", exit, out.String())
	}
}

func TestUnexpectedResultsExitWithOne(t *testing.T) {
	worlds := only(t, "pairs", "known limit")
	worlds[0].IsLimit = false
	var out strings.Builder
	if exit := checkAll(&out, worlds, 100_000, results.Begin("modelcheck", "modelcheck -scale pairs")); exit != 1 ||
		!strings.Contains(out.String(), "UNEXPECTED") || !strings.Contains(out.String(), "STARTS") ||
		!strings.Contains(out.String(), "again: modelcheck -scale pairs -only '"+worlds[0].Name+"'\n") {
		t.Errorf("exit code %d\n%s", exit, out.String())
	}
}

func TestSearchThatIsCutOffIsNotOneThatPasses(t *testing.T) {
	var out strings.Builder
	if exit := checkAll(&out, only(t, "small", "all/amo/R1"), 100, results.Begin("modelcheck", "")); exit != 0 || !strings.Contains(out.String(), "0 pass in full, 1 up to the limit") {
		t.Errorf("exit code %d\n%s", exit, out.String())
	}
}

func TestLeavingAMendOutShowsItsCounterexample(t *testing.T) {
	var out strings.Builder
	worlds := only(t, "small", "all/amo/R1")
	if exit := leaveOut(&out, model.GapBehind, worlds, 100_000); exit != 0 || !strings.Contains(out.String(), "=> settled tick has no fate") {
		t.Errorf("exit code %d\n%s", exit, out.String())
	}
	out.Reset()
	if exit := leaveOut(&out, model.Born, worlds, 100_000); exit != 1 || !strings.Contains(out.String(), "no counterexample") {
		t.Errorf("exit code %d\n%s", exit, out.String())
	}
}

func TestWrongChoicesAreErrors(t *testing.T) {
	for _, x := range [][2]string{{"huge", ""}, {"small", "no such world"}} {
		if worlds, err := choose(x[0], x[1]); err == nil {
			t.Errorf("-scale %s -only %q chose %d worlds", x[0], x[1], len(worlds))
		}
	}
}
