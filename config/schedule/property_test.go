package schedule

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

//go:embed testdata/zones.txt
var zoneList string

// zoneNames are all names of the time zone database, 2026.
func zoneNames() []string { return strings.Fields(zoneList) }

// written is an expression together with its meaning, both made from the same dice and not one from the other.
type written struct {
	text    string
	match   func(wall) bool
	fixed   bool
	seconds bool
}

// dice writes random expressions.
type dice struct{ *rand.Rand }

// set writes a field of plain numbers.
func (d dice) set(low, high int, names []string) (text string, has func(int) bool, star bool) {
	word := func(n int) string {
		if names != nil && n-low < len(names) && d.IntN(2) == 0 {
			return names[n-low]
		}
		return fmt.Sprint(n)
	}
	var parts []string
	members := map[int]bool{}
	for range 1 + d.IntN(3)*d.IntN(2) {
		from, to, step, base := low, high, 1, "*"
		switch d.IntN(5) {
		case 0, 1:
			star = true
		case 2:
			from = low + d.IntN(high-low+1)
			to, base = from, word(from)
		case 3:
			from = low + d.IntN(high-low+1)
			to = from + d.IntN(high-from+1)
			base = word(from) + "-" + word(to)
		case 4:
			step = 1 + d.IntN(high-low+1)
			if d.IntN(2) == 0 {
				from = low + d.IntN(high-low+1)
				base = word(from)
			} else if step == 1 {
				star = true
			}
			base += fmt.Sprintf("/%d", step)
		}
		for n := from; n <= to; n += step {
			members[n] = true
		}
		parts = append(parts, base)
	}
	return strings.Join(parts, ","), func(n int) bool { return members[n] }, star
}

func (d dice) dayOfMonth() (text string, has func(wall) bool, star bool) {
	n := 1 + d.IntN(31)
	switch d.IntN(12) {
	case 0:
		return "L", func(w wall) bool { return w.day == w.length() }, false
	case 1:
		n = min(n, 30)
		return fmt.Sprintf("L-%d", n), func(w wall) bool { return w.day == w.length()-n }, false
	case 2:
		return "LW", func(w wall) bool { return w.day == nearestWorkday(w, w.length()) }, false
	case 3:
		return fmt.Sprintf("%dW", n), func(w wall) bool { return n <= w.length() && w.day == nearestWorkday(w, n) }, false
	case 4, 5, 6, 7:
		return "*", func(wall) bool { return true }, true
	}
	text, set, star := d.set(1, 31, nil)
	return text, func(w wall) bool { return set(w.day) }, star
}

func (d dice) dayOfWeek() (text string, has func(wall) bool, star bool) {
	weekday := time.Weekday(d.IntN(7))
	name := []string{fmt.Sprint(int(weekday)), strings.ToLower(weekday.String()[:3])}[d.IntN(2)]
	switch d.IntN(8) {
	case 0:
		return name + "L", func(w wall) bool { return w.weekday() == weekday && w.day+7 > w.length() }, false
	case 1:
		n := 1 + d.IntN(5)
		return fmt.Sprintf("%s#%d", name, n), func(w wall) bool { return w.weekday() == weekday && (w.day+6)/7 == n }, false
	case 2, 3, 4, 5:
		return "?", func(wall) bool { return true }, true
	}
	text, set, star := d.set(0, 6, []string{"SUN", "Mon", "tue", "WED", "thu", "FRI", "sat"})
	return text, func(w wall) bool { return set(int(w.weekday())) }, star
}

// expression writes one; near is a wall for which it may be made, so that it has no other day than that.
func (d dice) expression(near wall) written {
	second, secondText := func(n int) bool { return n == 0 }, "0"
	seconds := d.IntN(8) == 0
	if seconds {
		secondText, second, _ = d.set(0, 59, nil)
	}
	minuteText, minute, _ := d.set(0, 59, nil)
	hourText, hour, _ := d.set(0, 23, nil)
	domText, dom, domStar := d.dayOfMonth()
	monthText, month, _ := "*", func(int) bool { return true }, true
	if d.IntN(6) == 0 {
		names := strings.Fields("jan FEB mar apr may jun jul aug sep oct nov DEC")
		monthText, month, _ = d.set(1, 12, names)
	}
	dowText, dow, dowStar := d.dayOfWeek()
	yearText, year := "", func(int) bool { return true }
	if near.year >= firstYear && d.IntN(3) == 0 {
		domText, dom, domStar = fmt.Sprint(near.day), func(w wall) bool { return w.day == near.day }, false
		monthText, month = fmt.Sprint(int(near.month)), func(n int) bool { return n == int(near.month) }
		dowText, dow, dowStar = "?", func(wall) bool { return true }, true
		yearText, year = fmt.Sprint(" ", near.year), func(n int) bool { return n == near.year }
	}
	text := strings.Join([]string{minuteText, hourText, domText, monthText, dowText}, " ")
	if seconds || yearText != "" || d.IntN(4) == 0 {
		text = secondText + " " + text + yearText
	}
	return written{
		text: text,
		match: func(w wall) bool {
			if !second(w.second) || !minute(w.minute) || !hour(w.hour) || !month(int(w.month)) || !year(w.year) {
				return false
			}
			if domStar || dowStar {
				return dom(w) && dow(w)
			}
			return dom(w) || dow(w)
		},
		fixed:   !runsThrough(hour),
		seconds: seconds,
	}
}

