package main

import (
	"testing"
	"time"

	"github.com/solotick/solotick/internal/proof/rig"
)

func TestTheFirstRequestOfATickCountsAndTheSecondIsADouble(t *testing.T) {
	begin := time.Date(2026, 12, 1, 12, 0, 0, 5e8, time.UTC)
	at := func(ms int) rig.Request {
		return rig.Request{Job: "job-0", Arrived: begin.Add(time.Duration(ms-500) * time.Millisecond)}
	}
	// Ticks 1, 2 and 3 are within; 2 is fired twice, 3 never, and 4 comes after the end.
	d := settle([]rig.Request{at(700), at(990), at(2010), at(2400), at(4000)}, begin, begin.Add(3*time.Second), 3)
	if d.doubles != 1 || d.losses != 1 || len(d.took) != 2 {
		t.Errorf("got %+v", d)
	}
	if got := quantile(d.took, 1); got != 10 {
		t.Errorf("the longest delay is %g ms, not 10", got)
	}
	if got := quantile(d.took, 0); got != -10 {
		t.Errorf("the shortest delay is %g ms, not -10", got)
	}
}

func TestTheMedianOfThreeRoundsIsTheMiddleOne(t *testing.T) {
	if got := median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("got %g", got)
	}
}
