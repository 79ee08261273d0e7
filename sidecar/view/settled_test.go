package view

import (
	"testing"
	"time"

	"github.com/solotick/solotick/sidecar/service"
)

func TestAHandoverIsShownUnderTheRunThatFollowed(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	newestFirst := []service.Entry{
		{Job: "a", Tick: at(3), Outcome: service.HandedOver, Replica: "r1", Detail: "refused"}, // on its way
		{Job: "a", Tick: at(2), Outcome: "succeeded", Replica: "r3"},
		{Job: "b", Tick: at(2), Outcome: service.HandedOver, Replica: "r1"}, // of another job
		{Job: "a", Tick: at(2), Outcome: service.HandedOver, Replica: "r2", Detail: "refused"},
		{Job: "a", Tick: at(2), Outcome: service.HandedOver, Replica: "r1", Detail: "no such file"},
		{Job: "a", Tick: at(1), Outcome: "not_started", Failed: true, Replica: "r1", Detail: "refused"},
		{Job: "a", Tick: at(1), Outcome: service.HandedOver, Replica: "r1", Detail: "refused"},
		{Job: "a", Tick: at(0), Outcome: "succeeded", Replica: "r2"}, // taken over
		{Job: "a", Tick: at(0), Outcome: "interrupted", Failed: true, Replica: "r1"},
	}
	want := []string{
		"a handed_over ", "a succeeded handed over 2 times before, by r1, r2: refused", "b handed_over ",
		"a not_started handed over once before, by r1", "a succeeded ", "a interrupted ",
	}
	for most := range len(want) + 2 {
		rows := Fold(newestFirst, most)
		if len(rows) != min(most, len(want)) {
			t.Fatalf("%d rows of at most %d: %+v", len(rows), most, rows)
		}
		for i, r := range rows {
			if got := r.Job + " " + r.Outcome + " " + r.HandedWords(); got != want[i] {
				t.Errorf("row %d is %q, want %q", i, got, want[i])
			}
		}
	}
}
