package schedule

import (
	"testing"
	"time"
)

func lastDays(w wall, n int) bool { return w.day > w.length()-n }

// nearestWorkday is the day from Monday to Friday within the month that is nearest to d, the earlier one of two.
func nearestWorkday(w wall, d int) int {
	for distance := range 3 {
		for _, day := range []int{d - distance, d + distance} {
			if day < 1 || day > w.length() {
				continue
			}
			if wd := (wall{year: w.year, month: w.month, day: day}).weekday(); wd != time.Saturday && wd != time.Sunday {
				return day
			}
		}
	}
	return 0
}

// The expected ticks are written down by hand from a calendar; the reference then has to find the same.
func TestTheDialectMeansWhatItsTableSays(t *testing.T) {
	at := func(h, m int) func(wall) bool {
		return func(w wall) bool { return w.hour == h && w.minute == m && w.second == 0 }
	}
	nine := at(9, 0)
	midnight := at(0, 0)
	for _, row := range []struct {
		expr  string
		from  string
		want  []string
		match func(wall) bool
		step  time.Duration
	}{
		{"*/5 * * * * ?", "2026-12-31 23:59:48",
			[]string{"2026-12-31 23:59:50", "2026-12-31 23:59:55", "2027-01-01 00:00:00", "2027-01-01 00:00:05"},
			func(w wall) bool { return w.second%5 == 0 }, time.Second},
		{"0 0 23 L * ?", "2028-01-01 00:00",
			[]string{"2028-01-31 23:00", "2028-02-29 23:00", "2028-03-31 23:00", "2028-04-30 23:00"},
			func(w wall) bool { return at(23, 0)(w) && lastDays(w, 1) }, time.Minute},
		{"0 0 1 ? * L", "2026-12-01 00:00", []string{"2026-12-06 01:00", "2026-12-13 01:00", "2026-12-20 01:00"},
			func(w wall) bool { return at(1, 0)(w) && w.weekday() == time.Sunday }, time.Minute},
		{"0 26,29,33 * * * ?", "2026-12-01 10:27", []string{"2026-12-01 10:29", "2026-12-01 10:33", "2026-12-01 11:26"},
			func(w wall) bool { return w.second == 0 && (w.minute == 26 || w.minute == 29 || w.minute == 33) }, time.Second},
		{"0 0 12 ? * FRI#3", "2026-12-01 00:00",
			[]string{"2026-12-18 12:00", "2027-01-15 12:00", "2027-02-19 12:00", "2027-03-19 12:00"},
			func(w wall) bool {
				return at(12, 0)(w) && w.weekday() == time.Friday && w.day >= 15 && w.day <= 21
			}, time.Minute},
		{"0 12 * * 5#3", "2026-12-01 00:00", []string{"2026-12-18 12:00", "2027-01-15 12:00"},
			func(w wall) bool {
				return at(12, 0)(w) && w.weekday() == time.Friday && w.day >= 15 && w.day <= 21
			}, time.Minute},
		{"0 0 18 ? * 5L", "2026-12-01 00:00", []string{"2026-12-25 18:00", "2027-01-29 18:00", "2027-02-26 18:00"},
			func(w wall) bool { return at(18, 0)(w) && w.weekday() == time.Friday && lastDays(w, 7) }, time.Minute},
		{"0 18 * * friL", "2026-12-01 00:00", []string{"2026-12-25 18:00", "2027-01-29 18:00"},
			func(w wall) bool { return at(18, 0)(w) && w.weekday() == time.Friday && lastDays(w, 7) }, time.Minute},
		{"0 0 * * 7L", "2026-12-01 00:00", []string{"2026-12-27 00:00", "2027-01-31 00:00"},
			func(w wall) bool { return midnight(w) && w.weekday() == time.Sunday && lastDays(w, 7) }, time.Minute},
		{"0 0 * * 7#2", "2026-12-01 00:00", []string{"2026-12-13 00:00", "2027-01-10 00:00"},
			func(w wall) bool { return midnight(w) && w.weekday() == time.Sunday && w.day > 7 && w.day <= 14 }, time.Minute},
		// 15 August 2026 is a Saturday, 15 November a Sunday.
		{"0 0 9 15W * ?", "2026-08-01 00:00",
			[]string{"2026-08-14 09:00", "2026-09-15 09:00", "2026-10-15 09:00", "2026-11-16 09:00"},
			func(w wall) bool { return nine(w) && w.day == nearestWorkday(w, 15) }, time.Minute},
		// 1 August 2026 is a Saturday, and 31 May a Sunday: neither leaves its month.
		{"0 9 1W * *", "2026-08-01 00:00", []string{"2026-08-03 09:00", "2026-09-01 09:00"},
			func(w wall) bool { return nine(w) && w.day == nearestWorkday(w, 1) }, time.Minute},
		{"0 9 31W * *", "2026-05-01 00:00", []string{"2026-05-29 09:00", "2026-07-31 09:00"},
			func(w wall) bool { return nine(w) && w.length() == 31 && w.day == nearestWorkday(w, 31) }, time.Minute},
		{"0 0 9 LW * ?", "2026-01-01 00:00",
			[]string{"2026-01-30 09:00", "2026-02-27 09:00", "2026-03-31 09:00", "2026-04-30 09:00", "2026-05-29 09:00"},
			func(w wall) bool { return nine(w) && w.day == nearestWorkday(w, w.length()) }, time.Minute},
		{"0 0 L-3 * *", "2028-01-01 00:00",
			[]string{"2028-01-28 00:00", "2028-02-26 00:00", "2028-03-28 00:00", "2028-04-27 00:00"},
			func(w wall) bool { return midnight(w) && w.day == w.length()-3 }, time.Minute},
		{"0 0 1,15,L * *", "2027-02-01 00:01", []string{"2027-02-15 00:00", "2027-02-28 00:00", "2027-03-01 00:00"},
			func(w wall) bool { return midnight(w) && (w.day == 1 || w.day == 15 || lastDays(w, 1)) }, time.Minute},
		{"0 0 0 1 1 ? 2030", "2026-01-01 00:00", []string{"2030-01-01 00:00"},
			func(w wall) bool { return midnight(w) && w.year == 2030 && w.month == 1 && w.day == 1 }, time.Hour},
		{"0 0 0 1 1 ? 2027-2031/2", "2026-01-01 00:00", []string{"2027-01-01 00:00", "2029-01-01 00:00", "2031-01-01 00:00"},
			func(w wall) bool {
				return midnight(w) && w.year%2 == 1 && w.year >= 2027 && w.year <= 2031 && w.month == 1 && w.day == 1
			}, time.Hour},
		{"0 0 29 2 *", "2026-01-01 00:00", []string{"2028-02-29 00:00", "2032-02-29 00:00", "2036-02-29 00:00"},
			func(w wall) bool { return midnight(w) && w.month == 2 && w.day == 29 }, time.Hour},
		{"0 0 ? 2 1#5", "2026-01-01 00:00", []string{"2044-02-29 00:00"},
			func(w wall) bool { return midnight(w) && w.month == 2 && w.day == 29 && w.weekday() == time.Monday }, time.Hour},
		{"0 0 13 * FRI", "2026-12-01 00:00",
			[]string{"2026-12-04 00:00", "2026-12-11 00:00", "2026-12-13 00:00", "2026-12-18 00:00"},
			func(w wall) bool { return midnight(w) && (w.day == 13 || w.weekday() == time.Friday) }, time.Minute},
		{"0 9 * * MON-FRI", "2026-12-03 10:00", []string{"2026-12-04 09:00", "2026-12-07 09:00", "2026-12-08 09:00"},
			func(w wall) bool { return nine(w) && w.weekday() >= 1 && w.weekday() <= 5 }, time.Minute},
		{"0 9 * * FRI-SUN", "2026-12-03 10:00",
			[]string{"2026-12-04 09:00", "2026-12-05 09:00", "2026-12-06 09:00", "2026-12-11 09:00"},
			func(w wall) bool { return nine(w) && (w.weekday() == 0 || w.weekday() >= 5) }, time.Minute},
		{"0 9 * * 0,7", "2026-12-03 10:00", []string{"2026-12-06 09:00", "2026-12-13 09:00"},
			func(w wall) bool { return nine(w) && w.weekday() == 0 }, time.Minute},
		// A step in day of week ends with Saturday: Monday, Wednesday, Friday, and no Sunday as 7.
		{"0 9 * * 1/2", "2026-12-04 10:00",
			[]string{"2026-12-07 09:00", "2026-12-09 09:00", "2026-12-11 09:00", "2026-12-14 09:00"},
			func(w wall) bool { return nine(w) && w.weekday()%2 == 1 }, time.Minute},
		{"0 9 * * THU", "2026-12-04 10:00", []string{"2026-12-10 09:00"},
			func(w wall) bool { return nine(w) && w.weekday() == time.Thursday }, time.Minute},
		{"0 9 1 mar-May *", "2026-12-04 10:00", []string{"2027-03-01 09:00", "2027-04-01 09:00", "2027-05-01 09:00"},
			func(w wall) bool { return nine(w) && w.day == 1 && w.month >= 3 && w.month <= 5 }, time.Minute},
		{"5/20 8-10/2 * * *", "2026-12-04 08:30",
			[]string{"2026-12-04 08:45", "2026-12-04 10:05", "2026-12-04 10:25", "2026-12-04 10:45", "2026-12-05 08:05"},
			func(w wall) bool { return w.second == 0 && w.minute%20 == 5 && (w.hour == 8 || w.hour == 10) }, time.Second},
		{"0 */24 * * *", "2026-12-04 08:30", []string{"2026-12-05 00:00", "2026-12-06 00:00"}, midnight, time.Minute},
		{"@yearly", "2026-12-04 08:30", []string{"2027-01-01 00:00"},
			func(w wall) bool { return midnight(w) && w.month == 1 && w.day == 1 }, time.Minute},
		{"@Annually", "2026-12-04 08:30", []string{"2027-01-01 00:00"},
			func(w wall) bool { return midnight(w) && w.month == 1 && w.day == 1 }, time.Minute},
		{"@monthly", "2026-12-04 08:30", []string{"2027-01-01 00:00", "2027-02-01 00:00"},
			func(w wall) bool { return midnight(w) && w.day == 1 }, time.Minute},
		{"@weekly", "2026-12-04 08:30", []string{"2026-12-06 00:00", "2026-12-13 00:00"},
			func(w wall) bool { return midnight(w) && w.weekday() == 0 }, time.Minute},
		{"@daily", "2026-12-04 08:30", []string{"2026-12-05 00:00"}, midnight, time.Minute},
		{"@midnight", "2026-12-04 08:30", []string{"2026-12-05 00:00"}, midnight, time.Minute},
		{" @hourly\t", "2026-12-04 08:30", []string{"2026-12-04 09:00", "2026-12-04 10:00"},
			func(w wall) bool { return w.minute == 0 && w.second == 0 }, time.Second},
		{"@every 90s", "2026-12-04 08:31", []string{"2026-12-04 08:31:30", "2026-12-04 08:33:00", "2026-12-04 08:34:30"},
			func(w wall) bool { return w.asUTC().Unix()%90 == 0 }, time.Second},
		// 7 h does not divide a day: the epoch decides, not midnight. The 71304th is 2026-12-10 00:00.
		{"@every 7h", "2026-12-09 22:00",
			[]string{"2026-12-10 00:00", "2026-12-10 07:00", "2026-12-10 14:00", "2026-12-10 21:00", "2026-12-11 04:00"},
			func(w wall) bool { return w.asUTC().Unix()%25200 == 0 }, time.Second},
		{"@at 2030-01-31T09:00:00+01:00", "2029-01-01 00:00", []string{"2030-01-31 08:00"},
			func(w wall) bool { return w == wall{2030, 1, 31, 8, 0, 0} }, time.Minute},
	} {
		t.Run(row.expr, func(t *testing.T) {
			s := mustParse(t, row.expr, Options{})
			var want []time.Time
			for _, text := range row.want {
				want = append(want, utc(t, text))
			}
			from, to := utc(t, row.from), want[len(want)-1].Add(1)
			sameTicks(t, "Next", forward(s, from, to), want)
			sameTicks(t, "Last", backward(s, from, to), want)
			// The clock of UTC never jumps, so "fixed" and its memory are not needed.
			sameTicks(t, "the reference", reference(row.match, false, time.UTC, from, to, row.step), want)
		})
	}
}

