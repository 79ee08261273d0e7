package schedule

import (
	"testing"
	"time"
)

// Each row is one change of the clocks, or a day without one, and the ticks around it, in UTC.
func TestDaylightSavingByCity(t *testing.T) {
	for _, row := range []struct {
		name, zone, expr, from, to string
		want                       []string
	}{
		// Berlin: on 2026-03-29 01:00Z 02:00 becomes 03:00, on 2026-10-25 01:00Z 03:00 becomes 02:00.
		{"skipped time fires once, an hour later", "Europe/Berlin", "30 2 * * *", "2026-03-28 00:00", "2026-03-31 00:00",
			[]string{"2026-03-28 01:30", "2026-03-29 01:30", "2026-03-30 00:30"}},
		{"skipped time that meets another is one", "Europe/Berlin", "30 2,3 * * *", "2026-03-28 12:00", "2026-03-30 12:00",
			[]string{"2026-03-29 01:30", "2026-03-30 00:30", "2026-03-30 01:30"}},
		{"skipped times lie between others", "Europe/Berlin", "0,30 1-3/2,2 * * *", "2026-03-29 00:00", "2026-03-29 12:00",
			[]string{"2026-03-29 00:00", "2026-03-29 00:30", "2026-03-29 01:00", "2026-03-29 01:30"}},
		{"the gap's ends", "Europe/Berlin", "0 0 2,3 * * *", "2026-03-29 00:00", "2026-03-29 12:00",
			[]string{"2026-03-29 01:00"}},
		{"a second before the gap's end", "Europe/Berlin", "59 59 2 * * *", "2026-03-29 00:00", "2026-03-29 12:00",
			[]string{"2026-03-29 01:59:59"}},
		{"repeated time fires at the first", "Europe/Berlin", "30 2 * * *", "2026-10-24 12:00", "2026-10-26 12:00",
			[]string{"2026-10-25 00:30", "2026-10-26 01:30"}},
		{"repeated minutes fire at the first", "Europe/Berlin", "*/30 2-3 * * *", "2026-10-24 12:00", "2026-10-25 12:00",
			[]string{"2026-10-25 00:00", "2026-10-25 00:30", "2026-10-25 02:00", "2026-10-25 02:30"}},
		{"running hours invent nothing for the gap", "Europe/Berlin", "30 * * * *", "2026-03-29 00:00", "2026-03-29 03:00",
			[]string{"2026-03-29 00:30", "2026-03-29 01:30", "2026-03-29 02:30"}},
		{"running hours tick through the repeated one", "Europe/Berlin", "30 * * * *", "2026-10-25 00:00", "2026-10-25 03:00",
			[]string{"2026-10-25 00:30", "2026-10-25 01:30", "2026-10-25 02:30"}},
		{"every second hour loses the skipped one", "Europe/Berlin", "0 */2 * * *", "2026-03-28 22:00", "2026-03-29 05:00",
			[]string{"2026-03-28 23:00", "2026-03-29 02:00", "2026-03-29 04:00"}},
		{"every second hour has the repeated one twice", "Europe/Berlin", "0 */2 * * *", "2026-10-24 22:00", "2026-10-25 04:00",
			[]string{"2026-10-24 22:00", "2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 03:00"}},
		{"all hours named run, too", "Europe/Berlin", "30 0-23 * * *", "2026-10-24 23:00", "2026-10-25 03:00",
			[]string{"2026-10-24 23:30", "2026-10-25 00:30", "2026-10-25 01:30", "2026-10-25 02:30"}},
		{"as Quartz' generators write each hour", "Europe/Berlin", "0 0 0/1 1/1 * ? *", "2026-10-25 00:00", "2026-10-25 03:00",
			[]string{"2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 02:00"}},
		{"every second hour from midnight on", "Europe/Berlin", "0 0/2 * * *", "2026-10-24 22:00", "2026-10-25 04:00",
			[]string{"2026-10-24 22:00", "2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 03:00"}},
		{"quarters of all hours", "Europe/Berlin", "*/30 0-23 * * *", "2026-10-25 00:00", "2026-10-25 01:40",
			[]string{"2026-10-25 00:00", "2026-10-25 00:30", "2026-10-25 01:00", "2026-10-25 01:30"}},
		{"odd hours", "Europe/London", "0 1-23/2 * * *", "2026-10-24 22:30", "2026-10-25 04:00",
			[]string{"2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 03:00"}},
		{"hours by a list", "Europe/Berlin", "0 2,6,10,14,18,22 * * *", "2026-10-24 22:00", "2026-10-25 04:00",
			[]string{"2026-10-25 00:00", "2026-10-25 01:00"}},
		{"four times a day are fixed", "Europe/Berlin", "0 2,8,14,20 * * *", "2026-03-28 20:00", "2026-03-29 07:00",
			[]string{"2026-03-29 01:00", "2026-03-29 06:00"}},
		{"the first hours alone are fixed", "Europe/Berlin", "0 0-2 * * *", "2026-10-24 21:30", "2026-10-25 04:00",
			[]string{"2026-10-24 22:00", "2026-10-24 23:00", "2026-10-25 00:00"}},
		{"the last hours alone are fixed", "Europe/Berlin", "0 2-23 * * *", "2026-10-24 23:30", "2026-10-25 02:30",
			[]string{"2026-10-25 00:00", "2026-10-25 02:00"}},
		{"steps that do not fit the day are fixed", "Europe/Berlin", "0 2/5 * * *", "2026-10-24 23:30", "2026-10-25 04:00",
			[]string{"2026-10-25 00:00"}},
		{"a list with a step in it is fixed", "Europe/Berlin", "30 */12,2 * * *", "2026-10-24 12:00", "2026-10-25 12:00",
			[]string{"2026-10-24 22:30", "2026-10-25 00:30", "2026-10-25 11:30"}},
		{"@hourly runs", "Europe/Berlin", "@hourly", "2026-10-24 23:30", "2026-10-25 02:30",
			[]string{"2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 02:00"}},
		{"@every knows no clocks", "Europe/Berlin", "@every 1h", "2026-10-24 23:30", "2026-10-25 02:30",
			[]string{"2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 02:00"}},
		{"H is a fixed hour", "Europe/Berlin", "30 H(2-2) * * *", "2026-10-24 12:00", "2026-10-26 12:00",
			[]string{"2026-10-25 00:30", "2026-10-26 01:30"}},

		// New York: 2026-03-08 07:00Z and 2026-11-01 06:00Z.
		{"spring", "America/New_York", "30 2 * * *", "2026-03-07 12:00", "2026-03-09 12:00",
			[]string{"2026-03-08 07:30", "2026-03-09 06:30"}},
		{"autumn", "America/New_York", "30 1 * * *", "2026-10-31 12:00", "2026-11-02 12:00",
			[]string{"2026-11-01 05:30", "2026-11-02 06:30"}},
		{"autumn, running", "America/New_York", "30 */1 * * *", "2026-11-01 05:00", "2026-11-01 08:00",
			[]string{"2026-11-01 05:30", "2026-11-01 06:30", "2026-11-01 07:30"}},
		{"a far year", "America/New_York", "30 2 * * *", "2199-03-10 00:00", "2199-03-11 00:00",
			[]string{"2199-03-10 07:30"}},

		// Lord Howe moves by half an hour: 2026-10-03 15:30Z 02:00 becomes 02:30; 2026-04-04 15:00Z 02:00 becomes
		// 01:30.
		{"half an hour is skipped", "Australia/Lord_Howe", "15 2 * * *", "2026-10-02 12:00", "2026-10-04 20:00",
			[]string{"2026-10-02 15:45", "2026-10-03 15:45", "2026-10-04 15:15"}},
		{"half the hour is skipped", "Australia/Lord_Howe", "15,45 2 * * *", "2026-10-03 12:00", "2026-10-04 12:00",
			[]string{"2026-10-03 15:45"}},
		{"half an hour is skipped, running", "Australia/Lord_Howe", "*/15 * * * *", "2026-10-03 15:00", "2026-10-03 16:00",
			[]string{"2026-10-03 15:00", "2026-10-03 15:15", "2026-10-03 15:30", "2026-10-03 15:45"}},
		{"half an hour is repeated", "Australia/Lord_Howe", "0,45 1 * * *", "2026-04-04 12:00", "2026-04-05 12:00",
			[]string{"2026-04-04 14:00", "2026-04-04 14:45"}},
		{"half an hour is repeated, running", "Australia/Lord_Howe", "45 * * * *", "2026-04-04 14:00", "2026-04-04 16:30",
			[]string{"2026-04-04 14:45", "2026-04-04 15:15", "2026-04-04 16:15"}},

		// São Paulo: 2017-10-15 03:00Z midnight becomes 01:00; 2018-02-18 02:00Z midnight becomes 23:00 of the day
		// before.
		{"midnight is skipped", "America/Sao_Paulo", "0 0 * * *", "2017-10-14 00:00", "2017-10-17 00:00",
			[]string{"2017-10-14 03:00", "2017-10-15 03:00", "2017-10-16 02:00"}},
		{"midnight of a named day is skipped", "America/Sao_Paulo", "15 0 15 10 *", "2017-10-01 00:00", "2018-10-01 00:00",
			[]string{"2017-10-15 03:15"}},
		{"midnight comes twice near", "America/Sao_Paulo", "0 0 * * *", "2018-02-17 00:00", "2018-02-20 00:00",
			[]string{"2018-02-17 02:00", "2018-02-18 03:00", "2018-02-19 03:00"}},
		{"the last hour comes twice", "America/Sao_Paulo", "30 23 * * *", "2018-02-17 00:00", "2018-02-19 12:00",
			[]string{"2018-02-17 01:30", "2018-02-18 01:30", "2018-02-19 02:30"}},
		{"a named day ends twice, running", "America/Sao_Paulo", "0 30 3/4 17 2 ? 2018", "2018-02-17 20:00", "2019-01-01 00:00",
			[]string{"2018-02-17 21:30", "2018-02-18 01:30", "2018-02-18 02:30"}},
		{"a named day ends twice, fixed", "America/Sao_Paulo", "0 30 0,23 17 2 ? 2018", "2018-01-01 00:00", "2019-01-01 00:00",
			[]string{"2018-02-17 02:30", "2018-02-18 01:30"}},

		// Apia left out 30 December 2011: at 10:00Z of that day the 29th became the 31st.
		{"a skipped day is the next", "Pacific/Apia", "0 9 * * *", "2011-12-28 00:00", "2012-01-01 12:00",
			[]string{"2011-12-28 19:00", "2011-12-29 19:00", "2011-12-30 19:00", "2011-12-31 19:00"}},
		{"a skipped day that is named", "Pacific/Apia", "0 9 30 12 *", "2011-12-01 00:00", "2012-12-01 00:00",
			[]string{"2011-12-30 19:00"}},
		{"a skipped day is not invented", "Pacific/Apia", "0 */4 30 12 *", "2011-12-01 00:00", "2012-12-01 00:00", nil},

		// Casey lost three hours: 2010-03-04 15:00Z 02:00 of the 5th becomes 23:00 of the day before. A look at the
		// next tick of the calendar alone leads past the repetition, to the next year.
		{"a named day ends twice, hours apart, running", "Antarctica/Casey", "30 * 4 3 *", "2010-03-04 12:00", "2011-03-01 00:00",
			[]string{"2010-03-04 12:30", "2010-03-04 15:30"}},
		{"a named day begins before the repetition, asked in it", "Antarctica/Casey", "30 1 5 3 *", "2010-03-04 12:00", "2010-03-04 16:30",
			[]string{"2010-03-04 14:30"}},

		// Others of their kind.
		{"midnight is skipped in Havana", "America/Havana", "0 0 * * *", "2026-03-07 12:00", "2026-03-09 12:00",
			[]string{"2026-03-08 05:00", "2026-03-09 04:00"}},
		{"two hours are skipped at Troll", "Antarctica/Troll", "30 1,2 * * *", "2026-03-29 00:00", "2026-03-29 12:00",
			[]string{"2026-03-29 01:30", "2026-03-29 02:30"}},
		{"Monrovia lost 44 minutes and 30 seconds", "Africa/Monrovia", "10 0 * * *", "1972-01-06 00:00", "1972-01-09 00:00",
			[]string{"1972-01-06 00:54:30", "1972-01-07 00:54:30", "1972-01-08 00:10:00"}},
		{"Amsterdam at 0:19:32", "Europe/Amsterdam", "0 12 * * *", "1936-01-01 00:00", "1936-01-02 00:00",
			[]string{"1936-01-01 11:40:28"}},
		{"no change, no shift", "Asia/Kolkata", "30 2 * * *", "2026-03-28 12:00", "2026-03-30 12:00",
			[]string{"2026-03-28 21:00", "2026-03-29 21:00"}},
	} {
		t.Run(row.zone+": "+row.name, func(t *testing.T) {
			s := mustParse(t, row.expr, Options{TimeZone: row.zone})
			var want []time.Time
			for _, text := range row.want {
				want = append(want, utc(t, text))
			}
			from, to := utc(t, row.from), utc(t, row.to)
			sameTicks(t, "Next", forward(s, from, to), want)
			sameTicks(t, "Last", backward(s, from, to), want)
		})
	}
}

// Go's ZoneBounds says on this day that the zone's rule ended the midnight before.
func TestTheLastDayOfALeapYearIsADay(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Sydney"} {
		s := mustParse(t, "0 */6 * * *", Options{TimeZone: zone})
		from, to := utc(t, "2028-12-29 00:00"), utc(t, "2029-01-03 00:00")
		match := func(w wall) bool { return w.hour%6 == 0 && w.minute == 0 }
		want := reference(match, false, mustZone(t, zone), from, to, time.Minute)
		sameTicks(t, zone, forward(s, from, to), want)
		sameTicks(t, zone, backward(s, from, to), want)
	}
}
