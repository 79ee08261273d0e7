package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/config/strict"
)

// Kinds of values, as the user reads them.
const (
	kindCalendars = "mapping of calendars"
	kindDates     = "list of dates"
	kindDate      = "date"
	kindSchedule  = "text or list of text"
)

const (
	mostCalendars   = 100
	mostDays        = 10_000 // dates of one calendar
	mostExpressions = 50
	mostOfDynamic   = 10 // expressions of one dynamic job: each takes up to 700 bytes, and a thousand jobs must fit into 64 MiB
	mostEvery       = 1000
)

var (
	calendarForm = strict.Form{Pattern: `^[A-Za-z][A-Za-z0-9_.-]*$`, Length: 63}
	calendarName = regexp.MustCompile(calendarForm.Pattern)
	datesForm    = strict.Form{Pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}(\.\.[0-9]{4}-[0-9]{2}-[0-9]{2})?$`}
	dateForm     = strict.Form{Pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}$`}
)

// Calendars are sets of whole days by name.
type Calendars map[string]*schedule.Days

// Days says which ticks of a job's schedule the job has, and which move to another day.
type Days struct {
	Exclude    []string       `json:",omitempty"` // names of calendars
	Include    []string       `json:",omitempty"`
	OnExcluded schedule.Shift `json:",omitempty"` // "" = skip
	Every      schedule.Every `json:",omitzero"`
	Sums       []string       `json:",omitempty"` // of what the calendars say: those of Exclude, then of Include
}

// rulesOfTicks has what the fingerprint needs besides the schedule's text; nothing for most jobs, which keep the
// fingerprint that they had before there were rules.
func (j *Job) rulesOfTicks() (all []any) {
	if d := j.Days; len(d.Exclude)+len(d.Include) > 0 || d.Every != (schedule.Every{}) {
		excluded := min(len(d.Exclude), len(d.Sums))
		all = append(all, d.Sums[:excluded], d.Sums[excluded:], d.OnExcluded, d.Every)
	}
	if j.Schedule.Anchored() {
		all = append(all, "from start")
	}
	return all
}

// calendar is a calendar of the table as it was read.
type calendar struct {
	days *schedule.Days // nil = it has problems
	sum  string
	at   *yaml.Node
}

// draftDays is a calendar that is being read.
type draftDays struct {
	spans          []schedule.Span
	cron, timeZone strict.Text
}

// calendarKeys are the keys of one calendar. Only readCalendars decodes them, because their values go to a calendar that
// it is reading.
func (d *decoder) calendarKeys() []strict.Key { return d.keysOfCalendar(nil) }

func (d *decoder) keysOfCalendar(to *draftDays) []strict.Key {
	return []strict.Key{
		{Name: "dates", Kind: kindDates, Default: strict.None, Example: "[2026-12-25, 2026-12-28..2027-01-02]", Form: datesForm,
			Show: strict.Shown, Also: []string{"days", "date", "holidays"},
			Decode: func(e strict.Entry) { d.dates(e, to) },
			Doc:    "days, and ranges of days with both ends; at most 10000"},
		{Name: "cron", Kind: strict.KindText, Default: strict.None, Example: `"* * * * SAT,SUN"`, Form: filledForm,
			Show: strict.Shown, Also: []string{"schedule"},
			Decode: func(e strict.Entry) { d.plain(e, &to.cron) },
			Doc:    "days by five fields of a schedule, whose minute and hour are `*`"},
		{Name: "timeZone", Kind: strict.KindText, Default: "that of the job", Example: "Europe/Berlin", Form: filledForm,
			Show: strict.Shown, Also: []string{"tz", "zone", "location"},
			Decode: func(e strict.Entry) {
				if d.plain(e, &to.timeZone); to.timeZone.OK() && !d.isZone(to.timeZone) {
					to.timeZone = strict.Text{}
				}
			},
			Doc: "zone in which its days begin and end"},
	}
}

