package nemesis

import (
	"strings"
	"testing"
	"time"
)

func TestFiguresEndWithTheSumAndTheSlowest(t *testing.T) {
	got := strings.Split(strings.TrimRight(figures([]row{
		{"always", "a", &tally{strikes: 1, ticks: 20, fired: 11, overlaps: 4, outages: 10, excused: 3, late: 11, drained: 12, works: 13, stops: 14, stood: 15, reports: 16, given: 17, held: 18, unasked: 19, died: 20, interrupted: 2,
			doubles: 5, lost: 6, limits: 7, takeovers: 8,
			handovers: 9, slowestTakeover: 3 * time.Second, slowestHandover: time.Millisecond}},
		{"always", "b", &tally{strikes: 1, ticks: 1, fired: 1, overlaps: 1, outages: 1, excused: 1, late: 1, drained: 1, works: 1, stops: 1, stood: 1, reports: 1, given: 1, held: 1, unasked: 1, died: 1, interrupted: 1,
			doubles: 1, lost: 1, limits: 1, takeovers: 1,
			handovers: 1, slowestTakeover: 2 * time.Second, slowestHandover: 2 * time.Millisecond}},
	}), "\n"), "\n")
	want := strings.Fields("all 2 21 12 5 11 4 3 6 7 8 9 3s 10 2ms 12 13 14 15 16 17 18 19 20 21")
	if last := strings.Fields(got[len(got)-1]); strings.Join(last, " ") != strings.Join(want, " ") {
		t.Errorf("the last line is %q, want %q", last, want)
	}
}
