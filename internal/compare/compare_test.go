package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
)

// jobs reads "name schedule" lines; a schedule may be followed by another key after a |.
func jobs(t *testing.T, lines ...string) []config.Job {
	t.Helper()
	text := "service: shop\njobs:\n"
	for _, line := range lines {
		name, rest, _ := strings.Cut(line, " ")
		when, more, _ := strings.Cut(rest, "|")
		text += fmt.Sprintf("  - {name: %s, schedule: %q, exec: {command: [a]}%s}\n", name, when, more)
	}
	table, err := config.Parse("table.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return table.Jobs
}

var monday = time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)

// changes writes a result on lines: "a -01T09:00 +02T10:00 01T08:00>01T09:00".
func changes(r *Result) string {
	short := func(t time.Time) string { return t.Format("02T15:04") }
	var lines []string
	for _, j := range r.Jobs {
		line := j.Name
		for _, t := range j.Lost {
			line += " -" + short(t)
		}
		for _, t := range j.Gained {
			line += " +" + short(t)
		}
		for _, m := range j.Moved {
			line += " " + short(m.From) + ">" + short(m.To)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestTicksGainedLostAndMoved(t *testing.T) {
	for name, row := range map[string]struct {
		before, after []string
		length        time.Duration
		want          string
		same          int
	}{
		"nothing":                     {[]string{"a 0 9 * * *"}, []string{"a 0 9 * * *"}, 72 * time.Hour, "", 1},
		"written in another way":      {[]string{"a 0 9 * * 1-5"}, []string{"a 0 0 9 ? * MON-FRI"}, 72 * time.Hour, "", 1},
		"an hour later":               {[]string{"a 0 9 * * *"}, []string{"a 0 10 * * *"}, 48 * time.Hour, "a 01T09:00>01T10:00 02T09:00>02T10:00", 0},
		"an hour earlier":             {[]string{"a 0 9 * * *"}, []string{"a 0 8 * * *"}, 24 * time.Hour, "a 01T09:00>01T08:00", 0},
		"over midnight, at both ends": {[]string{"a 30 23 * * *"}, []string{"a 30 0 * * *"}, 24 * time.Hour, "a 28T23:30>01T00:30 01T23:30>02T00:30", 0},
		"more often":                  {[]string{"a 0 9 * * *"}, []string{"a 0 9,12 * * *"}, 48 * time.Hour, "a +01T12:00 +02T12:00", 0},
		"less often":                  {[]string{"a 0 9,12 * * *"}, []string{"a 0 12 * * *"}, 24 * time.Hour, "a -01T09:00", 0},
		"between ticks that stay":     {[]string{"a 0,20,40 9 * * *"}, []string{"a 0,30 9 * * *"}, 24 * time.Hour, "a -01T09:40 01T09:20>01T09:30", 0},
		"not over a tick that stays":  {[]string{"a 0 9,12 * * *"}, []string{"a 0 12,15 * * *"}, 24 * time.Hour, "a -01T09:00 +01T15:00", 0},
		"by half a day":               {[]string{"a 0 9 * * MON"}, []string{"a 0 21 * * MON"}, 48 * time.Hour, "a 01T09:00>01T21:00", 0},
		"by more than half a day":     {[]string{"a 0 9 * * MON"}, []string{"a 1 21 * * MON"}, 48 * time.Hour, "a -01T09:00 +01T21:01", 0},
		"the nearest of two":          {[]string{"a 0 10 * * *"}, []string{"a 0 8,11 * * *"}, 24 * time.Hour, "a +01T08:00 01T10:00>01T11:00", 0},
		"a new job and an old one": {[]string{"a 0 9 * * *", "b 0 9 * * *"}, []string{"b 0 9 * * *", "c 0 9 * * *"}, 24 * time.Hour,
			"a -01T09:00\nc +01T09:00", 1},
		"a job without a tick": {[]string{"a 0 9 * * *"}, []string{"a 0 9 * * *", "b 0 9 * * SUN"}, 24 * time.Hour, "", 2},
		"suspended":            {[]string{"a 0 9 * * *"}, []string{"a 0 9 * * *|, suspend: true"}, 24 * time.Hour, "a -01T09:00", 0},
		"suspended in both":    {[]string{"a 0 9 * * *|, suspend: true"}, []string{"a 0 9 * * *|, suspend: true"}, 24 * time.Hour, "", 1},
		"in another zone": {[]string{"a 0 9 * * *"}, []string{"a 0 9 * * *|, timeZone: Europe/Berlin"}, 24 * time.Hour,
			"a 01T09:00>01T08:00", 0},
		"the ends are inclusive and exclusive": {[]string{"a 0 0 * * *"}, nil, 24 * time.Hour, "a -01T00:00", 0},
	} {
		r, err := Jobs(jobs(t, row.before...), jobs(t, row.after...), monday, monday.Add(row.length))
		if err != nil || changes(r) != row.want || r.Same != row.same {
			t.Errorf("%s: %v, %d the same, %v; not\n%s", name, changes(r), r.Same, err, row.want)
		}
	}
}

func TestAResultTellsWhichListHasTheJob(t *testing.T) {
	r, err := Jobs(jobs(t, "a 0 9 * * *", "b 0 9 * * *"), jobs(t, "b 0 10 * * *", "c 0 9 * * *"), monday, monday.Add(24*time.Hour))
	if err != nil || len(r.Jobs) != 3 {
		t.Fatal(r, err)
	}
	for i, want := range [][2]bool{{true, false}, {true, true}, {false, true}} {
		if j := r.Jobs[i]; j.Before != want[0] || j.After != want[1] {
			t.Errorf("%+v, want %v", j, want)
		}
	}
}

func TestNotEveryJobCanBeCompared(t *testing.T) {
	open := []config.Job{{Name: "a"}}
	day := monday.Add(24 * time.Hour)
	var unknown *UnknownError
	if _, err := Jobs(open, open, monday, day); !errors.As(err, &unknown) || unknown.After {
		t.Errorf("a variable in both: %v", err)
	}
	if _, err := Jobs(nil, open, monday, day); !errors.As(err, &unknown) || !unknown.After {
		t.Errorf("a variable in the second: %v", err)
	}
	var many *TooManyError
	second, other := jobs(t, "a @every 1s"), jobs(t, "a @every 2s")
	if _, err := Jobs(second, other, monday, monday.Add(14*24*time.Hour)); !errors.As(err, &many) {
		t.Errorf("too many ticks: %v", err)
	}
	if r, err := Jobs(second, second, monday, monday.Add(14*24*time.Hour)); err != nil || r.Same != 1 {
		t.Errorf("the same job needs no ticks: %v, %v", r, err)
	}
}

// Whatever the schedules are: the old ticks, less the lost and with the moved at their new places, and the gained ones,
// are the new ticks. That holds where no move crosses the ends, as from a Monday to a Monday here.
func TestTheChangesLeadFromOneListToTheOther(t *testing.T) {
	schedules := []string{"0 9 * * *", "*/7 9-11 * * *", "0 9,12,15 * * MON-FRI", "30 8-16/2 * * *", "0 12 * * *", "*/20 9 * * *", "@every 5h"}
	to := monday.Add(7 * 24 * time.Hour)
	in := func(s string) (all []time.Time) {
		for t := range slices.Values(must(ticks(&jobs(t, "a "+s)[0], monday, to, new(mostTogether)))) {
			if !t.Before(monday) && t.Before(to) {
				all = append(all, t)
			}
		}
		return all
	}
	for _, x := range schedules {
		for _, y := range schedules {
			r, err := Jobs(jobs(t, "a "+x), jobs(t, "a "+y), monday, to)
			if err != nil {
				t.Fatal(err)
			}
			have := map[time.Time]int{}
			for _, at := range in(x) {
				have[at]++
			}
			for _, j := range r.Jobs {
				for _, at := range j.Lost {
					have[at]--
				}
				for _, at := range j.Gained {
					have[at]++
				}
				for _, m := range j.Moved {
					have[m.From]--
					have[m.To]++
				}
			}
			for _, at := range in(y) {
				have[at]--
			}
			for at, n := range have {
				if n != 0 && !at.Before(monday) && at.Before(to) {
					t.Errorf("%q and %q: %s is %d too many", x, y, at, n)
				}
			}
		}
	}
}

func must(ticks []time.Time, err error) []time.Time {
	if err != nil {
		panic(err)
	}
	return ticks
}

func TestTheTicksOfAllJobsTogetherAreBounded(t *testing.T) {
	const day = 24 * 60
	most := mostTogether / (2 * (14 + 4) * day) // jobs each minute, for the time that is looked at, in both lists
	lines := func(n int, schedule string) []string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("j%d %s", i, schedule))
		}
		return all
	}
	alike := jobs(t, lines(2000, "* * * * *")...)
	if r, err := Jobs(alike, alike, monday, monday.AddDate(0, 0, 14)); err != nil || r.Same != 2000 { // jobs that do not differ have no ticks to be compared
		t.Errorf("jobs that do not differ: %v", err)
	}
	differing := func(n int) (*Result, error) {
		return Jobs(jobs(t, lines(n, "* * * * *")...), jobs(t, lines(n, "30 * * * * *")...), monday, monday.AddDate(0, 0, 14))
	}
	if r, err := differing(most); err != nil || len(r.Jobs) != most {
		t.Errorf("%d jobs: %v", most, err)
	}
	var many *TooManyError
	for _, n := range []int{most + 2, 2000} {
		if _, err := differing(n); !errors.As(err, &many) || many.Job != "" {
			t.Errorf("%d jobs: %v", n, err)
		}
	}
	// Only that many ticks were looked at.
	left := 3
	if _, err := ticks(&jobs(t, "a * * * * *")[0], monday, monday.AddDate(0, 0, 14), &left); !errors.As(err, &many) || left != -1 {
		t.Errorf("%d left, %v", left, err)
	}
}