func TestDayFieldsAreJoinedAsInKubernetes(t *testing.T) {
	// March 2027 begins on a Monday; its Fridays are 5, 12, 19 and 26.
	days := func(keep func(wall) bool) func(wall) bool {
		return func(w wall) bool { return w.hour == 0 && w.minute == 0 && keep(w) }
	}
	friday := func(w wall) bool { return w.weekday() == time.Friday }
	odd := func(w wall) bool { return w.day%2 == 1 }
	for expr, match := range map[string]func(wall) bool{
		"0 0 * * FRI":      days(friday),
		"0 0 ? * FRI":      days(friday),
		"0 0 */1 * FRI":    days(friday), // every day is no restriction
		"0 0 5,* * FRI":    days(friday),
		"0 0 */2 * FRI":    days(func(w wall) bool { return odd(w) || friday(w) }), // cron(5) would want both
		"0 0 1-31 * FRI":   days(func(wall) bool { return true }),
		"0 0 1-31/2 * *":   days(odd),
		"0 0 1-31/2 * ?":   days(odd),
		"0 0 1-31/2 * */1": days(odd),
		"0 0 1-31/2 * 0-6": days(func(wall) bool { return true }),
		"0 0 L * FRI":      days(func(w wall) bool { return w.day == 31 || friday(w) }),
		"0 0 L * FRI#1":    days(func(w wall) bool { return w.day == 31 || w.day == 5 }),
		"0 0 * * FRI#1":    days(func(w wall) bool { return w.day == 5 }),
		"0 0 L * *":        days(func(w wall) bool { return w.day == 31 }),
	} {
		from, to := utc(t, "2027-03-01 00:00"), utc(t, "2027-04-01 00:00")
		s := mustParse(t, expr, Options{})
		sameTicks(t, expr, forward(s, from, to), reference(match, true, time.UTC, from, to, time.Minute))
	}
}
