package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// shownTicks is how many next ticks of a job are shown.
const shownTicks = 3

// card is all about one job: a line for each fact, wrapped to the width of the terminal.
type card struct {
	status
	lines []string
}

// fact adds facts of one name, unless there is nothing to say. It removes control characters: text from Redis must not
// move the cursor of a terminal.
func (c *card) fact(name string, facts ...string) {
	for _, said := range facts {
		if said = text.OneLine(said); said != "" {
			c.lines = append(c.lines, hang(fmt.Sprintf("%-16s", name), said, c.width)...)
		}
	}
}

// card returns all about one job, without what may hold a secret: paths, arguments, headers and bodies.
func (s status) card(j config.Job) []string {
	state := s.States[j.Name]
	s.wide, s.prefix = true, ""
	c := &card{status: s}
	title := text.OneLine(fmt.Sprintf("%s: %s", j.Name, strings.ReplaceAll(string(s.Health(j)), "_", " ")))
	for _, line := range wrap(title, s.width) {
		c.lines = append(c.lines, s.colourOf(j).paint(line))
	}
	c.lines = append(c.lines, "")

	c.fact("description", j.Description)
	c.fact("owner", j.Owner)
	c.fact("runbook", j.Runbook)
	for _, name := range slices.Sorted(maps.Keys(j.Labels)) {
		c.fact("label", name+": "+j.Labels[name])
	}
	c.settings(j)

	c.fact("now", s.stateWords(j))
	if state.Streak > 0 {
		c.fact("failing since", fmt.Sprintf("%s, %d in a row", c.when(state.FailingSince), state.Streak))
	}
	if j.Guarantee != config.EveryReplica { // each replica has its own
		c.fact("last success", c.when(state.LastSuccess))
		c.fact("last failure", c.when(state.LastFailure))
	}
	c.runs(j)
	for _, r := range state.Running {
		c.fact("running", "on "+s.liveWords(r))
	}
	if len(state.Waiting) > 0 {
		c.fact("waiting", fmt.Sprintf("%s, the first for tick %s",
			waitingWords(state.Waiting), formatTime(state.Waiting[0].Tick)))
	}
	if t := s.Overdue(j); !t.IsZero() {
		c.fact("overdue", fmt.Sprintf("tick %s, and no replica runs it", c.when(t)))
	}
	if state.Missed != nil {
		missed := strings.TrimPrefix(s.missedWords(state.Missed), "missed ")
		c.fact("missed", fmt.Sprintf("%s; %d today", missed, state.MissedToday))
	}
	c.fact("paused", s.pauseNotes(state)...)
	c.fact("skipped", s.skipNotes(j)...)
	c.next(j)
	c.advice(j)
	return c.lines
}

// settings adds what the table says of the job.
func (c *card) settings(j config.Job) {
	if j.Schedule == nil { // without a readable table only the name is known
		return
	}
	c.fact("schedule", scheduleWords(j))
	what, said, _ := strings.Cut(view.Target(j), " ")
	c.fact(what, said)
	c.fact("settings", view.Settings(j))
}

// when writes an instant, and how long ago it was.
func (c *card) when(t time.Time) string {
	if t.IsZero() {
		return "none known"
	}
	t = t.Truncate(time.Second)
	return fmt.Sprintf("%s (%s)", formatTime(t), ago(c.Now, t))
}

// runs adds the last runs of the job: that of the schedule, of an every-replica job on each replica, and a newer one by
// hand.
func (c *card) runs(j config.Job) {
	add := func(name string, e *service.Entry) {
		if e != nil {
			c.fact(name, fmt.Sprintf("%s: %s", formatTime(e.Tick), c.runWords(e)))
			c.fact("", e.Detail)
		}
	}
	if results := c.Results(j); len(results) > 0 {
		for _, e := range results {
			add("last tick", &e)
		}
		return
	}
	add("last tick", c.LastScheduled(j))
	add("by hand", c.byHand(j))
}

// next adds the next ticks, also in the zone of the schedule.
func (c *card) next(j config.Job) {
	zone, name := view.Zone(j.TimeZone), "next"
	for t, n := c.Next(j), 0; !t.IsZero() && n < shownTicks; t, n = j.Schedule.Next(t), n+1 {
		said := fmt.Sprintf("%s (in %s)", formatTime(t), formatDuration(t.Sub(c.Now)))
		if zone != time.UTC {
			said += ", " + t.In(zone).Format("Mon 15:04:05 MST")
		}
		c.fact(name, said)
		name = ""
	}
	if name != "" {
		c.fact("next", "none")
	}
}

// advice adds the commands that tell more, or mend it.
func (c *card) advice(j config.Job) {
	state, name := c.States[j.Name], text.OneLine(j.Name)
	c.lines = append(c.lines, "")
	advise := func(command, why string) {
		c.lines = append(c.lines, cut(fmt.Sprintf("%-40s  %s", "solotick "+command, why), c.width))
	}
	advise("why "+name, "its last tick, and what keeps it from firing")
	if c.Health(j) == view.Failing {
		advise("history "+name+" --failed", "how its runs failed")
	}
	if state.Streak > 0 {
		advise("rerun "+name, "run the failed tick again")
	}
	if len(state.Running) > 0 {
		advise("cancel "+name, "end its run")
	}
	if state.Paused != nil {
		advise("resume "+name, "end its pause")
	}
}
