package config

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/config/strict"
)

const (
	mostCalendars   = 100
	mostDays        = 10_000 // dates of one calendar
	mostExpressions = 50
	mostOfTimer     = 10 // each takes up to 700 bytes, and timers that are due together must fit into 64 MiB
	mostEvery       = 1000
)

var (
	calendarForm = strict.Form{Pattern: `^[A-Za-z][A-Za-z0-9_.-]*$`, Length: 63}
	calendarName = regexp.MustCompile(calendarForm.Pattern)
	datesForm    = strict.Form{Pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}(\.\.[0-9]{4}-[0-9]{2}-[0-9]{2})?$`}
	dateForm     = strict.Form{Pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}$`}
)

// calendars are those of the table as they were read, by name.
type calendars map[string]struct {
	days *schedule.Days // nil = it has problems
	sum  string
}

// draftDays is a calendar that is being read.
type draftDays struct {
	spans          []schedule.Span
	cron, timeZone strict.Text
}

func calendarKeys(to *draftDays) []strict.Key {
	cron := func(d *strict.Decoder, e strict.Entry) { to.cron = plain(d, e) }
	timeZone := func(d *strict.Decoder, e strict.Entry) {
		if t := plain(d, e); t.OK() && isZone(d, t) {
			to.timeZone = t
		}
	}
	return []strict.Key{
		{Name: "dates", Type: dates(&to.spans), Example: "[2026-12-25, 2026-12-28..2027-01-02]", Form: datesForm,
			Show: strict.Shown, Also: "days date holidays", Doc: "days, and ranges with both ends; at most 10000"},
		{Name: "cron", Type: strict.Type{Kind: strict.KindText, Decode: cron},
			Example: `"* * * * SAT,SUN"`, Form: filledForm, Show: strict.Shown, Also: "schedule",
			Doc: "days by a schedule of five fields, whose minute and hour are `*`"},
		{Name: "timeZone", Type: strict.Type{Kind: strict.KindText, Decode: timeZone}, Default: "that of the job",
			Example: "Europe/Berlin", Form: filledForm, Show: strict.Shown, Also: "tz zone location",
			Doc: "zone in which its days begin and end"},
	}
}

// calendarsInto reads the calendars. They stand above the jobs in the description of the table, and so are read before
// them.
func calendarsInto(to *Calendars, known calendars) strict.Type {
	var of draftDays
	return strict.Type{Kind: kindCalendars, Keys: calendarKeys(&of), Decode: func(d *strict.Decoder, e strict.Entry) {
		d.Pairs(e, func(name, val *yaml.Node) {
			was := d.Scope
			defer func() { d.Scope = was }()
			d.Scope = fmt.Sprintf("calendar %s: ", strict.Quoted(d.NameText(name)))
			before, c := len(d.Problems), known[name.Value]
			of = draftDays{}
			if days := of.read(d, e.Keys, name, val); len(d.Problems) == before {
				c.days, c.sum = days, digest(days.String(), 16)
				set(to, name.Value, days)
			}
			known[name.Value] = c
		})
		if len(known) > mostCalendars {
			d.Fail(e.At, "", "calendars: must have at most %d, has %d", mostCalendars, len(known))
		}
	}}
}

func (of *draftDays) read(d *strict.Decoder, keys []strict.Key, name, val *yaml.Node) *schedule.Days {
	if !calendarName.MatchString(name.Value) || len(name.Value) > calendarForm.Length {
		d.Fail(name, "", "its name must be letters, digits, -, _ and ., begin with a letter, "+
			"and have at most %d characters", calendarForm.Length)
	}
	e := strict.Entry{Key: strict.Key{Name: "calendars", Type: strict.Mapping(keys)}, At: name, Value: val}
	before := len(d.Problems)
	switch {
	case !e.IsMapping():
		d.Fail(val, "write {dates: [2026-12-25]}", "must be a mapping, not %s", strict.KindOf(val))
	case d.Plain(e):
		if found := d.Mapping(e); found["dates"] == nil && found["cron"] == nil && len(d.Problems) == before {
			d.Fail(name, "give it dates or cron", "it has no days")
		}
	}
	if len(d.Problems) > before {
		return nil
	}
	if len(of.spans) > mostDays {
		d.Fail(name, "", "must have at most %d dates, has %d", mostDays, len(of.spans))
		return nil
	}
	days, err := schedule.NewDays(name.Value, of.spans, of.cron.Value, of.timeZone.Value)
	if err != nil {
		d.Bad(cmp.Or(of.cron, of.timeZone), `for the days alone write "* * * * SAT,SUN"`,
			"%s", strict.Printable(err.Error()))
		return nil
	}
	if days.Empty() {
		d.Warn(name, "", "it has no days")
	}
	return days
}

