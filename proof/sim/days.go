package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
)

// Days is what a job's row says of days; nil = its schedule is an @every without rules.
type Days struct {
	Steps            []int  // the schedules: each has the seconds of a minute that its number divides; none = @every
	Weekday          int    // the only one with ticks; -1 = all have them
	Exclude, Include string // a calendar; "" = none
	Moves            int    // days by which an excluded tick moves, once and again: 1 or -1; 0 = it is left out
	Second           string // a day of those of which every second one is kept; "" = all are
}

// Calendar is a calendar of the table.
type Calendar struct {
	Name, Zone string // in the zone of the job, if Zone is ""
	Dates      []string
}

// text is the calendar as its user would write it.
func (c *Calendar) text() string {
	zone := ""
	if c.Zone != "" {
		zone = ", timeZone: " + c.Zone
	}
	return fmt.Sprintf("  %s: {dates: [%s]%s}\n", c.Name, strings.Join(c.Dates, ", "), zone)
}

// text is what the keys for schedules and days say in a job's row.
func (j *Job) text() string {
	d := j.Days
	if j.isLease() {
		return "    schedule: \"@lease\"\n"
	}
	if d == nil || len(d.Steps) == 0 {
		return fmt.Sprintf("    schedule: \"@every %s\"\n", j.Period) + d.rules()
	}
	var all []string
	for _, n := range d.Steps {
		weekday := "*"
		if d.Weekday >= 0 {
			weekday = fmt.Sprint(d.Weekday)
		}
		all = append(all, fmt.Sprintf("%q", fmt.Sprintf("*/%d * * * * %s", n, weekday)))
	}
	return fmt.Sprintf("    schedule: [%s]\n", strings.Join(all, ", ")) + d.rules()
}

// window is what the row says of when its ticks begin and end.
func (j *Job) window() (text string) {
	if j.From != 0 {
		text += "    start: " + dawn.Add(j.From).Format(time.RFC3339) + "\n"
	}
	if j.To != 0 {
		text += "    end: " + dawn.Add(j.To).Format(time.RFC3339) + "\n"
	}
	return text
}

// dawn is when all bubbles begin.
var dawn = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

func (d *Days) rules() string {
	if d == nil {
		return ""
	}
	var b strings.Builder
	if d.Exclude != "" {
		fmt.Fprintf(&b, "    exclude: [%s]\n", d.Exclude)
	}
	if d.Include != "" {
		fmt.Fprintf(&b, "    include: [%s]\n", d.Include)
	}
	if d.Moves != 0 {
		fmt.Fprintf(&b, "    onExcluded: %s\n", map[int]string{1: "next", -1: "previous"}[d.Moves])
	}
	if d.Second != "" {
		fmt.Fprintf(&b, "    every: {days: 2, from: %s}\n", d.Second)
	}
	return b.String()
}

// ticking are the ticks of a job as its row means them. It reckons with Go's own calendar, and does not ask the
// product, whose ticks it judges.
type ticking struct {
	steps            []int64 // each has the seconds since 1970 that it divides
	days             Days
	exclude, include *daySet // nil = none
	zone             *time.Location
	begins, ends     time.Time // no tick is before the one, or at the other or after it; zero = no bound
	anchor           int64     // in seconds since 1970: an @every counts from its start
	lease            bool      // there are none, and any instant is one at which an app may get it
	ways             string    // of the row, once they are asked for
}

// daySet are the days of a calendar, in a zone.
type daySet struct {
	dates []string
	zone  *time.Location
}

func (s *daySet) has(at time.Time) bool {
	return slices.Contains(s.dates, at.In(s.zone).Format(time.DateOnly))
}

// describe tells the ticks of a job in a version of the table.
func (v *version) describe(j *Job) *ticking {
	t := &ticking{days: Days{Weekday: -1}, zone: zone(j.Zone), lease: j.isLease()}
	if j.Days != nil {
		t.days = *j.Days
	}
	for _, n := range t.days.Steps {
		t.steps = append(t.steps, int64(n))
	}
	if len(t.steps) == 0 {
		t.steps = []int64{int64(j.Period / time.Second)}
	}
	if j.From != 0 {
		t.begins = dawn.Add(j.From)
		if len(t.days.Steps) == 0 {
			t.anchor = t.begins.Unix()
		}
	}
	if j.To != 0 {
		t.ends = dawn.Add(j.To)
	}
	for _, c := range v.calendars {
		days := &daySet{c.Dates, zone(cmp.Or(c.Zone, j.Zone))}
		if c.Name == t.days.Exclude {
			t.exclude = days
		}
		if c.Name == t.days.Include {
			t.include = days
		}
	}
	return t
}

func zone(name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil {
		panic(err) // a plan chooses from names that exist
	}
	return loc
}

// open reports whether the calendars let a tick be on the day of an instant, which is told in the job's zone.
func (t *ticking) open(at time.Time) bool {
	return (t.exclude == nil || !t.exclude.has(at)) && (t.include == nil || t.include.has(at))
}

