package schedule

import (
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

//go:embed testdata/rules.json
var ruleVectors []byte

// TestRulesAgreeWithDateutil holds ticks of five years in six zones against those that testdata/rules.py finds.
func TestRulesAgreeWithDateutil(t *testing.T) {
	var vectors struct {
		Calendars map[string]struct{ Dates, Cron string }
		Cases     []struct {
			Name, CalendarZone, Start string
			Schedule                  []string
			Exclude, Include          []string
			OnExcluded                Shift
			Weeks, Days               int
			Zones                     map[string]map[string]string
		}
	}
	if err := json.Unmarshal(ruleVectors, &vectors); err != nil {
		t.Fatal(err)
	}
	compared, ticks := 0, 0
	for _, c := range vectors.Cases {
		named := func(names []string) (all []*Days) {
			for _, name := range names {
				of := vectors.Calendars[name]
				all = append(all, mustDays(t, name, of.Dates, of.Cron, c.CalendarZone))
			}
			return all
		}
		rules := Rules{Exclude: named(c.Exclude), Include: named(c.Include), OnExcluded: c.OnExcluded, Every: Every{Weeks: c.Weeks, Days: c.Days}}
		if c.Start != "" {
			rules.Every.From = mustDay(t, c.Start)
		}
		for zone, years := range c.Zones {
			s, err := ParseAll(c.Schedule, Options{TimeZone: zone, Rules: rules})
			if err != nil {
				t.Fatalf("%s in %s: %v", c.Name, zone, err)
			}
			for year, want := range years {
				from, err := time.Parse("2006", year)
				if err != nil {
					t.Fatal(err)
				}
				for way, found := range map[string][]time.Time{
					"Next": forward(s, from, from.AddDate(1, 0, 0)), "Last": backward(s, from, from.AddDate(1, 0, 0)),
				} {
					var text strings.Builder
					for _, at := range found {
						fmt.Fprintln(&text, at.Format(time.RFC3339))
					}
					if got := fmt.Sprintf("%d %.8x", len(found), sha256.Sum256([]byte(text.String()))); got != want {
						t.Errorf("%s: testdata/rules.py %s %s %s finds %s, and %s finds %s", way, c.Name, zone, year, want, way, got)
					}
					compared, ticks = compared+1, ticks+len(found)
				}
			}
		}
	}
	if compared < 21*6*5*2 || ticks < 200_000 {
		t.Errorf("only %d years with %d ticks were compared", compared, ticks)
	}
}
