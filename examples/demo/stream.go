package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// gather is how long a tick's line waits for the logs of all replicas, which arrive within about 25 ms.
const gather = 250 * time.Millisecond

// stream turns the replicas' logs into one readable sequence of lines.
type stream struct {
	out    io.Writer
	colour bool
	open   map[tickOf]*row
	fires  map[tickOf]string  // the replica that fired it last
	unmet  map[tickOf]reasons // why it was skipped, for the summary
	runs   map[string]string  // job → the replica that runs it
	jobs   int                // width of the longest job's name
	from   time.Time          // ticks before this are not shown
	err    error              // of the first line that could not be written
}

// tickOf is one tick of one job.
type tickOf struct {
	job  string
	tick int64 // Unix milliseconds
}

func (k tickOf) time() time.Time { return time.UnixMilli(k.tick) }

// reasons is a set of reasons for skips of a tick.
type reasons map[string]bool

// row is a tick whose log lines are being gathered.
type row struct {
	first   event
	due     time.Time // when to print it
	fired   []event
	skipped []event
	ended   []event
}

func newStream(out io.Writer, colour bool) *stream {
	s := &stream{out: out, colour: colour, open: map[tickOf]*row{}, fires: map[tickOf]string{},
		unmet: map[tickOf]reasons{}, runs: map[string]string{}}
	for _, j := range jobs() {
		s.jobs = max(s.jobs, len(j.name))
	}
	return s
}

// take takes one line of a log.
func (s *stream) take(e event) {
	if !e.Tick.IsZero() && e.Tick.Before(s.from) {
		return
	}
	defer s.remember(e)
	k := tickOf{e.Job, e.Tick.UnixMilli()}
	switch r := s.open[k]; {
	case e.Msg == "skipped":
		if s.unmet[k] == nil {
			s.unmet[k] = reasons{}
		}
		first := len(s.unmet[k]) == 0 && s.fires[k] == ""
		if s.unmet[k][e.Reason] = true; r == nil && first {
			r = s.gather(k, e)
		}
		if r != nil {
			r.skipped = append(r.skipped, e)
		}
	case e.Msg == "fired" && (e.Kind == "" || e.Job == everywhere):
		s.fires[k] = e.from
		if r == nil {
			r = s.gather(k, e)
		}
		r.fired = append(r.fired, e)
	case e.Msg == "fired":
		s.flush(k)
		s.late(k, e)
	case e.Msg == "finished" && r != nil && e.Outcome != "interrupted":
		r.ended = append(r.ended, e)
	case e.Msg == "finished":
		s.flush(k)
		s.finished(e)
	case e.Msg == "trying again":
		s.flush(k)
		s.line(e, yellow("✗ failed")+dim(", tries again in "+round(e.Wait)))
	case e.Msg == killed:
		s.flushDue(e.Time.Add(gather))
		s.line(e, bold(red("✗ killed with SIGKILL"))+dim(" while it ran "+e.Job))
	case e.Msg == back:
		s.line(e, green("started again"))
	case e.Level == "ERROR":
		s.line(e, red(strings.TrimSpace(e.Msg+" "+e.Err)))
	}
}

// remember records which replica runs which job.
func (s *stream) remember(e event) {
	switch e.Msg {
	case "fired":
		s.runs[e.Job] = e.from
	case "finished":
		if e.Outcome != "interrupted" || s.runs[e.Job] == e.Dead {
			delete(s.runs, e.Job)
		}
	}
}

func (s *stream) gather(k tickOf, e event) *row {
	r := &row{first: e, due: time.Now().Add(gather)}
	s.open[k] = r
	return r
}

// late handles a tick that was not fired on schedule.
func (s *stream) late(k tickOf, e event) {
	from := s.fires[k]
	s.fires[k] = e.from
	switch {
	case e.Kind == "takeover" && from != "":
		s.line(e, bold(green("↻ took over"))+" "+clock(e.Tick)+" from "+s.name(from)+", runs it again")
	case e.Kind == "takeover":
		s.line(e, bold(green("↻ took over"))+" "+clock(e.Tick))
	case e.Kind == "handover":
		s.line(e, green("● fired")+dim(" "+clock(e.Tick)+", handed over"))
	default:
		s.line(e, green("● fired")+dim(" "+clock(e.Tick)+", which had to wait"))
	}
}

