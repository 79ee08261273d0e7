package schedule

import (
	"fmt"
	"strings"

	"github.com/netresearch/go-cron"
)

// libraryParser requires all seven fields: otherwise it reads "0 0 1 1 * 2030" as five fields and a year. It never sees
// H, see field.hashed.
var libraryParser = cron.MustNewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow |
	cron.Year | cron.Extended | cron.DowOrDom)

// parseFields reads five, six or seven fields.
func parseFields(words []string, zone *zone, job string) (series, error) {
	switch len(words) {
	case 5:
		words = append(append([]string{"0"}, words...), "*")
	case 6:
		if year, ok := digits(words[5]); ok && year >= firstYear {
			return nil, fmt.Errorf("6 fields begin with the second and have no year: for year %d put a second first",
				year)
		}
		words = append(append([]string{}, words...), "*")
	case 7:
	default:
		return nil, fmt.Errorf("%s: it takes 5 (minute, hour, day of month, month, day of week), "+
			"6 (a second first) or 7 (a year last)", plural(len(words), "field"))
	}
	translated := make([]string, len(words))
	for i := range fields {
		var err error
		if translated[i], err = fields[i].translate(i, words[i], job); err != nil {
			return nil, err
		}
	}
	parsed, err := libraryParser.Parse(strings.Join(translated, " "))
	if err != nil {
		return nil, fmt.Errorf("reading the fields: %w", err)
	}
	spec := parsed.(*cron.SpecSchedule) // fields always make this type
	sets := newFieldSets(spec)
	return &clocked{sets: sets, zone: zone, fixed: !sets.runsThroughHours()}, nil
}
