package schedule

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// The values of H are for ever: a change would move the jobs of all users, and in a rolling update the replicas would
// disagree. Do not edit these values.
func TestHNeverMovesAJob(t *testing.T) {
	for _, row := range []struct{ job, expr, want string }{
		{"send-invoices", "H H * * *", "01-01 19:30:00, 01-02 19:30:00, 01-03 19:30:00"},
		{"send-invoices", "0 H H * * *", "01-01 19:30:00, 01-02 19:30:00, 01-03 19:30:00"},
		{"send-invoices", "H H(0-7) * * *", "01-01 06:30:00, 01-02 06:30:00, 01-03 06:30:00"},
		{"send-invoices", "H/15 * * * *", "01-01 00:07:00, 01-01 00:22:00, 01-01 00:37:00"},
		{"send-invoices", "H(10-40)/7 3 * * *", "01-01 03:13:00, 01-01 03:20:00, 01-01 03:27:00"},
		{"send-invoices", "H H H * *", "01-06 19:30:00, 02-06 19:30:00, 03-06 19:30:00"},
		{"send-invoices", "H H H H H", "01-03 19:30:00, 01-06 19:30:00, 01-10 19:30:00"},
		{"send-invoices", "H H H * * *", "01-01 19:30:47, 01-02 19:30:47, 01-03 19:30:47"},
		{"billing.cleanup", "H H * * *", "01-01 07:44:00, 01-02 07:44:00, 01-03 07:44:00"},
		{"a", "H H * * *", "01-01 11:01:00, 01-02 11:01:00, 01-03 11:01:00"},
		{"b", "H H * * *", "01-01 08:23:00, 01-02 08:23:00, 01-03 08:23:00"},
		{"", "H H * * *", "01-01 21:27:00, 01-02 21:27:00, 01-03 21:27:00"},
	} {
		s := mustParse(t, row.expr, Options{Job: row.job})
		var got []string
		at := utc(t, "2026-01-01 00:00").Add(-1)
		for range 3 {
			at = s.Next(at)
			got = append(got, at.Format("01-02 15:04:05"))
		}
		if text := strings.Join(got, ", "); text != row.want {
			t.Errorf("{%q, %q, %q},", row.job, row.expr, text)
		}
	}
}

func TestJitterNeverChanges(t *testing.T) {
	tick := utc(t, "2026-12-01 09:00")
	for _, row := range []struct {
		job  string
		tick time.Time
		max  time.Duration
		want time.Duration
	}{
		{"send-invoices", tick, 30 * time.Second, 12985 * time.Millisecond},
		{"send-invoices", tick.Add(time.Second), 30 * time.Second, 28492 * time.Millisecond},
		{"billing.cleanup", tick, 30 * time.Second, 27420 * time.Millisecond},
		{"send-invoices", tick, time.Hour, 1558258 * time.Millisecond},
		{"send-invoices", tick, math.MaxInt64, 3992333930046 * time.Millisecond},
		{"", tick, time.Hour, 266984 * time.Millisecond},
		{"send-invoices", time.Time{}, time.Hour, 3394264 * time.Millisecond},
	} {
		if got := Jitter(row.job, row.tick, row.max); got != row.want {
			t.Errorf("Jitter(%q, %s, %v) is %v, not %v", row.job, show(row.tick), row.max, got, row.want)
		}
	}
}

func TestJitterStaysBelowItsLimit(t *testing.T) {
	tick := utc(t, "2026-12-01 09:00")
	for _, limit := range []time.Duration{-1, 0, 1, time.Millisecond, 1500 * time.Microsecond, 2 * time.Millisecond,
		time.Second, 24 * time.Hour, math.MaxInt64} {
		for i := range 200 {
			got := Jitter("job", tick.Add(time.Duration(i)*time.Second), limit)
			if got < 0 || got > 0 && got >= limit || got%time.Millisecond != 0 {
				t.Errorf("limit %v: %v", limit, got)
			}
		}
	}
}

func TestJitterDependsOnTheInstantAlone(t *testing.T) {
	tick := utc(t, "2026-12-01 09:00")
	if a, b := Jitter("a", tick, time.Hour), Jitter("a", tick.In(mustZone(t, "Asia/Tokyo")), time.Hour); a != b {
		t.Errorf("%v in UTC, %v in Tokyo", a, b)
	}
}