// plain reads text without variables. A calendar is the same on all replicas.
func plain(d *strict.Decoder, e strict.Entry) strict.Text {
	if e.Value.Kind == yaml.ScalarNode && strings.Contains(e.Value.Value, "${") {
		d.Fail(e.Value, "write the value itself",
			"%s cannot have a variable: a calendar is the same on all replicas", e.Path)
		return strict.Text{}
	}
	t := d.Scalar(e, "!!str", "!!timestamp")
	if t.OK() && strings.TrimSpace(t.Value) == "" {
		d.Bad(t, "give it a value, or remove the key", "must not be empty")
		return strict.Text{}
	}
	return t
}

func dates(to *[]schedule.Span) strict.Type {
	return strict.Type{Kind: kindDates, Decode: func(d *strict.Decoder, e strict.Entry) {
		items, _ := d.List(e)
		for _, item := range items {
			item.Kind = strict.KindText
			t := plain(d, item)
			if !t.OK() {
				continue
			}
			first, last, isRange := strings.Cut(t.Value, "..")
			if !isRange {
				last = first
			}
			from, err := schedule.ParseDay(strings.TrimSpace(first))
			until, err2 := schedule.ParseDay(strings.TrimSpace(last))
			switch err = cmp.Or(err, err2); {
			case err != nil:
				d.Bad(t, "write 2026-12-25, or 2026-12-28..2027-01-02", "%v", err)
			case from > until:
				d.Bad(t, fmt.Sprintf("write %s..%s", until, from), "the range ends before it begins")
			default:
				*to = append(*to, schedule.Span{From: from, To: until})
			}
		}
	}}
}

// dayKeys are the keys of a job that leave out ticks or move them.
func dayKeys(j *draft, known calendars) []strict.Key {
	to := &j.Days
	return []strict.Key{
		{Name: "exclude", Type: calendarNames(j, &to.Exclude, known), Default: "[]",
			Example: "[holidays]", Form: strict.Form{Pattern: calendarForm.Pattern}, Show: strict.Shown, Common: true,
			Also: "excludeCalendars blackout except", Doc: "no tick on the days of these [calendars](calendars.md)"},
		{Name: "include", Type: calendarNames(j, &to.Include, known), Default: "[]", Example: "[tradingDays]",
			Form: strict.Form{Pattern: calendarForm.Pattern}, Show: strict.Shown, Common: true,
			Also: "includeCalendars only", Doc: "ticks only on days of these calendars; `[]` = on any day"},
		{Name: "onExcluded", Type: word(&to.OnExcluded), Default: "skip", Example: "next",
			Form: strict.Words(schedule.SkipExcluded, schedule.NextIncluded, schedule.PreviousIncluded),
			Show: strict.Shown, Common: true, Doc: "a tick of an excluded day: `skip` leaves it out, " +
				"`next` and `previous` [move it](calendars.md#days-that-have-no-ticks)"},
		{Name: "every", Type: strict.Type{Kind: strict.KindMapping, Keys: everyKeys(&to.Every), Decode: every},
			Form: strict.Form{Choice: []string{"weeks", "days"}, Chosen: true},
			Doc:  "keeps only the ticks of every n-th week or day"},
	}
}

