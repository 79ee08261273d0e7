package schedule

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestSchedulesInWords(t *testing.T) {
	for _, row := range wordRows {
		e, err := Explain([]string{row.expr}, Options{})
		if err != nil || e.Words != row.words {
			t.Errorf("%q: %q, not %q; %v", row.expr, e.Words, row.words, err)
		}
	}
}

var wordRows = []struct{ expr, words string }{
	// The schedules of docs/table.md, and the values of its tables in a field of theirs.
	{"0 9 * * MON-FRI", "at 09:00, from Monday to Friday"},
	{"* 2 * * *", "every minute from 02:00 to 02:59, every day"},
	{"* 0 2 * * *", "every second from 02:00:00 to 02:00:59, every day"},
	{"0 9 1-7 * MON", "at 09:00, on days 1 to 7 of the month, and every Monday"},
	{"H 3 * * *", "at minute H of hour 3, every day"},
	{"0 0 13 * FRI", "at 00:00, on day 13 of the month, and every Friday"},
	{"0 9 * * MON#1", "at 09:00, on the first Monday of the month"},
	{"* * * * *", "every minute"},
	{"0 9 1,15 * *", "at 09:00, on days 1 and 15 of the month"},
	{"0 9-17 * * *", "every hour from 09:00 to 17:00, every day"},
	{"*/5 * * * *", "every 5 minutes"},
	{"10/5 * * * *", "at minutes 10 to 55 in steps of 5 of every hour"},
	{"10-30/5 * * * *", "at minutes 10 to 30 in steps of 5 of every hour"},
	{"0 9 ? * ?", "at 09:00, every day"},
	{"0 9 L * *", "at 09:00, on the last day of the month"},
	{"0 9 * * L", "at 09:00, every Sunday"},
	{"0 9 L-3 * *", "at 09:00, 3 days before the last day of the month"},
	{"0 9 15W * *", "at 09:00, on the weekday (Monday to Friday) nearest to day 15 of the month"},
	{"0 9 LW * *", "at 09:00, on the last weekday (Monday to Friday) of the month"},
	{"0 9 * * 5L", "at 09:00, on the last Friday of the month"},
	{"0 9 * * FRIL", "at 09:00, on the last Friday of the month"},
	{"0 9 * * 5#3", "at 09:00, on the third Friday of the month"},
	{"0 9 * * FRI#3", "at 09:00, on the third Friday of the month"},
	{"0 H(0-7) * * *", "at minute 0 of hour H(0-7), every day"},
	{"H/15 * * * *", "at minute H/15 of every hour"},
	{"0/45 * * * *", "at minutes 0 and 45 of every hour"},
	{"0 0 9 ? * 2-6", "at 09:00, from Tuesday to Saturday"},
	{"0 0 9 ? * L", "at 09:00, every Sunday"},
	{"@every 45m", "every 45 minutes, counted from 1970-01-01T00:00:00Z"},
	{"@hourly", "every hour"},
	{"@daily", "at 00:00, every day"},
	{"@midnight", "at 00:00, every day"},
	{"@weekly", "at 00:00, every Sunday"},
	{"@monthly", "at 00:00, on day 1 of the month"},
	{"@yearly", "at 00:00, on 1 January"},
	{"@annually", "at 00:00, on 1 January"},
	{"@every 90s", "every 90 seconds, counted from 1970-01-01T00:00:00Z"},
	{"@every 10m", "every 10 minutes, counted from 1970-01-01T00:00:00Z"},
	{"@at 2026-12-24T18:00:00+01:00", "once, at 2026-12-24T17:00:00Z"},
	{"@lease", "whenever an app asks for it while no other has it"},

	{"0 9 * * 1#1", "at 09:00, on the first Monday of the month"},
	{"0 0 9,12,18 * * *", "at 09:00, 12:00 and 18:00, every day"},
	{"30 0 9 * * *", "at 09:00:30, every day"},
	{"*/45 * * * *", "at minutes 0 and 45 of every hour"},
	{"15 * * * *", "at minute 15 of every hour"},
	{"2-59/5 * * * *", "every 5 minutes from 00:02 on"},
	{"*/10 9-17 * * *", "every 10 minutes from 09:00 to 17:50, every day"},
	{"0,10 9-17 * * *", "at minutes 0 and 10 of hours 9 to 17, every day"},
	{"*/20 5 * * * *", "at seconds 0, 20 and 40 of minute 5 of every hour"},
	{"30 * 9,10 * * *", "every minute from 09:00:30 to 10:59:30, every day"},
	{"0 */2 * * *", "every 2 hours"},
	{"* * * 7 *", "every minute, in July"},
	{"0 3 * * *", "at 03:00, every day"},
	{"0 9 * * 0,2,4", "at 09:00, every Tuesday, Thursday and Sunday"},
	{"0 9 * * FRI-SUN", "at 09:00, from Friday to Sunday"},
	{"0 9 * * SAT-SUN", "at 09:00, every Saturday and Sunday"},
	{"0 9 L-1 * *", "at 09:00, 1 day before the last day of the month"},
	{"0 0 29 2 *", "at 00:00, on 29 February"},
	{"0 0 1-31/2 * 0-6", "at 00:00, every day"},
	{"0 0 1 JUN-AUG *", "at 00:00, on day 1 of the month, from June to August"},
	{"0 0 1 1,7 ?", "at 00:00, on day 1 of the month, in January and July"},
	{"0 0 0 1 1 ? 2030", "at 00:00, on 1 January, in 2030"},
	{"0 0 0 1 1 ? 2027-2039/4", "at 00:00, on 1 January, in the years 2027 to 2039 in steps of 4"},
	{"0 0 0 * * ? 2027-2029", "at 00:00, every day, in the years 2027 to 2029"},
	{"* * * * SAT,SUN", "every minute, every Saturday and Sunday"},
	{"0 0 H H H", "at 00:00, on day H of the month, and on weekday H, in month H"},
	{"H H 9 * * *", "at second H of minute H of hour 9, every day"},
	{"H(0-0) 5 9 * * *", "at second H(0-0) of minute 5 of hour 9, every day"},
	{"5,H/20 * * * *", "at minute 5,H/20 of every hour"},
	{"0 H/1 * * *", "at minute 0 of hour H/1, every day"},
	{"0 0 1 H *", "at 00:00, on day 1 of the month, in month H"},

	// Where one phrase ends and another begins.
	{"0 0/4 * * *", "at 00:00, 04:00, 08:00, 12:00, 16:00 and 20:00, every day"},
	{"0 1-6 * * *", "at 01:00, 02:00, 03:00, 04:00, 05:00 and 06:00, every day"},
	{"0 1-7 * * *", "every hour from 01:00 to 07:00, every day"},
	{"30 15 * * * *", "every hour from 00:15:30 on"},
	{"10,11,30 * * * *", "at minutes 10, 11 and 30 of every hour"},
	{"0 9 1,11,21 * *", "at 09:00, on days 1, 11 and 21 of the month"},
	{"0 9 1,11,21,31 * *", "at 09:00, on days 1 to 31 in steps of 10 of the month"},
	{"0 9 * 1-2 *", "at 09:00, every day, in January and February"},
	{"0 9 * * MON-TUE", "at 09:00, every Monday and Tuesday"},
	{"0 0 1-31 * FRI", "at 00:00, every day"},
	{"0 0 1 1 MON", "at 00:00, on day 1 of the month, and every Monday, in January"},
	{"0 0 0 1 1 ? 1970-2199", "at 00:00, on 1 January"},
}

