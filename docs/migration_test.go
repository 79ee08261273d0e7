package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config/schedule"
)

// theirs are the next ticks after 2027-03-26T00:00:00Z, in UTC, that the other schedulers' own parsers gave for these
// expressions: node-cron 4.6.0, cron-parser 5.10.5 (which BullMQ uses), robfig/cron 3.0.1, Quartz 2.3.2
// (CronExpression), Spring 4.3.30 (CronSequenceGenerator), Celery 5.2.6.
var theirs = map[string]string{
	"node-cron 4.6: 0 9 * * 1-5":                                               "2027-03-26T09:00 2027-03-29T09:00 2027-03-30T09:00",
	"node-cron 4.6: 0 3 * * 7":                                                 "2027-03-28T03:00 2027-04-04T03:00 2027-04-11T03:00",
	"node-cron 4.6: 0 0 1-7 * 1":                                               "2027-04-05T00:00 2027-05-03T00:00 2027-06-07T00:00",
	"BullMQ (cron-parser 5.10): 0 9 * * 1-5":                                   "2027-03-26T09:00 2027-03-29T09:00 2027-03-30T09:00",
	"BullMQ (cron-parser 5.10): 0 0 1-7 * 1":                                   "2027-03-29T00:00 2027-04-01T00:00 2027-04-02T00:00",
	"robfig/cron 3.0: 0 9 * * 1-5":                                             "2027-03-26T09:00 2027-03-29T09:00 2027-03-30T09:00",
	"robfig/cron 3.0: 0 9 1-7 * 1":                                             "2027-03-29T09:00 2027-04-01T09:00 2027-04-02T09:00",
	"Quartz 2.3: 0 0 9 ? * 2-6":                                                "2027-03-26T09:00 2027-03-29T09:00 2027-03-30T09:00",
	"Quartz 2.3: 0 0 3 ? * 1":                                                  "2027-03-28T03:00 2027-04-04T03:00 2027-04-11T03:00",
	"Quartz 2.3: 0 0 18 ? * 6L":                                                "2027-03-26T18:00 2027-04-30T18:00 2027-05-28T18:00",
	"Quartz 2.3: 0 0 18 ? * 6#3":                                               "2027-04-16T18:00 2027-05-21T18:00 2027-06-18T18:00",
	"Quartz 2.3: 0 0 1 ? * L":                                                  "2027-03-27T01:00 2027-04-03T01:00 2027-04-10T01:00",
	"Quartz 2.3: 0 0 0 L * ?":                                                  "2027-03-31T00:00 2027-04-30T00:00 2027-05-31T00:00",
	"Quartz 2.3: 0 0/15 * * * ?":                                               "2027-03-26T00:15 2027-03-26T00:30 2027-03-26T00:45",
	"Spring 4.3: 0 0 9 * * 1-5":                                                "2027-03-26T09:00 2027-03-29T09:00 2027-03-30T09:00",
	"Spring 4.3: 0 0 9 1-7 * MON":                                              "2027-04-05T09:00 2027-05-03T09:00 2027-06-07T09:00",
	"Celery 5.2: crontab(minute=0, hour=9, day_of_week='mon-fri')":             "2027-03-26T09:00 2027-03-29T09:00 2027-03-30T09:00",
	"Celery 5.2: crontab(minute=0, hour=9, day_of_month='1-7', day_of_week=1)": "2027-04-05T09:00 2027-05-03T09:00 2027-06-07T09:00",
	"Celery 5.2: crontab(hour=3)":                                              "2027-03-26T03:00 2027-03-26T03:01 2027-03-26T03:02",
}

func TestSchedulesOfOthersHaveTheSameTicksHere(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "migration.md"), "<!-- schedules of others -->")
	table, _, _ = strings.Cut(table, "<!-- end -->")
	var seen []string
	for _, row := range regexp.MustCompile("(?m)^\\| (.+?) \\| `(.+?)` \\| `(.+?)` \\|$").FindAllStringSubmatch(table, -1) {
		s, err := schedule.Parse(row[3], schedule.Options{})
		if err != nil {
			t.Errorf("%s: %v", row[3], err)
			continue
		}
		var ticks []string
		at := time.Date(2027, 3, 26, 0, 0, 0, 0, time.UTC)
		for range 3 {
			at = s.Next(at)
			ticks = append(ticks, strings.TrimSuffix(at.Format("2006-01-02T15:04:05"), ":00"))
		}
		for scheduler := range strings.SplitSeq(row[1], ", ") {
			name := scheduler + ": " + row[2]
			seen = append(seen, name)
			if got := strings.Join(ticks, " "); got != theirs[name] {
				t.Errorf("%s has the ticks %s there, and %s has %s here", name, theirs[name], row[3], got)
			}
		}
	}
	if len(seen) != len(theirs) {
		t.Errorf("%d schedules are on the page, and %d in the test", len(seen), len(theirs))
	}
	slices.Sort(seen)
	if len(slices.Compact(seen)) != len(theirs) {
		t.Error("a schedule is on the page twice")
	}
}
