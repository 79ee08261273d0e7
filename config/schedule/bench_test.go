package schedule

import (
	"testing"
	"time"
)

func BenchmarkNext(b *testing.B) {
	for _, expr := range []string{"* * * * * *", "*/5 * * * *", "0 9 * * MON-FRI", "0 0 L * *", "0 0 29 2 *", "@every 90s"} {
		for _, zone := range []string{"UTC", "Europe/Berlin"} {
			b.Run(expr+" "+zone, func(b *testing.B) {
				s := mustParse(b, expr, Options{TimeZone: zone})
				b.ReportAllocs()
				for at := utc(b, "2031-06-01 00:00"); b.Loop(); {
					if at = s.Next(at); at.IsZero() {
						at = utc(b, "2031-06-01 00:00")
					}
				}
			})
		}
	}
}

func BenchmarkLast(b *testing.B) {
	s := mustParse(b, "0 9 * * MON-FRI", Options{TimeZone: "Europe/Berlin"})
	at := utc(b, "2031-06-01 00:00")
	b.ReportAllocs()
	for b.Loop() {
		at = at.Add(time.Hour)
		s.Last(at)
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mustParse(b, "0 9 * * MON-FRI", Options{TimeZone: "Europe/Berlin"})
	}
}

func BenchmarkMinGap(b *testing.B) {
	s := mustParse(b, "0 9 * * MON-FRI", Options{TimeZone: "Europe/Berlin"})
	for b.Loop() {
		s.MinGap()
	}
}

// BenchmarkRules asks for the next tick of jobs with calendars.
func BenchmarkRules(b *testing.B) {
	weekend := mustDays(b, "weekend", "", "* * * * SAT,SUN", "")
	holidays := mustDays(b, "holidays", "2031-12-25..2031-12-26 2032-01-01 2032-04-09 2032-04-12", "", "")
	for name, rules := range map[string]Rules{
		"exclude":  {Exclude: []*Days{holidays, weekend}},
		"next":     {Exclude: []*Days{holidays, weekend}, OnExcluded: NextIncluded},
		"previous": {Exclude: []*Days{holidays, weekend}, OnExcluded: PreviousIncluded},
		"weeks":    {Every: Every{Weeks: 2}},
	} {
		for _, expr := range []string{"0 9 * * *", "* * * * *", "0 9 1 * *", "0 9 25 12 *"} {
			b.Run(name+" "+expr, func(b *testing.B) {
				s := mustParse(b, expr, Options{TimeZone: "Europe/Berlin", Rules: rules})
				b.ReportAllocs()
				for at := utc(b, "2031-06-01 00:00"); b.Loop(); {
					if at = s.Next(at); at.IsZero() {
						at = utc(b, "2031-06-01 00:00")
					}
				}
			})
		}
	}
}