func TestEachScheduleOfTheTablePageIsInWords(t *testing.T) {
	page, err := os.ReadFile("../../docs/table.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, m := range regexp.MustCompile("[`\"]([^`\"\n]+)[`\"]").FindAllStringSubmatch(string(page), -1) {
		if _, err := Parse(m[1], Options{}); err != nil {
			continue // another text, or an example of an error
		}
		found++
		if !slices.ContainsFunc(wordRows, func(r struct{ expr, words string }) bool { return r.expr == m[1] }) {
			t.Errorf("docs/table.md shows %q", m[1])
		}
	}
	if found < 15 {
		t.Errorf("only %d schedules were found", found)
	}
}

func TestHIsExplainedByTheName(t *testing.T) {
	for job, want := range map[string]Explanation{
		"":        {Words: "at minute H of hour 3, every day", Name: "each H is a value that the job's name decides, for ever"},
		"tidy-up": {Words: "at 03:43, every day", Name: `each H is a value that the name "tidy-up" decides, for ever`},
	} {
		e, err := Explain([]string{"H 3 * * *"}, Options{Job: job})
		if err != nil || e.Words != want.Words || e.Name != want.Name {
			t.Errorf("%q: %+v, %v", job, e, err)
		}
	}
	if e, err := Explain([]string{"0 3 * MAR THU"}, Options{}); err != nil || e.Name != "" {
		t.Errorf("without an H: %+v, %v", e, err)
	}
}

func TestClocksAndWindowInWords(t *testing.T) {
	start, end := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		expr, zone     string
		start, end     time.Time
		fixed          bool
		clocks, window string
	}{
		{"30 2 * * *", "Europe/Berlin", time.Time{}, time.Time{}, true, "fixed: if the clocks skip its time", ""},
		{"30 0-23 * * *", "Europe/Berlin", time.Time{}, time.Time{}, false, "runs through the hours: ", ""},
		{"30 0/5 * * *", "Europe/Berlin", time.Time{}, time.Time{}, true, "fixed: ", ""},
		{"30 1/3 * * *", "Europe/Berlin", time.Time{}, time.Time{}, false, "runs through the hours: ", ""},
		{"30 3/4 * * *", "Europe/Berlin", time.Time{}, time.Time{}, false, "runs through the hours: ", ""},
		{"30 4/4 * * *", "Europe/Berlin", time.Time{}, time.Time{}, true, "fixed: ", ""},
		{"30 * * * *", "Europe/Berlin", start, time.Time{}, false, "runs through the hours: ", "from 2026-12-01T00:00:00Z on"},
		{"30 */2 * * *", "Europe/Berlin", time.Time{}, end, false, "runs through the hours: ", "until before 2027-12-01T00:00:00Z"},
		{"30 2 * * *", "", start, end, true, "the clocks of this zone never change", "from 2026-12-01T00:00:00Z until before 2027-12-01T00:00:00Z"},
		{"@every 2h", "Europe/Berlin", time.Time{}, time.Time{}, false, "a change of the clocks does not move its ticks", ""},
		{"@at 2027-03-28T02:30:00Z", "Europe/Berlin", time.Time{}, time.Time{}, false, "a change of the clocks does not move", ""},
	} {
		e, err := Explain([]string{row.expr}, Options{TimeZone: row.zone, Start: row.start, End: row.end})
		if err != nil || e.Fixed != row.fixed || !strings.HasPrefix(e.Clocks, row.clocks) || e.Window != row.window {
			t.Errorf("%q: %+v, %v", row.expr, e, err)
		}
	}
	if _, err := Explain([]string{"61 * * * *"}, Options{}); err == nil {
		t.Error("an error of Parse is lost")
	}
}

