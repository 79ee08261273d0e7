package nemesis

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

func TestTicksAreMultiplesOfThePeriodMovedByTheOffset(t *testing.T) {
	s := newScene(job{name: "moved", every: 5 * time.Second, offset: 2 * time.Second})
	s.to = at(12)
	s.fire(2, 7)
	s.judged(t, "lost")
	s.fire(12)
	s.judged(t)
	for first, from := range map[float64]float64{2: 1, 7: 2.001} {
		if got := s.job.ticks(at(from), at(from+5)); len(got) != 1 || !got[0].Equal(at(first)) {
			t.Errorf("from %v got %v", from, got)
		}
	}
	s.fire(5)
	s.judged(t, "no tick of the job")
}

func TestAFireThatOnlyOneSideCountsIsMiscounted(t *testing.T) {
	first := rig.Request{Job: "j", Run: "a", Replica: "r1", Attempt: 1, Arrived: at(0), Ended: at(.1), Failed: true}
	second := first
	second.Attempt, second.Arrived, second.Ended = 2, at(.2), at(.3)
	other := rig.Request{Job: "j", Run: "b", Replica: "r2", Attempt: 1, Arrived: at(1), Ended: at(1.1)}
	for _, c := range []struct {
		counted map[fires]int
		want    []string
	}{
		{map[fires]int{{"r1", "j"}: 1, {"r2", "j"}: 1, {"r2", "k"}: 0}, nil},
		{map[fires]int{{"r1", "j"}: 1}, []string{"r2 counts 0 fires of j, the app got 1"}},
		{map[fires]int{{"r1", "j"}: 2, {"r2", "j"}: 1}, []string{"r1 counts 2 fires of j, the app got 1"}},
		{map[fires]int{{"r1", "j"}: 1, {"r2", "j"}: 1, {"r2", "k"}: 1}, []string{"r2 counts 1 fires of k, the app got 0"}},
	} {
		if got := miscounted(c.counted, []rig.Request{first, second, other}); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %q, want %q", c.counted, got, c.want)
		}
	}
}

func TestTheTableSaysWhenAJobIsDue(t *testing.T) {
	text := table(calmMix, "{}", "local", "x", "", 0, func(job) string { return "http: {url: u}" })
	for _, want := range []string{"clock: local", `schedule: "30 * * * * *"`, `schedule: "@every 7s"`, "timeZone: Asia/Kathmandu"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, text)
		}
	}
}