// runsThrough reports whether all hours of the day are followed by the next one as soon, at most four hours later.
func runsThrough(hour func(int) bool) bool {
	gaps, last := map[int]bool{}, -1
	for h := range 48 {
		if !hour(h % 24) {
			continue
		}
		if last >= 0 {
			gaps[h-last] = true
		}
		last = h
	}
	return len(gaps) == 1 && (gaps[1] || gaps[2] || gaps[3] || gaps[4])
}

// changeOf returns a moment near which the zone's offset changes, or any moment if it never does.
func (d dice) changeOf(zone *time.Location) time.Time {
	from := time.Date(1880+d.IntN(200), 1, 1, 0, 0, 0, 0, time.UTC)
	_, before := from.In(zone).Zone()
	for t := from; t.Year() < from.Year()+8; t = t.Add(6 * time.Hour) {
		if _, after := t.In(zone).Zone(); before != after {
			return t.Add(-6 * time.Hour)
		}
	}
	return from
}

func TestNextAndLastAgreeWithTheReferenceInAllTheWorld(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: it computes for long")
	}
	zones := zoneNames()
	// These have the odd changes: half hours, midnights, lost days, changes of two hours and of seconds.
	odd := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia",
		"Antarctica/Troll", "Africa/Monrovia", "America/St_Johns", "Africa/Casablanca", "America/Juneau", "Pacific/Kwajalein"}
	changes := map[string]time.Time{
		"Pacific/Apia":      time.Date(2011, 12, 30, 6, 0, 0, 0, time.UTC),
		"Africa/Monrovia":   time.Date(1972, 1, 7, 0, 0, 0, 0, time.UTC),
		"America/Juneau":    time.Date(1867, 10, 19, 0, 0, 0, 0, time.UTC),
		"Pacific/Kwajalein": time.Date(1993, 8, 21, 6, 0, 0, 0, time.UTC),
	}
	ticks := 0
	for seed := range uint64(80) {
		d := dice{rand.New(rand.NewPCG(seed, 1))}
		name := zones[d.IntN(len(zones))]
		if seed%2 == 0 {
			name = odd[d.IntN(len(odd))]
		}
		zone := mustZone(t, name)
		near, known := changes[name]
		if !known || seed%3 == 0 {
			near = d.changeOf(zone)
		}
		e := d.expression(wallOf(near.In(zone)))
		s, err := Parse(e.text, Options{TimeZone: name})
		if err != nil {
			if strings.Contains(err.Error(), "never fire") {
				continue // such as day 31 of a short month; errors have their own tests
			}
			t.Fatalf("seed %d: %q: %v", seed, e.text, err)
		}
		step, span := time.Minute, 3*24*time.Hour
		_, offset := near.Add(-2 * span).In(zone).Zone()
		_, later := near.Add(2 * span).In(zone).Zone()
		if e.seconds || offset%60 != 0 || later%60 != 0 {
			step, span = time.Second, 5*time.Hour
		}
		from, to := near.Add(-span/2), near.Add(span)
		want := reference(e.match, e.fixed, zone, from, to, step)
		ticks += len(want)
		what := fmt.Sprintf("seed %d: %q in %s near %s", seed, e.text, name, show(near))
		sameTicks(t, what+": Next", forward(s, from, to), want)
		sameTicks(t, what+": Last", backward(s, from, to), want)
		anywhere(t, what, d, s, want, from, to)
	}
	if ticks < 12_000 {
		t.Errorf("only %d ticks were looked at", ticks)
	}
}

// anywhere asks between ticks, and at fractions of seconds.
func anywhere(t *testing.T, what string, d dice, s *Schedule, ticks []time.Time, from, to time.Time) {
	t.Helper()
	for range 20 {
		at := from.Add(time.Duration(d.Int64N(int64(to.Sub(from)))))
		i, exact := slices.BinarySearchFunc(ticks, at, time.Time.Compare)
		if last := i - 1; last >= 0 && !exact && !s.Last(at).Equal(ticks[last]) {
			t.Errorf("%s: Last(%s) is %s", what, at, show(s.Last(at)))
		}
		if i < len(ticks) && !exact && !s.Next(at).Equal(ticks[i]) {
			t.Errorf("%s: Next(%s) is %s", what, at, show(s.Next(at)))
		}
	}
}

// The search for ticks rests on these facts; should the world change, it has to be thought over.
func TestTheWorldsTimeZonesAreAsTheSearchTakesThem(t *testing.T) {
	for _, name := range zoneNames() {
		zone := mustZone(t, name)
		lastChange := int64(distantPast)
		for u := int64(oldestTick); u < newestTick; {
			s := stretchAt(zone, u)
			if s.start > u || s.end <= u || s.offset != offsetAt(time.Unix(u, 0).In(zone)) {
				t.Fatalf("%s: at %d the stretch is %+v", name, u, s)
			}
			if s.offset <= -day || s.offset >= day {
				t.Errorf("%s: the offset is %d s", name, s.offset)
			}
			if s.start != distantPast {
				if s.start-lastChange <= 2*day {
					t.Errorf("%s: two changes within two days of %s", name, time.Unix(s.start, 0).UTC())
				}
				if change := s.offset - s.before; change == 0 || change < -day || change > day {
					t.Errorf("%s: a change of %d s at %s", name, change, time.Unix(s.start, 0).UTC())
				}
				lastChange = s.start
			}
			if got := stretchAt(zone, min(s.end-1, newestTick)); got != s {
				t.Errorf("%s: from its end the stretch %+v is %+v", name, s, got)
			}
			u = s.end
		}
	}
}
