package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// The calendars of the class.
const (
	closedDays = "closed" // has the day before the midnight or the one after, and a reload may change which
	openDays   = "open"
)

// calendars: a midnight passes. Some jobs have ticks before it alone, and some after it: by a calendar, by every second
// day, or since the ticks of a day have moved. Replicas or Redis may be away then, and the table may change.
func (p *Plan) calendars(r *rand.Rand) {
	p.willing(r)
	in := pick(r, "UTC", "Europe/Berlin", "Asia/Tokyo", "America/New_York", "Asia/Kolkata")
	lead := (16*time.Second + upTo(r, 8*time.Second)).Truncate(time.Millisecond)
	midnight := time.Date(2000, time.January, 4+r.IntN(7), 0, 0, 0, 0, zone(in))
	p.From = midnight.Sub(dawn) - lead
	days := [2]time.Time{midnight.AddDate(0, 0, -1), midnight}
	chosen := r.IntN(2) // the day before or the one after
	p.Calendars = []Calendar{{Name: closedDays, Dates: []string{dateOf(days[chosen])}},
		{Name: openDays, Dates: []string{dateOf(midnight.AddDate(0, 0, -4)), dateOf(days[r.IntN(2)]),
			dateOf(midnight.AddDate(0, 0, 3))}}}
	own := r.IntN(3) == 0 // then the calendars have the zone, and not the jobs
	if own {
		p.Calendars[0].Zone, p.Calendars[1].Zone = in, in
	}
	for i := range p.Jobs {
		j := &p.Jobs[i]
		if !own {
			j.Zone = in
		}
		j.Period = time.Duration(pick(r, 2, 3, 5, 7)) * time.Second
		j.Days = p.daysOf(r, i, days, own)
		if len(j.Days.Steps) > 0 {
			j.Period = time.Duration(slices.Min(j.Days.Steps)) * time.Second
		}
		j.Jitter = min(j.Jitter, j.Period/4)
		if len(j.Days.Steps) > 1 {
			j.Jitter = 0
		}
		j.Takes = pick(r, [2]time.Duration{0, 100 * time.Millisecond}, [2]time.Duration{0, j.Period},
			[2]time.Duration{j.Period, 2 * j.Period})
	}
	p.awayAt(r, lead)
	p.changesDays(r, lead, days)
	p.Lasts = max(p.Lasts, lead+26*time.Second)
}

func dateOf(t time.Time) string { return t.Format(time.DateOnly) }

// daysOf are the rules of a job. The first one is that of which the table may change.
func (p *Plan) daysOf(r *rand.Rand, i int, days [2]time.Time, own bool) *Days {
	d := &Days{Weekday: -1}
	kind := pick(r, "agree", "second", "include", "moved", "moved")
	switch {
	case i == 0:
		d.Exclude = closedDays
		return d
	case i == 1:
		kind = "agree"
	case own && kind != "include": // what counts days on the job's own clock needs the job's zone
		kind = "agree"
	}
	switch kind {
	case "agree": // every 12, 20 or 30 seconds both have a tick, which is one
		d.Steps = pick(r, []int{4, 6}, []int{4, 10}, []int{6, 10}, []int{5, 15})
		d.Exclude = pick(r, "", "", closedDays)
	case "second":
		d.Second = dateOf(days[r.IntN(2)].AddDate(0, 0, 2*r.IntN(9)-8))
		d.Steps = pick(r, nil, []int{5}, []int{6, 10})
	case "include":
		d.Include = openDays
	case "moved": // all ticks of the closed day are on the other one, which has none of its own
		d.Steps, d.Exclude, d.Moves = []int{pick(r, 3, 4, 5)}, closedDays, 1
		closed := slices.IndexFunc(days[:], func(t time.Time) bool { return p.Calendars[0].Dates[0] == dateOf(t) })
		if closed == 1 {
			d.Moves = -1
		}
		d.Weekday = int(days[closed].Weekday())
	}
	return d
}

// awayAt lets Redis or all replicas be away at midnight in most seeds.
func (p *Plan) awayAt(r *rand.Rand, midnight time.Duration) {
	at, lasts := midnight-upTo(r, 5*time.Second), 2*time.Second+upTo(r, 6*time.Second)
	switch kind := pick(r, "", "", "redis refuses", redisStalls, forgets, "crash", "stop", "one"); kind {
	case "":
	case "one":
		p.Faults = append(p.Faults, Fault{At: at, Kind: pick(r, "crash", "stall", "cut"), Replica: -1, For: lasts})
	case "crash", "stop":
		for place := range p.Replicas {
			p.Faults = append(p.Faults, Fault{At: at + upTo(r, time.Second), Kind: kind, Replica: place, For: lasts})
		}
	default:
		p.Faults = append(p.Faults, Fault{At: at, Kind: kind, For: lasts})
	}
}

