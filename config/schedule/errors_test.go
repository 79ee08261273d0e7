package schedule

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// goWords are traces of Go, of the library or of this package, which mean nothing to the author of the table.
var goWords = regexp.MustCompile(`strconv|cron\.|Atoi|%!|0x|nil|schedule\.|parsing time|time: |DowLast|DomL|hash option`)

func TestErrorsSayWhichFieldAndWhatIsAllowed(t *testing.T) {
	for _, row := range []struct{ expr, want string }{
		{"", "it is empty"},
		{" \t ", "it is empty"},
		{"61 * * * *", `minute "61": 61 is out of range: allowed are 0-59`},
		{"* 24 * * *", `hour "24": 24 is out of range: allowed are 0-23`},
		{"* * 0 * *", `day of month "0": 0 is out of range: allowed are 1-31`},
		{"* * 32 * *", `allowed are 1-31`},
		{"* * * 13 *", `month "13": 13 is out of range: allowed are 1-12`},
		{"* * * * 8", `day of week "8": 8 is out of range: allowed are 0-7`},
		{"60 * * * * *", `second "60"`},
		{"0 0 0 1 1 ? 1969", `year "1969": 1969 is out of range: allowed are 1970-2199`},
		{"0 0 0 1 1 ? 2200", `allowed are 1970-2199`},
		{"99999999999999999999 * * * *", `99999999999999999999 is out of range`},
		{"MON * * * *", `minute "MON": "MON" is not a number 0-59`},
		{"* * * FOO *", `month "FOO": "FOO" is neither a number 1-12 nor a month JAN-DEC`},
		{"* * * * FRIDAY", `"FRIDAY" is neither a number 0-7 nor a weekday SUN-SAT`},
		{"* * * * noon", `day of week "noon"`},
		{"+5 * * * *", `"+5" is not a number`},
		{"-5 * * * *", `"" is not a number`},
		{"*-5 * * * *", `"*" is not a number`},
		{"*5 * * * *", `"*5" is not a number`},
		{"5- * * * *", `"" is not a number`},
		{"1-2-3 * * * *", `"2-3" is not a number`},
		{"5-1 * * * *", `range "5-1" is reversed`},
		{"* 22-2 * * *", `range "22-2" is reversed`},
		{"* * * NOV-FEB *", `range "NOV-FEB" is reversed`},
		{"* * * * FRI-MON", `range "FRI-MON" is reversed`},
		{"* * * * 5-0", `range "5-0" is reversed`},
		{"1,,2 * * * *", `minute "1,,2": a part of the list is empty`},
		{",1 * * * *", `a part of the list is empty`},
		{"1, * * * *", `a part of the list is empty`},
		{"*/0 * * * *", `a step must be at least 1`},
		{"*/ * * * *", `step "" is not a number`},
		{"*/-1 * * * *", `step "-1" is not a number`},
		{"*/2/3 * * * *", `step "2/3" is not a number`},
		{"*/90 * * * *", `step 90 is too large, there are 60 values`},
		{"* */25 * * *", `step 25 is too large`},
		{"? * * * *", `? is only for day of month and day of week`},
		{"0 0 ?,5 * *", `? must stand alone`},
		{"0 0 ?/2 * *", `? must stand alone`},
		{"0 0 0 1 1 ? ?", `year "?": ? is only for`},
		{"L * * * *", `"L" is not a number`},
		{"0 0 L-0 * *", `days before the last are 1-30`},
		{"0 0 L-31 * *", `days before the last are 1-30`},
		{"0 0 32W * *", `32 is out of range`},
		{"0 0 0W * *", `0 is out of range`},
		{"0 0 W * *", `"W" is none of L, L-n, LW and nW`},
		{"0 0 WL * *", `"WL" is none of`},
		{"0 0 1-5W * *", `"1-5W" is none of`},
		{"0 0 L-3W * *", `"L-3W" is none of`},
		{"0 0 15W/2 * *", `"15W/2" is none of`},
		{"0 0 * * 8L", `8 is out of range`},
		{"0 0 * * 1-5L", `"1-5" is neither`},
		{"0 0 * * FRI#0", `after # comes 1-5`},
		{"0 0 * * FRI#6", `after # comes 1-5`},
		{"0 0 * * FRI#", `after # comes 1-5`},
		{"0 0 * * #3", `"" is neither`},
		{"0 0 * * FRI#L", `the last one is written FRIL`},
		{"0 0 * * 5#3-4", `after # comes 1-5`},
		{"0 0 15#2 * *", `"15#2" is not a number 1-31`},
		{"H(0-60) * * * *", `60 is out of range`},
		{"H(30-10) * * * *", `range "30-10" is reversed`},
		{"H(0- * * * *", `H takes a range in brackets, such as H(0-29)`},
		{"H() * * * *", `H takes a range in brackets`},
		{"H5 * * * *", `H takes a range in brackets`},
		{"H-5 * * * *", `H takes a range in brackets`},
		{"H/0 * * * *", `a step must be at least 1`},
		{"H(0-7)/9 * * * *", `step 9 is too large, H(0-7) has 8 values`},
		{"0 0 H/29 * *", `step 29 is too large, H has 28 values`},
		{"0 0 0 1 1 ? H", `H has no meaning for a year`},
		{"*", "1 field: it takes 5"},
		{"* * * *", "4 fields: it takes 5"},
		{"* * * * * * * *", "8 fields: it takes 5"},
		{"0 0 1 1 * 2030", "6 fields begin with the second and have no year: for year 2030 put a second first"},
		{"TZ=UTC 0 9 * * *", `"TZ=UTC" does not belong here: use the timeZone field`},
		{"CRON_TZ=Europe/Berlin 0 9 * * *", `use the timeZone field`},
		{"TZ=UTC", `use the timeZone field`},
		{"tz=UTC 0 9 * * *", `use the timeZone field`},
		{"0 9 * * ＊", `is not allowed`},
		{"0 9 * * *\x00", `is not allowed`},
		{"0 9\n* * *", `is not allowed`},
		{strings.Repeat("1,", 300) + "1 * * * *", "at most 500"},
		{"0 0 0 1 1 ? " + strings.Repeat("*/2,", 110) + "2000", "too long"},
		{"@reboot", "@reboot has no meaning here"},
		{"@dayly", "did you mean @daily?"},
		{"@week", "did you mean @weekly?"},
		{"@", "did you mean @at?"},
		{"@fortnightly", "known are @yearly"},
		{"@daily 5", `@daily stands alone`},
		{"@every", "@every takes one duration, such as 90s or 1h30m"},
		{"@every 1h 30m", "@every takes one duration"},
		{"@every 1d", `"1d" is not a duration`},
		{"@every 90", `"90" is not a duration`},
		{"@every 500ms", `"500ms" is too short, 1s is the least`},
		{"@every 0s", `is too short`},
		{"@every -90s", `is too short`},
		{"@every 1500ms", `"1500ms" is not a whole number of seconds`},
		{"@every 99999999h", `is not a duration`},
		{"@at", "@at takes one time"},
		{"@at tomorrow", `"tomorrow" is not a time with its offset from UTC`},
		{"@at 2030-01-31T09:00:00", `is not a time with its offset`},
		{"@at 2030-01-31 09:00:00", `@at takes one time with its offset`},
		{"@at 2030-02-30T09:00:00Z", `is not a time`},
		{"@at 2030-01-31T9:00:00Z", `is not a time`},
		{"@at 2030-01-31T09:00:00,5Z", `is not a time`},
		{"@at 2030-01-31T09:00:00+25:00", `is not a time`},
		{"@at 2030-01-31T23:59:60Z", `is not a time`},
		{"@at 2030-01-31T09:00:00.5Z", `is not a whole second`},
		{"@at 2200-01-01T00:00:00Z", `allowed are the years 1970 to 2199`},
		{"@at 0001-01-01T00:00:00Z", `allowed are the years 1970 to 2199`},
		{"0 0 31 2 *", "it can never fire"},
		{"0 0 30 2 *", "it can never fire"},
		{"0 0 31 4,6,9,11 *", "it can never fire"},
		{"0 0 31W 4 *", "it can never fire"},
		{"0 0 L-29 2 *", "it can never fire"},
		{"0 0 0 29 2 ? 2027", "it can never fire"},
	} {
		s, err := Parse(row.expr, Options{Job: "a"})
		if err == nil {
			t.Errorf("%q is accepted; next tick %s", row.expr, show(s.Next(time.Unix(0, 0))))
			continue
		}
		if !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: %v\nwant it to say %s", row.expr, err, row.want)
		}
		if goWords.MatchString(err.Error()) {
			t.Errorf("%q: %v\nspeaks of Go", row.expr, err)
		}
	}
}

