package nemesis

import (
	"fmt"
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

// said is a test that fails nobody, and keeps what would.
type said struct {
	testing.TB
	wrong []string
}

func (s *said) Errorf(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

func TestOnAMachineThatDoesNotKeepTimeOnlyWhatIsUnsafeFails(t *testing.T) {
	began := time.Now().Add(-time.Minute)
	for still, want := range map[time.Duration]int{0: 3, 700 * time.Millisecond: 2} {
		said := &said{TB: t}
		r := &record{began: began, stills: []span{{from: began, to: began.Add(pace + still)}}}
		w := &world{t: said, jobs: []job{brief}, record: r}
		w.explain(trial{record: r}, &verdict{byClass: map[string]*tally{}, findings: []finding{
			{what: "its end was not recorded", job: brief.name, tick: at(1)},
			{what: "double", job: brief.name, tick: at(2)},
			{what: "two apps at work", job: brief.name, tick: at(3)},
		}})
		if len(said.wrong) != want || w.unjudged != 3-want {
			t.Errorf("still for %s: %d are not judged, and it fails with %q", still, w.unjudged, said.wrong)
		}
	}
}
