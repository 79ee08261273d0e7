package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/results"
)

func TestThePageIsThatOfTheRecords(t *testing.T) {
	want, err := page("../results")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/proof.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/proof.md is not made of the records in proof/results: go -C proof run ./report")
	}
}

// The page names each record, and no other one.
func TestThePageHasARowForEachRecord(t *testing.T) {
	files, err := os.ReadDir("../results")
	if err != nil {
		t.Fatal(err)
	}
	text, err := page("../results")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.Count(text, "results/"+f.Name()+")") != 1 {
			t.Errorf("the page has no row for %s: add it to proof.md.tmpl", f.Name())
		}
	}
}

func TestARowSaysWhenAndWhatTheRunWas(t *testing.T) {
	run := &results.Run{Proof: "Proof", Began: time.Date(2026, 2, 3, 23, 0, 0, 0, time.UTC), Seconds: 61, Commit: "abc+", Again: "make it", Failed: true,
		Figures: []results.Figure{{Count: 1234567, Of: "seeds"}, {Count: 123, Of: "faults"}}}
	want := "[2026-02-03](../proof/results/Proof.json), abc+, 1m1s: `make it` | **failed**, 1,234,567 seeds, 123 faults |"
	if got := last(run); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestAProofWithoutARecordIsNotRunYet(t *testing.T) {
	text, err := page(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if rows := strings.Count(text, "| not run yet |"); rows < 5 || strings.Contains(text, ".json") {
		t.Errorf("%d proofs are not run yet:\n%s", rows, text)
	}
}

func TestTheRecordOfStoresNamesThem(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(results.Variable, dir)
	began := time.Now().Add(-time.Minute)
	if err := ofStores(strings.NewReader("| Redis 7.0 | 7.0.15 |\n| Valkey 8.1 | 8.1.1 |\n"), began); err != nil {
		t.Fatal(err)
	}
	run, err := results.Read(dir, "stores")
	if err != nil || run.Figures[0].Count != 2 || run.Seconds < 60 {
		t.Errorf("%+v, %v", run, err)
	}
}
