package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config/schedule"
)

// scheduleRow is a schedule of a page, its meaning in words, and its next ticks.
var scheduleRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*?) \\| (.*?) \\|$")

// explained is the row that the schedule ought to have: at most n of its ticks after a fixed time, in a zone.
func explained(t *testing.T, expr, zone string, after time.Time, n int) string {
	t.Helper()
	where, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	o := schedule.Options{TimeZone: zone, Job: "tidy-up"}
	s, err := schedule.Parse(expr, o)
	if err != nil {
		t.Fatal(err)
	}
	e, err := schedule.Explain([]string{expr}, o)
	if err != nil {
		t.Fatal(err)
	}
	var ticks []string
	for range n {
		after = s.Next(after)
		if after.IsZero() {
			break
		}
		form := "Mon 2006-01-02 15:04"
		if after.Second() != 0 {
			form = "Mon 2006-01-02 15:04:05"
		}
		if zone != "UTC" {
			form += " MST"
		}
		ticks = append(ticks, after.In(where).Format(form))
	}
	return "| `" + expr + "` | " + e.Words + " | " + strings.Join(ticks, ", ") + " |"
}

// Each table of schedules begins with a comment that names its zone and its time: <!-- schedules Europe/Berlin
// 2027-03-26 -->
var scheduleTable = regexp.MustCompile(`(?s)<!-- schedules (\S+) (\S+) -->\n(.*?)<!-- end -->`)

func TestTheSchedulesMeanWhatThePageSays(t *testing.T) {
	const page = "schedules.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	rows, right := 0, string(text)
	for _, table := range scheduleTable.FindAllStringSubmatch(string(text), -1) {
		after, err := time.Parse(time.DateOnly, table[2])
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range scheduleRow.FindAllStringSubmatch(table[3], -1) {
			rows++
			// A row with one tick is of a schedule that has no more.
			want := explained(t, row[1], table[1], after, max(strings.Count(row[3], ",")+1, 2))
			if row[0] != want {
				t.Errorf("the page says\n%s\nand config/schedule says\n%s", row[0], want)
				right = strings.Replace(right, row[0], want, 1)
			}
		}
	}
	if rows < 15 {
		t.Errorf("only %d schedules were looked at", rows)
	}
	if *update && right != string(text) {
		if err := os.WriteFile(page, []byte(right), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