// readCalendars reads the calendars. They stand above the jobs in the description of the table, and so are read before
// them.
func (d *decoder) readCalendars(e strict.Entry) {
	d.calendars = map[string]calendar{}
	d.Pairs(e, func(name, val *yaml.Node) {
		was := d.Scope
		defer func() { d.Scope = was }()
		d.Scope = fmt.Sprintf("calendar %s: ", strict.Quoted(d.NameText(name)))
		before := len(d.Problems)
		c := calendar{at: name}
		if c.days = d.readCalendar(name, val); len(d.Problems) > before {
			c.days = nil
		}
		if d.calendars[name.Value] = c; c.days == nil {
			return
		}
		c.sum = digest(c.days.String(), 16)
		d.calendars[name.Value] = c
		if d.table.Calendars == nil {
			d.table.Calendars = Calendars{}
		}
		d.table.Calendars[name.Value] = c.days
	})
	if len(d.calendars) > mostCalendars {
		d.Fail(e.At, "", "calendars: must have at most %d, has %d", mostCalendars, len(d.calendars))
	}
}

func (d *decoder) readCalendar(name, val *yaml.Node) *schedule.Days {
	if !calendarName.MatchString(name.Value) || len(name.Value) > calendarForm.Length {
		d.Fail(name, "", "its name must be letters, digits, -, _ and ., begin with a letter, and have at most %d characters", calendarForm.Length)
	}
	var of draftDays
	e := strict.Entry{Key: strict.Key{Name: "calendars", Kind: strict.KindMapping, Keys: d.keysOfCalendar(&of)}, At: name, Value: val}
	before := len(d.Problems)
	switch {
	case val.Kind != yaml.MappingNode && !e.IsNull():
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
		at := of.cron
		if !at.OK() {
			at = of.timeZone
		}
		d.Bad(at, `for the days alone write "* * * * SAT,SUN"`, "%s", strict.Printable(err.Error()))
		return nil
	}
	if days.Empty() {
		d.Warn(name, "", "it has no days")
	}
	return days
}

// plain reads text without variables. A calendar is the same on all replicas.
func (d *decoder) plain(e strict.Entry, to *strict.Text) {
	if e.Value.Kind == yaml.ScalarNode && strings.Contains(e.Value.Value, "${") {
		d.Fail(e.Value, "write the value itself", "%s cannot have a variable: a calendar is the same on all replicas", e.Path)
		return
	}
	t := d.Scalar(e, "!!str", "!!timestamp")
	if t.OK() && strings.TrimSpace(t.Value) == "" {
		d.Bad(t, "give it a value, or remove the key", "must not be empty")
		return
	}
	*to = t
}

func (d *decoder) dates(e strict.Entry, to *draftDays) {
	items, _ := d.List(e)
	for _, item := range items {
		item.Kind = strict.KindText
		var t strict.Text
		if d.plain(item, &t); !t.OK() {
			continue
		}
		first, last, isRange := strings.Cut(t.Value, "..")
		if !isRange {
			last = first
		}
		from, err := schedule.ParseDay(strings.TrimSpace(first))
		to2, err2 := schedule.ParseDay(strings.TrimSpace(last))
		switch {
		case err != nil || err2 != nil:
			if err == nil {
				err = err2
			}
			d.Bad(t, "write 2026-12-25, or 2026-12-28..2027-01-02", "%v", err)
		case from > to2:
			d.Bad(t, fmt.Sprintf("write %s..%s", to2, from), "the range ends before it begins")
		default:
			to.spans = append(to.spans, schedule.Span{From: from, To: to2})
		}
	}
}

