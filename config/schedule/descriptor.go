package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// shorthands has the fields that the words stand for.
var shorthands = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

var descriptors = []string{
	"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@every", "@at", leaseWord,
}

// parseDescriptor reads an expression that begins with @: into a series, or into the fields it stands for.
func parseDescriptor(words []string, start time.Time) (series, []string, error) {
	word, args := strings.ToLower(words[0]), words[1:]
	switch word {
	case "@every":
		s, err := parseEvery(args, start)
		return s, nil, err
	case "@at":
		s, err := parseAt(args)
		return s, nil, err
	case leaseWord:
		return nil, nil, errors.New("@lease must be the only schedule of a job")
	case "@reboot":
		return nil, nil, errors.New("@reboot has no meaning here: a tick is the same instant for all replicas, " +
			"and each starts at another")
	}
	fields, ok := shorthands[word]
	if !ok {
		return nil, nil, fmt.Errorf("unknown word %q%s", words[0], suggest(word))
	}
	if len(args) > 0 {
		return nil, nil, fmt.Errorf("%s stands alone, but %q follows it", word, strings.Join(args, " "))
	}
	return nil, strings.Fields(fields), nil
}

// every ticks at each multiple of its period, in seconds, counted from the Unix epoch or from the start of the window.
type every struct {
	period int64
	anchor int64 // of the period: how long after a multiple it ticks
}

func parseEvery(args []string, start time.Time) (series, error) {
	const example = "such as 90s or 1h30m"
	if len(args) != 1 {
		return nil, fmt.Errorf("@every takes one duration, %s", example)
	}
	d, err := time.ParseDuration(args[0])
	switch {
	case err != nil:
		return nil, fmt.Errorf("@every: %q is not a duration %s (units are h, m and s)", args[0], example)
	case d < time.Second:
		return nil, fmt.Errorf("@every: %q is too short, 1s is the least", args[0])
	case d%time.Second != 0:
		return nil, fmt.Errorf("@every: %q is not a whole number of seconds", args[0])
	}
	e := every{period: int64(d / time.Second)}
	if !start.IsZero() {
		from := secondsUp(start)
		e.anchor = from - floor(from, e.period)*e.period
	}
	return e, nil
}

func (e every) after(u int64) (int64, bool) {
	t, _ := e.notAfter(u)
	return t + e.period, true
}

func (e every) notAfter(u int64) (int64, bool) {
	return floor(u-e.anchor, e.period)*e.period + e.anchor, true
}

// rfc3339 is the shape of a time. The time package lets "T9:00:00Z" and a comma in the seconds pass.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// once ticks a single time, at that Unix second.
type once int64

func parseAt(args []string) (series, error) {
	const example = "such as 2030-01-31T09:00:00Z or 2030-01-31T09:00:00+01:00"
	if len(args) != 1 {
		return nil, fmt.Errorf("@at takes one time with its offset from UTC, %s", example)
	}
	text := strings.ToUpper(args[0])
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || !rfc3339.MatchString(text) {
		return nil, fmt.Errorf("@at: %q is not a time with its offset from UTC, %s", args[0], example)
	}
	if t.Nanosecond() != 0 {
		return nil, fmt.Errorf("@at: %q is not a whole second", args[0])
	}
	if u := t.Unix(); u < 0 || u > newestTick {
		return nil, fmt.Errorf("@at: %q is out of range: allowed are the years %d to %d", args[0], firstYear, lastYear)
	}
	return once(t.Unix()), nil
}

func (o once) after(u int64) (int64, bool)    { return int64(o), int64(o) > u }
func (o once) notAfter(u int64) (int64, bool) { return int64(o), int64(o) <= u }

// leaseWord stands for no ticks: the job is a lease, which an app gets when it asks while no other holds it.
const leaseWord = "@lease"

// lease has no ticks.
type lease struct{}

func (lease) after(int64) (int64, bool)    { return 0, false }
func (lease) notAfter(int64) (int64, bool) { return 0, false }

// suggest names the known word that is nearest to the unknown one, if one is near; otherwise all of them.
func suggest(word string) string {
	best := slices.MinFunc(descriptors, func(a, b string) int { return distance(word, a) - distance(word, b) })
	if distance(word, best) <= 2 {
		return fmt.Sprintf(", did you mean %s?", best)
	}
	return ": known are " + strings.Join(descriptors, ", ")
}

// distance is the number of letters to insert, remove or replace that turn one word into the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