func everyKeys(to *schedule.Every) []strict.Key {
	const one = "weeks or days"
	return []strict.Key{
		{Name: "weeks", Type: strict.Number(&to.Weeks), Default: one,
			Example: "2", Form: strict.Form{Least: 1, Most: mostEvery}, Show: strict.Shown, Also: "week",
			Doc: "ticks in one week of so many; weeks begin on the weekday of `from`; at most 1000"},
		{Name: "days", Type: strict.Number(&to.Days), Default: one,
			Example: "3", Form: strict.Form{Least: 1, Most: mostEvery}, Show: strict.Shown, Also: "day",
			Doc: "ticks on one day of so many; at most 1000"},
		{Name: "from", Type: day(&to.From), Default: strict.Required,
			Example: "2026-01-05", Form: dateForm, Show: strict.Shown, Also: "start since",
			Doc: "a day that has ticks, in the job's zone: weeks or days count from it, in both directions"},
	}
}

// calendarNames is a list of names of calendars, in place of those in defaults.
func calendarNames(j *draft, to *[]string, known calendars) strict.Type {
	return strict.Type{Kind: strict.KindTextList, Decode: func(d *strict.Decoder, e strict.Entry) {
		items, ok := d.List(e)
		if !ok {
			return
		}
		j.missing = slices.DeleteFunc(j.missing, within(e.Path))
		*to = nil
		for _, item := range items {
			t := d.Text(item)
			if _, is := known[t.Value]; t.OK() && !is {
				hint := "calendars at the top of the table has no days under this name"
				if near := strict.Nearest(t.Value, slices.Sorted(maps.Keys(known))); near != "" {
					hint = fmt.Sprintf("did you mean %q?", near)
				}
				d.Bad(t, t.IfShown(hint), "there is no such calendar")
			} else if t.OK() && !slices.Contains(*to, t.Value) {
				*to = append(*to, t.Value)
			}
		}
		d.NoteWhole(e)
	}}
}

func every(d *strict.Decoder, e strict.Entry) {
	const form = "write every: {weeks: 2, from: 2026-01-05}"
	switch {
	case e.IsNull():
		d.Fail(e.At, form, "every has no value")
		return
	case e.Value.Kind == yaml.ScalarNode:
		d.Fail(e.Value, form+`, or schedule: "@every 5m"`, "every must be a mapping, not %s", strict.KindOf(e.Value))
		return
	}
	found := d.Mapping(e)
	switch weeks, days := found["weeks"], found["days"]; {
	case !e.IsMapping():
		return
	case weeks == nil && days == nil:
		d.Fail(e.At, form, "every: weeks or days is missing")
	case strict.Present(weeks) && strict.Present(days):
		d.Fail(days, "keep one of them", "both every.weeks and every.days are set")
	}
	if found["from"] == nil {
		d.Fail(e.At, form, "every: from is missing")
	}
}

func day(to *schedule.Day) strict.Type {
	return strict.Accepted(kindDate, func(d *strict.Decoder, _ strict.Entry, t strict.Text) bool {
		day, err := schedule.ParseDay(t.Value)
		if err != nil {
			return d.Bad(t, "write it like 2026-01-05", "%v", err)
		}
		*to = day
		return true
	}, "!!str", "!!timestamp")
}

// finishDays returns the rules of a job's ticks; known is false if a calendar has problems, which are recorded.
func finishDays(d *strict.Decoder, job *draft, all calendars) (rules schedule.Rules, known bool) {
	j := &job.Days
	if j.OnExcluded == schedule.SkipExcluded {
		j.OnExcluded = ""
	}
	if len(j.Exclude)+len(j.Include) == 0 {
		if at := job.at["onExcluded"]; job.own("onExcluded") && j.OnExcluded != "" && !job.unset("exclude", "include") {
			d.Warn(at.Node, "", "onExcluded has no effect: the job has neither exclude nor include")
		}
		j.OnExcluded = ""
	}
	known, j.Sums = true, nil
	daysOf := func(names []string) (days []*schedule.Days) {
		for _, name := range names {
			c := all[name]
			known = known && c.days != nil
			days, j.Sums = append(days, c.days), append(j.Sums, c.sum)
		}
		return days
	}
	rules = schedule.Rules{Exclude: daysOf(j.Exclude), Include: daysOf(j.Include), OnExcluded: j.OnExcluded}
	if e := j.Every; e.Weeks > 0 || e.Days > 0 {
		rules.Every = e
	}
	return rules, known
}