// flushDue prints the ticks that have waited long enough, in the order in which they began.
func (s *stream) flushDue(now time.Time) {
	var due []tickOf
	for k, r := range s.open {
		if !r.due.After(now) {
			due = append(due, k)
		}
	}
	slices.SortFunc(due, func(a, b tickOf) int {
		return cmp.Or(s.open[a].first.Time.Compare(s.open[b].first.Time), cmp.Compare(a.job, b.job))
	})
	for _, k := range due {
		s.flush(k)
	}
}

func (s *stream) flush(k tickOf) {
	r := s.open[k]
	if r == nil {
		return
	}
	delete(s.open, k)
	switch {
	case k.job == everywhere && len(r.fired) > 0:
		s.line(event{Time: k.time(), Job: k.job, from: "all"}, green("● fired")+dim(" on "+s.names(r.fired)))
	case len(r.fired) > 0:
		text := green("● fired")
		for _, e := range r.ended {
			text = s.verdict(e, text)
		}
		if n := len(r.skipped); n > 0 {
			text += dim("    " + s.names(r.skipped) + " skipped")
		}
		s.line(event{Time: k.time(), Job: k.job, from: r.fired[0].from}, text)
	default:
		s.line(event{Time: k.time(), Job: k.job}, s.why(r))
		for _, e := range r.ended {
			s.finished(e)
		}
	}
}

// why returns the text for a tick that no replica has fired.
func (s *stream) why(r *row) string {
	on := ""
	if by := s.runs[r.first.Job]; by != "" {
		on = dim(" on ") + s.name(by)
	}
	reason := r.first.Reason
	for _, e := range r.skipped { // the other replicas report a queued tick as fired elsewhere
		if e.Reason == "queued" || e.Reason == "overlap" {
			reason = e.Reason
		}
	}
	switch {
	case reason == "queued":
		return yellow("○ waits") + dim(" for the end of the run") + on
	case reason == "overlap" && r.first.Job == queueing:
		return yellow("○ skipped") + dim(": one waits already")
	case reason == "overlap":
		return yellow("○ skipped") + dim(": it still runs") + on
	default:
		return yellow("○ skipped") + dim(": "+strings.ReplaceAll(reason, "_", " "))
	}
}

// verdict adds the outcome of a short run, unless it succeeded.
func (s *stream) verdict(e event, text string) string {
	switch {
	case e.Outcome == "succeeded":
		return text
	case e.Outcome == "declined":
		return text + yellow(", the app says 409")
	}
	return text + red(" "+strings.ReplaceAll(e.Outcome, "_", " ")+" "+e.Err)
}

// finished handles the end of a longer run.
func (s *stream) finished(e event) {
	switch {
	case e.Outcome == "interrupted" && e.Job == reported:
		// The line of the takeover says so.
	case e.Outcome == "interrupted":
		s.line(e, red("✗ "+clock(e.Tick)+" died with "+e.Dead)+dim(", is not run again"))
	case e.Outcome == "succeeded" && e.Attempt > 1:
		s.line(e, green("✓ done")+dim(fmt.Sprintf(" at attempt %d", e.Attempt)))
	case e.Outcome == "succeeded":
		s.line(e, dim("✓ done after "+round(e.Duration)))
	default:
		s.line(e, s.verdict(e, red("✗")))
	}
}

func (s *stream) names(events []event) string {
	var names []string
	for _, e := range events {
		if !slices.Contains(names, e.from) {
			names = append(names, e.from)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Compare(slices.Index(replicas, a), slices.Index(replicas, b))
	})
	return strings.Join(names, ", ")
}

// line prints one.
func (s *stream) line(e event, text string) {
	job := e.Job
	if e.Msg == killed || e.Msg == back {
		job = ""
	}
	who := e.from
	if e.from == "" {
		who = "–"
	}
	fill := strings.Repeat(" ", max(5-len([]rune(who)), 0)) // escapes have no width
	s.print(fmt.Sprintf("%s  %-*s  %s%s  %s", dim(clock(e.Time)), s.jobs, job, s.name(who), fill, text))
}

func (s *stream) print(line string) {
	if !s.colour {
		line = plain(line)
	}
	if _, err := fmt.Fprintln(s.out, line); err != nil && s.err == nil {
		s.err = err
	}
}

func clock(t time.Time) string { return t.Local().Format("15:04:05") }

// round rounds a duration to tenths of a second, or to milliseconds.
func round(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}