// dayKeys are the keys of a job that leave out ticks or move them.
func (d *decoder) dayKeys() []strict.Key {
	return []strict.Key{
		{Name: "exclude", Kind: strict.KindTextList, Default: "[]", Example: "[holidays]", Form: strict.Form{Pattern: calendarForm.Pattern},
			Show: strict.Shown, Common: true, Also: []string{"excludeCalendars", "blackout", "except"},
			Decode: func(e strict.Entry) { d.calendarsOf(e, &d.job.Days.Exclude) },
			Doc:    "no tick on the days of these [calendars](calendars.md)"},
		{Name: "include", Kind: strict.KindTextList, Default: "[]", Example: "[tradingDays]", Form: strict.Form{Pattern: calendarForm.Pattern},
			Show: strict.Shown, Common: true, Also: []string{"includeCalendars", "only"},
			Decode: func(e strict.Entry) { d.calendarsOf(e, &d.job.Days.Include) },
			Doc:    "ticks only on the days of one of these calendars; `[]` = on any day"},
		{Name: "onExcluded", Kind: strict.KindText, Default: string(schedule.SkipExcluded), Example: string(schedule.NextIncluded),
			Form: strict.Words(schedule.SkipExcluded, schedule.NextIncluded, schedule.PreviousIncluded),
			Show: strict.Shown, Common: true,
			Decode: func(e strict.Entry) { oneOf(d, e, &d.job.Days.OnExcluded) },
			Doc:    "a tick of a day that `exclude` or `include` rules out: `skip` leaves it out, `next` and `previous` move it to the same time of the nearest day that is not ruled out"},
		{Name: "every", Kind: strict.KindMapping, Default: strict.None, Keys: d.everyKeys(), Decode: d.every,
			Form: strict.Form{Choice: []string{"weeks", "days"}, Chosen: true},
			Doc:  "keeps the ticks of every n-th week or day alone"},
	}
}

func (d *decoder) everyKeys() []strict.Key {
	return []strict.Key{
		{Name: "weeks", Kind: strict.KindNumber, Default: "weeks or days", Example: "2", Form: strict.Form{Least: 1, Most: mostEvery},
			Show: strict.Shown, Also: []string{"week"},
			Decode: func(e strict.Entry) { d.Number(e, &d.job.Days.Every.Weeks) },
			Doc:    "ticks in one week of so many; a week begins on the weekday of `from`; at most 1000"},
		{Name: "days", Kind: strict.KindNumber, Default: "weeks or days", Example: "3", Form: strict.Form{Least: 1, Most: mostEvery},
			Show: strict.Shown, Also: []string{"day"},
			Decode: func(e strict.Entry) { d.Number(e, &d.job.Days.Every.Days) },
			Doc:    "ticks on one day of so many; at most 1000"},
		{Name: "from", Kind: kindDate, Default: strict.Required, Example: "2026-01-05", Form: dateForm,
			Show: strict.Shown, Also: []string{"start", "since"},
			Decode: d.everyFrom,
			Doc:    "a day that has ticks, in the job's zone: the weeks or days count from it, in both directions"},
	}
}

// calendarsOf reads names of calendars, in place of those in defaults.
func (d *decoder) calendarsOf(e strict.Entry, to *[]string) {
	items, ok := d.List(e)
	if !ok {
		return
	}
	d.job.missing = slices.DeleteFunc(d.job.missing, within(e.Path))
	*to = nil
	for _, item := range items {
		item.Kind = strict.KindText
		t := d.Text(item)
		if !t.OK() {
			continue
		}
		if _, known := d.calendars[t.Value]; !known {
			hint := "calendars at the top of the table has no days under this name"
			if near := strict.Nearest(t.Value, slices.Sorted(maps.Keys(d.calendars))); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			if t.Opaque {
				hint = ""
			}
			d.Bad(t, hint, "there is no such calendar")
			continue
		}
		if !slices.Contains(*to, t.Value) {
			*to = append(*to, t.Value)
		}
	}
	d.noteMapping(e)
}

func (d *decoder) every(e strict.Entry) {
	const form = "write every: {weeks: 2, from: 2026-01-05}"
	if e.IsNull() {
		d.Fail(e.At, form, "every has no value")
		return
	}
	if e.Value.Kind == yaml.ScalarNode {
		d.Fail(e.Value, form+`, or schedule: "@every 5m"`, "every must be a mapping, not %s", strict.KindOf(e.Value))
		return
	}
	found := d.Mapping(e)
	d.noteMapping(e)
	switch weeks, days := found["weeks"], found["days"]; {
	case e.Value.Kind != yaml.MappingNode:
	case weeks == nil && days == nil:
		d.Fail(e.At, form, "every: weeks or days is missing")
	case strict.Present(weeks) && strict.Present(days):
		d.Fail(days, "keep one of them", "both every.weeks and every.days are set")
	}
	if e.Value.Kind == yaml.MappingNode && found["from"] == nil {
		d.Fail(e.At, form, "every: from is missing")
	}
}

