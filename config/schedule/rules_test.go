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

// FuzzRules: with random calendars, Next and Last find the same ticks, in order, and none is nearer than MinGap.
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
		gap := s.MinGap()
		o := Options{}
		at := time.Unix(after, 0)
		for range 40 {
			next := s.Next(at)
			if next.IsZero() {
				return
			}
			checkTick(t, s, o, at, next)
			if before := s.Last(next.Add(-1)); !before.IsZero() && before.Year() >= 2020 && next.Sub(before) < gap {
				t.Fatalf("seed %d, %q: %s and %s are nearer than %v", seed, s, before, next, gap)
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
	seeds, few := uint64(80), 0
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