// evenly fails if the counts differ more from their mean than chance lets them.
func evenly(t *testing.T, what string, counts []int) {
	t.Helper()
	total := 0
	for _, n := range counts {
		total += n
	}
	mean := float64(total) / float64(len(counts))
	var chi float64
	for _, n := range counts {
		chi += (float64(n) - mean) * (float64(n) - mean) / mean
	}
	// Five standard deviations of chi squared; the values are fixed, so it passes always or never.
	free := float64(len(counts) - 1)
	if limit := free + 5*math.Sqrt(2*free); chi > limit {
		t.Errorf("%s: uneven, chi squared %.0f of at most %.0f: %v", what, chi, limit, counts)
	}
}

func TestJitterAndHSpreadEvenly(t *testing.T) {
	tick := utc(t, "2026-12-01 09:00")
	ticks, jobs, minutes, pairs := make([]int, 20), make([]int, 20), make([]int, 60), make([]int, 36)
	for i := range 6000 {
		name := fmt.Sprintf("job-%d", i)
		ticks[Jitter("job", tick.Add(time.Duration(i)*time.Minute), 20*time.Second)/time.Second]++
		jobs[Jitter(name, tick, 20*time.Second)/time.Second]++
		at := mustParse(t, "H H * * *", Options{Job: name}).Next(tick)
		minutes[at.Minute()]++
		pairs[at.Minute()%6*6+at.Hour()%6]++ // minute and hour do not go together
	}
	evenly(t, "jitter over ticks", ticks)
	evenly(t, "jitter over jobs", jobs)
	evenly(t, "H in minutes", minutes)
	evenly(t, "H in minutes and hours", pairs)
}

func TestHStaysWhereItMayBe(t *testing.T) {
	from, to := utc(t, "2026-12-01 00:00"), utc(t, "2027-03-01 00:00")
	for i := range 300 {
		o := Options{Job: fmt.Sprintf("job-%d", i)}
		for _, at := range forward(mustParse(t, "H H(2-5) H * *", o), from, to) {
			if at.Day() > 28 || at.Hour() < 2 || at.Hour() > 5 {
				t.Errorf("%s: %s", o.Job, show(at))
			}
		}
		if n := len(forward(mustParse(t, "0 0 H * *", o), from, to)); n != 3 {
			t.Errorf("%s: %d ticks in three months", o.Job, n)
		}
		if n := len(forward(mustParse(t, "0 H/6 * * *", o), from, from.Add(24*time.Hour))); n != 4 {
			t.Errorf("%s: %d ticks of H/6 in a day", o.Job, n)
		}
		if n := len(forward(mustParse(t, "H/1 0 * * *", o), from, from.Add(24*time.Hour))); n != 60 {
			t.Errorf("%s: %d ticks of H/1 in an hour", o.Job, n)
		}
		for _, at := range forward(mustParse(t, "0 0 * * H(FRI-SUN)", o), from, from.Add(14*24*time.Hour)) {
			if w := at.Weekday(); w > time.Sunday && w < time.Friday {
				t.Errorf("%s: %s", o.Job, show(at))
			}
		}
		if mustParse(t, "h h(2-5) * * *", o).Next(from) != mustParse(t, "0 H H(2-5) * * *", o).Next(from) {
			t.Errorf("%s: H depends on how it is written", o.Job)
		}
	}
}

func TestByNameTellsWhetherTheTicksDependOnTheName(t *testing.T) {
	for expr, want := range map[string]bool{
		"H 3 * * *": true, "0 H(0-7) * * *": true, "h/15 * * * *": true, "0 9 * * MON,H": true, "0\tH\t*\t*\t*": true, "5,H/20 * * * *": true,
		"0 9 * * THU": false, "0 9 * MAR *": false, "@hourly": false, "@every 1h": false, "@at 2030-01-01T00:00:00Z": false,
	} {
		s := mustParse(t, expr, Options{Job: "some"})
		if got := s.ByName(); got != want {
			t.Errorf("%q: %v, want %v", expr, got, want)
		}
		differs := false
		for i := range 20 {
			other := mustParse(t, expr, Options{Job: fmt.Sprint("other", i)})
			at := utc(t, "2026-01-01 00:00")
			for range 50 {
				if !s.Next(at).Equal(other.Next(at)) {
					differs = true
				}
				at = s.Next(at)
			}
		}
		if differs != want {
			t.Errorf("%q: jobs of other names have other ticks: %v, want %v", expr, differs, want)
		}
	}
}