// written reports whether the schedules and `every` have the day.
func (t *ticking) written(at time.Time) bool {
	if t.days.Weekday >= 0 && int(at.Weekday()) != t.days.Weekday {
		return false
	}
	from, err := time.Parse(time.DateOnly, t.days.Second)
	day, _ := time.Parse(time.DateOnly, at.Format(time.DateOnly))
	return err != nil || day.Sub(from)/(24*time.Hour)%2 == 0
}

// ticks reports whether the day of an instant has ticks: its own, or those of excluded days next to it.
func (t *ticking) ticks(at time.Time) bool {
	if !t.open(at) {
		return false
	}
	for from := at; ; {
		if t.written(from) {
			return true
		}
		if t.days.Moves == 0 {
			return false
		}
		if from = from.AddDate(0, 0, -t.days.Moves); t.open(from) {
			return false
		}
	}
}

// day is the time around an instant, up to but not including to, in which all calendars have the same day.
func (t *ticking) day(at time.Time) (from, to time.Time) {
	zones := []*time.Location{t.zone}
	for _, s := range []*daySet{t.exclude, t.include} {
		if s != nil {
			zones = append(zones, s.zone)
		}
	}
	for i, z := range zones {
		y, m, d := at.In(z).Date()
		begins, ends := time.Date(y, m, d, 0, 0, 0, 0, z), time.Date(y, m, d+1, 0, 0, 0, 0, z)
		if i == 0 || begins.After(from) {
			from = begins
		}
		if i == 0 || ends.Before(to) {
			to = ends
		}
	}
	return from, to
}

// Before and after all that happens: a lease has no tick in between.
var noTickBefore, noTickAfter = time.Unix(0, 0).UTC(), time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)

// next is the first tick after an instant; noTickAfter if there is none.
func (t *ticking) next(after time.Time) time.Time {
	if t.lease {
		return noTickAfter
	}
	if after.Before(t.begins) {
		after = t.begins.Add(-1)
	}
	if tick := t.nextOfAll(after); t.ends.IsZero() || tick.Before(t.ends) {
		return tick
	}
	return noTickAfter
}

// nextOfAll is next without bounds. Each job of a plan that is no lease has a tick then, and one before.
func (t *ticking) nextOfAll(after time.Time) time.Time {
	for at := time.Unix(after.Unix()+1, 0); ; {
		_, to := t.day(at)
		if t.ticks(at.In(t.zone)) {
			first := to
			for _, n := range t.steps {
				if tick := time.Unix((at.Unix()-t.anchor%n+n-1)/n*n+t.anchor%n, 0); tick.Before(first) {
					first = tick
				}
			}
			if first.Before(to) {
				return first.UTC()
			}
		}
		at = to
	}
}

// everyTick is next for a scheduler that knows of no calendar and no bounds.
func (t *ticking) everyTick(after time.Time) time.Time {
	all := *t
	all.exclude, all.include = nil, nil
	return all.nextOfAll(after)
}

// last is the newest tick up to an instant; noTickBefore if there is none.
func (t *ticking) last(at time.Time) time.Time {
	if t.lease {
		return noTickBefore
	}
	if !t.ends.IsZero() && !at.Before(t.ends) {
		at = t.ends.Add(-1)
	}
	if tick := t.lastOfAll(at); !tick.Before(t.begins) {
		return tick
	}
	return noTickBefore
}

// lastOfAll is last without bounds.
func (t *ticking) lastOfAll(at time.Time) time.Time {
	for {
		from, _ := t.day(at)
		if t.ticks(at.In(t.zone)) {
			newest := time.Time{}
			for _, n := range t.steps {
				if tick := time.Unix((at.Unix()-t.anchor%n)/n*n+t.anchor%n, 0); tick.After(newest) {
					newest = tick
				}
			}
			if !newest.Before(from) {
				return newest.UTC()
			}
		}
		at = from.Add(-1)
	}
}

// ticksOf are the ticks of a row of a table.
func (w *world) ticksOf(j *config.Job) *ticking { return w.described[j] }

// next is the first tick of a job after an instant.
func (w *world) next(j *config.Job, after time.Time) time.Time { return w.ticksOf(j).next(after) }

// last is the newest tick of a job up to an instant.
func (w *world) last(j *config.Job, at time.Time) time.Time { return w.ticksOf(j).last(at) }

// isTick reports whether a job has a tick at an instant, or may be an app's from then on.
func (w *world) isTick(j *config.Job, at time.Time) bool {
	t := w.ticksOf(j)
	if t.lease {
		return !at.Before(t.begins) && (t.ends.IsZero() || at.Before(t.ends))
	}
	return t.next(at.Add(-1)).Equal(at)
}

// described are the ticks of all rows of all tables.
func (p *Plan) described(tables []*config.Table) map[*config.Job]*ticking {
	all := map[*config.Job]*ticking{}
	for n := range p.versions {
		v := &p.versions[n]
		for i := range v.jobs {
			all[row(tables[n], v.jobs[i].Name)] = v.describe(&v.jobs[i])
		}
	}
	return all
}