// Next does what the words say: a reader who knows only the words finds the same ticks.
func TestTheWordsAgreeWithTheTicks(t *testing.T) {
	simple, ticks := 0, 0
	for seed := range uint64(1500) {
		d := dice{rand.New(rand.NewPCG(seed, 7))}
		written := d.expression(wall{})
		s, err := Parse(written.text, Options{})
		if err != nil {
			continue
		}
		e, err := Explain([]string{written.text}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		says, ok := readWords(e.Words)
		if !ok {
			t.Fatalf("seed %d: %q: nobody can read %q", seed, written.text, e.Words)
		}
		simple++
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for range 12 {
			if at = s.Next(at.Add(time.Duration(d.Int64N(int64(20 * 24 * time.Hour))))); at.IsZero() {
				break
			}
			ticks++
			for _, off := range []time.Duration{0, time.Second, time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
				31 * 24 * time.Hour, time.Duration(d.IntN(1440)) * time.Minute} {
				look := at.Add(off)
				if tick := s.Last(look).Equal(look); says(wallOf(look)) != tick {
					t.Fatalf("seed %d: %q: at %s there is a tick: %v; the words are %q", seed, written.text, show(look), tick, e.Words)
				}
			}
		}
	}
	if simple < 1000 || ticks < 10_000 {
		t.Errorf("only %d schedules with %d ticks were looked at", simple, ticks)
	}
}

// The reader below shares no code with the writer: it has a pattern for each phrase, and asks of a wall clock what a
// person would.

type says = func(wall) bool

var (
	clockTime = `\d\d:\d\d(?::\d\d)?`
	monthDay  = `(?:on days? [^:]*? of the month|\d+ days? before the last day of the month|on the (?:last|weekday)[^,]*? of the month)`
	someDay   = `(?:` + monthDay + `|on the \w+ \w+day of the month|every \w+day(?:, \w+day)*(?: and \w+day)?|from \w+day to \w+day)`
	sentence  = regexp.MustCompile(`^(.+?)(?:, (every day|on \d+ [A-Z]\w+|` + someDay + `(?:, and ` + someDay + `)*))?` +
		`(?:, ((?:in|from) [A-Z]\w+(?:(?:,| and| to) [A-Z]\w+)*))?$`)
	timesOf  = regexp.MustCompile(`^at (` + clockTime + `(?:(?:,| and) ` + clockTime + `)*)$`)
	steady   = regexp.MustCompile(`^every (?:(\d+) )?(second|minute|hour)s?(?: from (` + clockTime + `)(?: to (` + clockTime + `)| on))?$`)
	fieldsOf = regexp.MustCompile(`^at (?:(every second|seconds? [^a-z]*(?:(?:to|and|in steps of)[^a-z]*)*) of )?` +
		`(every minute|minutes? .*?) of (every hour|hours? .*?)$`)
)

// readWords reads the words of a schedule without years.
func readWords(words string) (says, bool) {
	m := sentence.FindStringSubmatch(words)
	if m == nil {
		return nil, false
	}
	clock, ok := readClock(m[1])
	if !ok {
		return nil, false
	}
	days, months := readDays(m[2]), readMonths(m[3])
	return func(w wall) bool { return clock(w) && days(w) && months(w) }, true
}

func secondsIn(text string) int {
	parts := strings.Split(text+":00:00", ":")
	n := 0
	for _, p := range parts[:3] {
		v, _ := strconv.Atoi(p)
		n = n*60 + v
	}
	return n
}

func readClock(text string) (says, bool) {
	now := func(w wall) int { return w.hour*3600 + w.minute*60 + w.second }
	if m := timesOf.FindStringSubmatch(text); m != nil {
		var times []int
		for _, one := range regexp.MustCompile(clockTime).FindAllString(m[1], -1) {
			times = append(times, secondsIn(one))
		}
		return func(w wall) bool { return slices.Contains(times, now(w)) }, true
	}
	if m := steady.FindStringSubmatch(text); m != nil {
		step := map[string]int{"second": 1, "minute": 60, "hour": 3600}[m[2]]
		if m[1] != "" {
			n, _ := strconv.Atoi(m[1])
			step *= n
		}
		first, last := 0, 24*3600-1
		if m[3] != "" {
			first = secondsIn(m[3])
		}
		if m[4] != "" {
			last = secondsIn(m[4])
		}
		return func(w wall) bool { return now(w) >= first && now(w) <= last && (now(w)-first)%step == 0 }, true
	}
	m := fieldsOf.FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	second := func(n int) bool { return n == 0 }
	if m[1] != "" {
		second = readNumbers(m[1])
	}
	minute, hour := readNumbers(m[2]), readNumbers(m[3])
	return func(w wall) bool { return second(w.second) && minute(w.minute) && hour(w.hour) }, true
}

var numberRange = regexp.MustCompile(`(\d+)(?: to (\d+))?(?: in steps of (\d+))?`)

// readNumbers reads "every minute", "hours 9 to 17 and 20" or "days 1 to 31 in steps of 2".
func readNumbers(text string) func(int) bool {
	if strings.HasPrefix(text, "every ") {
		return func(int) bool { return true }
	}
	values := map[int]bool{}
	for _, m := range numberRange.FindAllStringSubmatch(text, -1) {
		from, _ := strconv.Atoi(m[1])
		to, step := from, 1
		if m[2] != "" {
			to, _ = strconv.Atoi(m[2])
		}
		if m[3] != "" {
			step, _ = strconv.Atoi(m[3])
		}
		for n := from; n <= to; n += step {
			values[n] = true
		}
	}
	return func(n int) bool { return values[n] }
}

func readMonths(text string) says {
	var named []time.Month
	for m := time.January; m <= time.December; m++ {
		if strings.Contains(text, m.String()) {
			named = append(named, m)
		}
	}
	return func(w wall) bool {
		switch {
		case text == "":
			return true
		case strings.HasPrefix(text, "from "):
			return named[0] <= w.month && w.month <= named[1]
		}
		return slices.Contains(named, w.month)
	}
}

func readDays(text string) says {
	if text == "" || text == "every day" {
		return func(wall) bool { return true }
	}
	var day int
	var month string
	if n, _ := fmt.Sscanf(text, "on %d %s", &day, &month); n == 2 {
		return func(w wall) bool { return w.day == day && w.month.String() == month }
	}
	var any []says
	for _, item := range strings.Split(text, ", and ") {
		any = append(any, readDay(item))
	}
	return func(w wall) bool { return slices.ContainsFunc(any, func(s says) bool { return s(w) }) }
}

func readDay(item string) says {
	var n int
	switch {
	case strings.Contains(item, " before the last day"):
		fmt.Sscanf(item, "%d", &n)
		return func(w wall) bool { return w.day == w.length()-n }
	case strings.HasPrefix(item, "on day"):
		has := readNumbers(item)
		return func(w wall) bool { return has(w.day) }
	case item == "on the last day of the month":
		return func(w wall) bool { return w.day == w.length() }
	case strings.HasPrefix(item, "on the last weekday ("):
		return func(w wall) bool { return w.day == nearestWorkday(w, w.length()) }
	case strings.HasPrefix(item, "on the weekday ("):
		fmt.Sscanf(item[strings.Index(item, "to day "):], "to day %d", &n)
		return func(w wall) bool { return n <= w.length() && w.day == nearestWorkday(w, n) }
	case strings.HasPrefix(item, "on the "):
		words := strings.Fields(item)
		nth := slices.Index([]string{"first", "second", "third", "fourth", "fifth"}, words[2])
		return func(w wall) bool {
			if words[2] == "last" {
				return w.weekday().String() == words[3] && w.day+7 > w.length()
			}
			return w.weekday().String() == words[3] && (w.day-1)/7 == nth
		}
	case strings.HasPrefix(item, "from "):
		words := strings.Fields(item)
		first, last := weekdayOf(words[1]), weekdayOf(words[3])
		return func(w wall) bool { return (w.weekday()-first+7)%7 <= (last-first+7)%7 }
	}
	return func(w wall) bool { return strings.Contains(item, w.weekday().String()) }
}

func weekdayOf(name string) time.Weekday {
	d := time.Sunday
	for d < time.Saturday && d.String() != name {
		d++
	}
	return d
}