func TestTimeZonesAreTheSameOnAllReplicas(t *testing.T) {
	for _, name := range []string{"Local", "local", "localtime", "posixrules", "Europe/Atlantis", "right/Europe/Berlin",
		"posix/Europe/Berlin", "../Europe/Berlin", "/etc/localtime", " UTC", "CEST", "Europe", "Europe/"} {
		if _, err := Parse("0 9 * * *", Options{TimeZone: name}); err == nil {
			t.Errorf("time zone %q is accepted", name)
		} else if !strings.Contains(err.Error(), "time zone") || goWords.MatchString(err.Error()) {
			t.Errorf("time zone %q: %v", name, err)
		}
	}
	for _, name := range []string{"", "UTC", "Etc/UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"} {
		if _, err := Parse("0 9 * * *", Options{TimeZone: name}); err != nil {
			t.Errorf("time zone %q: %v", name, err)
		}
	}
}

func TestAPastScheduleIsNoError(t *testing.T) {
	now := utc(t, "2026-12-01 00:00")
	for _, expr := range []string{"@at 2020-05-01T12:00:00Z", "0 0 12 1 5 ? 2020"} {
		s := mustParse(t, expr, Options{})
		if next := s.Next(now); !next.IsZero() {
			t.Errorf("%s: next tick %s", expr, show(next))
		}
		if want := utc(t, "2020-05-01 12:00"); !s.Last(now).Equal(want) {
			t.Errorf("%s: last tick %s", expr, show(s.Last(now)))
		}
	}
}

func TestStringIsTheExpressionAsWritten(t *testing.T) {
	if got := mustParse(t, "  0 9  * * mon-FRI\t", Options{}).String(); got != "0 9  * * mon-FRI" {
		t.Errorf("%q", got)
	}
}