// changesDays changes which days the first job excludes, in half of the seeds, while runs of it live. Then all may be
// as before.
func (p *Plan) changesDays(r *rand.Rand, midnight time.Duration, days [2]time.Time) {
	if r.IntN(2) == 0 {
		return
	}
	p.Jobs[0].Takes = [2]time.Duration{p.Jobs[0].Period / 2, 2 * p.Jobs[0].Period}
	x := Reload{At: midnight - 6*time.Second + upTo(r, 14*time.Second), Job: p.Jobs[0].Name,
		Kind: pick(r, "excludes", "calendar")}
	before := closedDays
	if x.Kind == "calendar" {
		before = p.Calendars[0].Dates[0]
		for _, d := range days {
			if dateOf(d) != before {
				x.To = dateOf(d)
			}
		}
	}
	if r.IntN(3) == 0 {
		x.Late = map[int]time.Duration{r.IntN(len(p.Replicas)): 2*time.Second + upTo(r, 4*time.Second)}
	}
	p.Reloads = append(p.Reloads, x)
	if r.IntN(2) == 0 {
		x.At, x.To = x.At+7*time.Second+upTo(r, 4*time.Second), before
		p.Reloads = append(p.Reloads, x)
	}
}

// hasTick reports whether any version of the table gives a job a tick at an instant.
func (w *world) hasTick(job string, at time.Time) bool {
	for n := range w.tables {
		if j := row(w.tables[n], job); j != nil && w.isTick(j, at) {
			return true
		}
	}
	return false
}

// checkDays: an excluded instant is no tick. Nothing is claimed for it, and it has no fate.
func (w *world) checkDays() {
	for _, c := range w.redis.claims.all {
		if w.plan.job(c.job) == &timerNature || c.kind == "manual" {
			continue
		}
		if !w.hasTick(c.job, c.tick) {
			w.violatedAt(c.won, "days", c.job, "%s (%s) was claimed by %s, and is no tick of the job",
				c.tick, c.kind, c.replica.process)
		}
	}
	for _, f := range w.redis.claims.fates.said {
		if !w.hasTick(f.job, f.tick) {
			w.violatedAt(f.at, "days", f.job, "%s is no tick of the job, and has the fate %q (%s)",
				f.tick, f.what, f.by)
		}
	}
	for _, name := range w.plan.names() {
		for _, i := range w.keptOf(name).intervals {
			if !w.hasTick(name, time.UnixMilli(i.first)) || !w.hasTick(name, time.UnixMilli(i.last)) {
				w.violated("days", name,
					"Redis keeps the fate %q of %d ticks from %s to %s, which are not both ticks of the job",
					i.fate, i.count, time.UnixMilli(i.first).UTC(), time.UnixMilli(i.last).UTC())
			}
		}
	}
	w.meetDays()
}

// meetDays counts what jobs had of the days around the midnight.
func (w *world) meetDays() {
	if len(w.plan.Calendars) == 0 {
		return
	}
	end := w.began.Add(w.plan.Lasts)
	for i := range w.tables[0].Jobs {
		j := &w.tables[0].Jobs[i]
		t := w.ticksOf(j)
		first, last := t.next(w.began), t.last(end)
		switch {
		case last.Before(w.began):
			w.met["jobs without a tick on either day"]++
		case first.Sub(w.began) > 15*time.Second:
			w.met["jobs whose ticks begin at midnight"]++
		case end.Sub(last) > 15*time.Second:
			w.met["jobs whose ticks end at midnight"]++
		}
		if t.days.Moves != 0 && !last.Before(w.began) {
			w.met["jobs whose ticks have moved to another day"]++
		}
		if len(t.steps) < 2 {
			continue
		}
		for tick := first; tick.Before(end); tick = t.next(tick) {
			if !slices.ContainsFunc(t.steps, func(n int64) bool { return tick.Unix()%n != 0 }) {
				w.met["ticks on which two schedules agree"]++
			}
		}
	}
}
