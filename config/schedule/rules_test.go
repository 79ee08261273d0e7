package schedule

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func mustDay(t testing.TB, text string) Day {
	t.Helper()
	d, err := ParseDay(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return d
}

// mustDays reads "2026-12-25 2026-12-28..2027-01-02" and further days by a cron expression.
func mustDays(t testing.TB, name, spans, cron, zone string) *Days {
	t.Helper()
	var all []Span
	for _, text := range strings.Fields(spans) {
		from, to, ok := strings.Cut(text, "..")
		if !ok {
			to = from
		}
		all = append(all, Span{mustDay(t, from), mustDay(t, to)})
	}
	d, err := NewDays(name, all, cron, zone)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// days returns random days from the year 2025 on.
func (d dice) days(t testing.TB) *Days {
	var spans []string
	for range d.IntN(6) {
		from := mustDay(t, "2025-01-01") + Day(d.IntN(1200))
		spans = append(spans, from.String()+".."+(from+Day(d.IntN(1+d.IntN(20)))).String())
	}
	crons := []string{"", "", "* * * * SAT,SUN", "* * 1,15 * *", "* * L * *", "* * 10-20 3 *", "* * */2 * *", "* * 13 * FRI", "* * * 2-3 *"}
	zones := []string{"", "", "", "Pacific/Auckland", "America/New_York", "Pacific/Apia"}
	return mustDays(t, "c", strings.Join(spans, " "), crons[d.IntN(len(crons))], zones[d.IntN(len(zones))])
}

// ruled returns a random schedule with rules, or nil if it has no tick.
func (d dice) ruled(t testing.TB) *Schedule {
	pick := func(of ...string) string { return of[d.IntN(len(of))] }
	o := Options{TimeZone: pick(fuzzZones...), Rules: Rules{OnExcluded: Shift(pick("", "skip", "next", "next", "previous", "previous"))}}
	for range d.IntN(3) {
		o.Rules.Exclude = append(o.Rules.Exclude, d.days(t))
	}
	for range d.IntN(3) * d.IntN(2) {
		o.Rules.Include = append(o.Rules.Include, d.days(t))
	}
	switch d.IntN(4) {
	case 0:
		o.Rules.Every = Every{Weeks: 1 + d.IntN(4), From: mustDay(t, "2026-01-05") + Day(d.IntN(30))}
	case 1:
		o.Rules.Every = Every{Days: 1 + d.IntN(9), From: mustDay(t, "2026-01-05") + Day(d.IntN(30))}
	}
	var exprs []string
	for range 1 + d.IntN(3)*d.IntN(2) {
		exprs = append(exprs, pick("30 2 * * *", "0 9 * * MON-FRI", "0 0 * * *", "15,45 0-3 * * *", "0 */6 * * *", "59 23 * * *", "0 0 1 * *",
			"0 * * * SUN", "5 0 L * *", "0 12 24-31 12 *", "*/20 * * * SAT", "0 30 1 ? * 5L"))
	}
	s, err := ParseAll(exprs, o)
	if err != nil {
		return nil
	}
	return s
}

// FuzzRules: with random calendars, Next and Last find the same ticks, in order, and each comes due before the next
// one.
func FuzzRules(f *testing.F) {
	for seed := range uint64(25) {
		f.Add(seed, int64(1774746000+seed*864000))
	}
	f.Fuzz(func(t *testing.T, seed uint64, after int64) {
		d := dice{rand.New(rand.NewPCG(seed, 7))}
		s := d.ruled(t)
		if s == nil {
			return
		}
		o := Options{}
		at := time.Unix(after, 0)
		for range 40 {
			next := s.Next(at)
			if next.IsZero() {
				return
			}
			checkTick(t, s, o, at, next)
			if before := s.Last(next.Add(-1)); !before.IsZero() && !s.Due("job", before, 99*time.Hour).Before(next) {
				t.Fatalf("seed %d, %q: %s comes due after %s", seed, s, before, next)
			}
			at = next
			if d.IntN(5) == 0 { // and from between two ticks
				at = at.Add(time.Duration(d.IntN(100)) * time.Hour)
			}
		}
	})
}

// slow lists the ticks of a schedule with rules as they are described, instant by instant and day by day. It shares no
// code with ruled except the days of a calendar and the wall clock's first instant, which have tests of their own.
func slow(s *Schedule, from, to time.Time) map[time.Time]bool {
	out := map[time.Time]bool{}
	add := func(u int64) {
		if t := time.Unix(u, 0).UTC(); !t.Before(from) && t.Before(to) {
			out[t] = true
		}
	}
	for _, one := range parts(s.series) {
		r, ok := one.(*ruled)
		if !ok {
			for _, t := range forward(&Schedule{series: one, first: oldestTick, last: newestTick}, from, to) {
				add(t.Unix())
			}
			continue
		}
		allowed := func(u int64) bool {
			ok := len(r.rules.Include) == 0
			for _, d := range r.rules.Include {
				in, _, _ := d.at(u, r.zone)
				ok = ok || in
			}
			for _, d := range r.rules.Exclude {
				in, _, _ := d.at(u, r.zone)
				ok = ok && !in
			}
			return ok
		}
		kept := func(d int64) bool {
			e := r.rules.Every
			switch past := d - int64(e.From); {
			case e.Weeks > 0:
				return ((past%(7*int64(e.Weeks)))+7*int64(e.Weeks))%(7*int64(e.Weeks)) < 7
			case e.Days > 0:
				return past%int64(e.Days) == 0
			}
			return true
		}
		for u, ok := r.base.after(from.Unix() - 1); ok && u < to.Unix(); u, ok = r.base.after(u) {
			if allowed(u) && kept(r.zone.dayOf(u)) {
				add(u)
			}
		}
		if r.step == 0 {
			continue
		}
		for w, ok := r.written.from(from.Unix() - 370*day); ok && w < to.Unix()+370*day; w, ok = r.written.from(w + 1) {
			if u, _ := r.zone.first(w); allowed(u) || !kept(floor(w, day)) {
				continue
			}
			for n := int64(1); n <= mostSteps; n++ {
				if u, _ := r.zone.first(w + n*r.step*day); allowed(u) {
					add(u)
					break
				}
			}
		}
	}
	return out
}

func TestRulesKeepAndMoveTheTicksThatTheyDescribe(t *testing.T) {
	seeds, few := uint64(40), 0
	for seed := range seeds {
		s := dice{rand.New(rand.NewPCG(seed, 8))}.ruled(t)
		if s == nil {
			few++
			continue
		}
		from := utc(t, "2026-01-01 00:00").AddDate(0, 0, int(seed))
		to := from.AddDate(0, 4, 0)
		want := slow(s, from, to)
		what := fmt.Sprintf("seed %d, %q, rules %+v", seed, s, s.rules)
		for name, got := range map[string][]time.Time{"Next": forward(s, from, to), "Last": backward(s, from, to)} {
			if len(got) != len(want) {
				t.Errorf("%s: %s finds %d ticks, not %d", what, name, len(got), len(want))
			}
			for _, at := range got {
				if !want[at] {
					t.Errorf("%s: %s finds %s", what, name, show(at))
					break
				}
			}
		}
	}
	if few > int(seeds)/4 {
		t.Errorf("%d of %d schedules have no tick", few, seeds)
	}
}

func TestTheSmallestGapUnderRulesIsThatOfTheTicksThatAreLeft(t *testing.T) {
	weekend := []*Days{mustDays(t, "weekend", "", "* * * * SAT,SUN", "")}
	for _, row := range []struct {
		exprs []string
		rules Rules
		want  time.Duration
	}{
		{[]string{"0 9 * * *"}, Rules{Exclude: weekend}, 24 * time.Hour},
		{[]string{"0 9 * * MON"}, Rules{Every: Every{Weeks: 2}}, 14*24*time.Hour - time.Hour},
		{[]string{"0 9 * * MON"}, Rules{Exclude: weekend, OnExcluded: NextIncluded}, 7*24*time.Hour - time.Hour},
		{[]string{"0 9 * * MON", "0 17 * * FRI"}, Rules{}, 63 * time.Hour},
		{[]string{"0 9 * * MON", "0 0 9 ? * MON"}, Rules{}, 7*24*time.Hour - time.Hour},
		{[]string{"0 9 * * *", "0 30 9 1 1 ? 2022"}, Rules{}, 23 * time.Hour},
		{[]string{"0 9 * * *", "@at 2020-06-01T07:10:00Z"}, Rules{}, 10 * time.Minute},
		{[]string{"@at 2030-06-01T07:10:00Z", "@at 2030-06-02T07:10:00Z", "@at 2090-06-02T07:10:00Z"}, Rules{}, 24 * time.Hour},
		{[]string{"0 0 1 1 *", "@at 2024-01-01T00:00:00Z"}, Rules{}, time.Hour},            // 23:00Z is midnight in Berlin
		{[]string{"0 0 1 1 *", "@at 2030-01-01T00:00:00Z"}, Rules{}, 365 * 24 * time.Hour}, // more than five years after 2020
		{[]string{"45 2 * * *", "30 3 * * *"}, Rules{}, 15 * time.Minute},                  // 02:45 is 03:45 where the clocks skip it
		{[]string{"*/20 * * * SAT"}, Rules{Exclude: weekend, OnExcluded: NextIncluded}, 20 * time.Minute},
		{[]string{"@every 90m"}, Rules{Exclude: weekend}, 90 * time.Minute},
	} {
		s, err := ParseAll(row.exprs, Options{TimeZone: "Europe/Berlin", Rules: row.rules})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.MinGap(); got != row.want {
			t.Errorf("%s, rules %+v: %v, not %v", s, row.rules, got, row.want)
		}
	}
}

func TestEveryCountsFromTheStartOfItsWindow(t *testing.T) {
	start := utc(t, "2026-12-01 09:07")
	s := mustParse(t, "@every 90m", Options{Start: start})
	if got := s.Next(utc(t, "2026-12-01 10:00")); !got.Equal(start.Add(90*time.Minute)) || !s.Next(time.Time{}).Equal(start) || !s.Anchored() {
		t.Errorf("it ticks at %s, and first at %s", got, s.Next(time.Time{}))
	}
	if s := mustParse(t, "@every 90m", Options{Start: utc(t, "2026-12-01 00:00")}); s.Anchored() {
		t.Error("its ticks have moved, though the start is a multiple of the period")
	}
}

func TestWhatRulesCannotDoIsAnError(t *testing.T) {
	weekend := mustDays(t, "weekend", "", "* * * * SAT,SUN", "")
	all := mustDays(t, "all", "", "* * * * *", "")
	for _, row := range []struct {
		exprs []string
		rules Rules
		want  string
	}{
		{[]string{"@every 5m", "0 9 * * *"}, Rules{}, "@every must be the only schedule"},
		{[]string{"@every 5m"}, Rules{Exclude: []*Days{weekend}, OnExcluded: NextIncluded}, "cannot move to another day"},
		{[]string{"0 9 * * SAT"}, Rules{Exclude: []*Days{weekend}}, "leave no tick"},
		{[]string{"0 9 * * SAT"}, Rules{Exclude: []*Days{all}, OnExcluded: NextIncluded}, "leave no tick"},
		{[]string{"0 9 * * MON", "0 0 31 2 *"}, Rules{}, "no date and time ever match"},
		{nil, Rules{}, "it is empty"},
	} {
		if _, err := ParseAll(row.exprs, Options{Rules: row.rules}); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: %v, want it to say %s", row.exprs, err, row.want)
		}
	}
	for cron, want := range map[string]string{
		"0 * * * SAT": "minute and its hour must be *", "* 0 * * SAT": "minute and its hour must be *", "* * * * * SAT": "five fields", "@weekly": "five fields",
		"* * H * *": "an H depends on the name", "* * 30 2 *": "no day ever matches", "* * 32 * *": "out of range",
	} {
		if _, err := NewDays("c", nil, cron, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to say %s", cron, err, want)
		}
	}
}

func TestAnExcludedInstantSaysWhy(t *testing.T) {
	berlin := Options{TimeZone: "Europe/Berlin"}
	holidays, weekend := mustDays(t, "holidays", "2026-12-25..2026-12-26 2026-03-29", "", ""), mustDays(t, "weekend", "", "* * * * SAT,SUN", "")
	tokyo := mustDays(t, "tokyo", "2026-12-26", "", "Asia/Tokyo")
	for _, row := range []struct {
		expr, at string
		rules    Rules
		want     string
	}{
		{"0 9 * * *", "2026-12-25 08:00", Rules{Exclude: []*Days{weekend, holidays}}, "holidays 2026-12-25"},
		{"0 9 * * *", "2026-12-25 08:01", Rules{Exclude: []*Days{weekend, holidays}}, "no"},
		{"0 9 * * *", "2026-12-24 08:00", Rules{Exclude: []*Days{weekend, holidays}}, "no"},
		{"0 9 * * *", "2026-12-25 08:00", Rules{Exclude: []*Days{weekend, holidays}, OnExcluded: NextIncluded}, "holidays 2026-12-25 to 2026-12-28 08:00"},
		{"0 9 * * *", "2026-12-25 08:00", Rules{Exclude: []*Days{weekend, holidays}, OnExcluded: PreviousIncluded}, "holidays 2026-12-25 to 2026-12-24 08:00"},
		{"30 2 * * *", "2026-03-29 01:30", Rules{Exclude: []*Days{holidays}, OnExcluded: NextIncluded}, "holidays 2026-03-29 to 2026-03-30 00:30"},
		{"0 18 * * *", "2026-12-25 17:00", Rules{Exclude: []*Days{tokyo}}, "tokyo 2026-12-26"},
		{"0 9 * * *", "2026-12-25 08:00", Rules{Include: []*Days{weekend}}, " 2026-12-25"},
		{"0 9 * * MON", "2026-01-12 08:00", Rules{Every: Every{Weeks: 2, From: mustDay(t, "2026-01-05")}}, "every 2026-01-12"},
	} {
		o := berlin
		o.Rules = row.rules
		e, ok := mustParse(t, row.expr, o).Excluded(utc(t, row.at))
		got := e.Calendar + " " + e.Day.String()
		switch {
		case !ok:
			got = "no"
		case e.Every:
			got = "every" + got
		}
		if !e.Moved.IsZero() {
			got += " to " + e.Moved.Format("2006-01-02 15:04")
		}
		if got != row.want {
			t.Errorf("%s at %s: %q, not %q", row.expr, row.at, got, row.want)
		}
	}
}