func (d *decoder) everyFrom(e strict.Entry) {
	t := d.Scalar(e, "!!str", "!!timestamp")
	if !t.OK() {
		return
	}
	day, err := schedule.ParseDay(t.Value)
	if err != nil {
		d.Bad(t, "write it like 2026-01-05", "%v", err)
		return
	}
	d.job.Days.Every.From = day
	d.note(e, t)
}

// schedule reads one schedule, or a list of them.
func (d *decoder) schedule(e strict.Entry) {
	items, most := []strict.Entry{e}, mostExpressions
	if d.job.Dynamic {
		most = mostOfDynamic
	}
	if e.Value.Kind == yaml.SequenceNode {
		items, _ = d.List(e)
		switch n := len(items); {
		case n == 0:
			d.Fail(e.Value, `write five fields, "0 9 * * MON-FRI", or @hourly, @every 30s, …`, "schedule must not be empty")
			return
		case n > most:
			d.Fail(e.Value, "", "schedule must have at most %d items, has %d", most, n)
			return
		}
	}
	d.job.exprs = nil
	for _, item := range items {
		item.Kind = strict.KindText
		t := d.Text(item)
		if t.OK() && strings.TrimSpace(t.Value) == "" {
			d.Bad(t, `write five fields, "0 9 * * MON-FRI", or @hourly, @every 30s, …`, "must not be empty")
			continue
		}
		if t.OK() {
			d.job.exprs = append(d.job.exprs, t)
		}
	}
	switch {
	case len(d.job.exprs) < len(items):
	case e.Value.Kind == yaml.SequenceNode:
		d.note(e, strict.Text{Node: e.Value, Label: e.Path})
	default:
		d.note(e, d.job.exprs[0])
	}
}

// parseSchedule parses all expressions of a job's schedule.
func (d *decoder) parseSchedule(o schedule.Options) (*schedule.Schedule, error) {
	var exprs []string
	for _, t := range d.job.exprs {
		exprs = append(exprs, t.Value)
	}
	return d.schedules.ParseAll(exprs, o)
}

// wrongExpression returns the expression of a list that is wrong by itself, if one is.
func (d *decoder) wrongExpression(o schedule.Options) strict.Text {
	if len(d.job.exprs) > 1 {
		for _, t := range d.job.exprs {
			if _, err := schedule.Parse(t.Value, schedule.Options{TimeZone: o.TimeZone, Job: o.Job}); err != nil {
				return t
			}
		}
	}
	return strict.Text{}
}

// finishDays returns the rules of a job's ticks; known is false if a calendar has problems, which are recorded.
func (d *decoder) finishDays() (rules schedule.Rules, known bool) {
	j := &d.job.Days
	if j.OnExcluded == schedule.SkipExcluded {
		j.OnExcluded = ""
	}
	if len(j.Exclude)+len(j.Include) == 0 {
		if at := d.job.at["onExcluded"]; d.job.own("onExcluded") && j.OnExcluded != "" && !d.job.unset("exclude", "include") {
			d.Warn(at.Node, "", "onExcluded has no effect: the job has neither exclude nor include")
		}
		j.OnExcluded = ""
	}
	known, j.Sums = true, nil
	named := func(names []string) (all []*schedule.Days) {
		for _, name := range names {
			c := d.calendars[name]
			known = known && c.days != nil
			all, j.Sums = append(all, c.days), append(j.Sums, c.sum)
		}
		return all
	}
	rules = schedule.Rules{Exclude: named(j.Exclude), Include: named(j.Include), OnExcluded: j.OnExcluded}
	if e := j.Every; e.Weeks > 0 || e.Days > 0 {
		rules.Every = e
	}
	return rules, known
}
