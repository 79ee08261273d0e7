package main

import (
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

func TestTheFirstRequestOfATickCountsAndTheSecondIsADouble(t *testing.T) {
	begin := time.Date(2026, 12, 1, 12, 0, 0, 5e8, time.UTC)
	request := func(tick, arrived int) rig.Request { // in ms after 12:00:00
		at := begin.Truncate(time.Second)
		return rig.Request{Job: "job-0", Tick: at.Add(time.Duration(tick) * time.Millisecond), Arrived: at.Add(time.Duration(arrived) * time.Millisecond)}
	}
	// Ticks 1, 2 and 3 are within; 2 is fired twice, 3 never, and 4 comes after the end.
	d := settle([]rig.Request{request(0, 700), request(1000, 990), request(2000, 2010), request(2000, 2400), request(4000, 4000)},
		begin, begin.Add(3*time.Second), 3)
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
