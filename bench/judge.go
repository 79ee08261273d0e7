package main

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// outcome is what the app saw of one contender under one fault.
type outcome struct {
	Fault      string `json:"fault"`
	Contender  string `json:"contender"`
	Ticks      int    `json:"ticks"`
	Doubled    int    `json:"doubled"`    // requests for a tick beyond the first one
	Lost       int    `json:"lost"`       // ticks without a request
	Overlapped int    `json:"overlapped"` // runs that began while the app was at work for the same job
	Late       int    `json:"late"`       // ticks whose first request came more than a second late
	Early      int    `json:"early"`      // ticks whose first request came more than 10 ms early
	NotRun     string `json:"notRun,omitempty"`
}

// judge compares what the app saw with the ticks that were due. Ticks of the long job are not counted, its overlaps
// are.
func judge(seen []rig.Request, jobs []job, begin, end time.Time) (o outcome) {
	type tickOf struct {
		job  string
		tick int64
	}
	first, count := map[tickOf]time.Time{}, map[tickOf]int{}
	periods := map[string]time.Duration{}
	for _, j := range jobs {
		periods[j.Name] = time.Duration(j.Every) * time.Second
	}
	busy := map[string]time.Time{} // until when the app is at work for a job
	for _, r := range seen {
		tick := r.Tick.Truncate(periods[r.Job])
		at := tickOf{r.Job, tick.Unix()}
		if count[at]++; count[at] == 1 {
			first[at] = r.Arrived
		}
		if !tick.Before(begin) && tick.Before(end) && r.Arrived.Before(busy[r.Job]) {
			o.Overlapped++
		}
		ended := r.Ended
		if ended.IsZero() {
			ended = end.Add(time.Hour)
		}
		if ended.After(busy[r.Job]) {
			busy[r.Job] = ended
		}
	}
	for _, j := range jobs {
		if j.Name == longJob {
			continue
		}
		period := periods[j.Name]
		for tick := begin.Truncate(period).Add(period); tick.Before(end); tick = tick.Add(period) {
			at := tickOf{j.Name, tick.Unix()}
			o.Ticks++
			if count[at] == 0 {
				o.Lost++
				continue
			}
			o.Doubled += count[at] - 1
			switch delay := first[at].Sub(tick); {
			case delay > time.Second:
				o.Late++
			case delay < -10*time.Millisecond:
				o.Early++
			}
		}
	}
	return o
}

// words is an outcome as the tables have it.
func (o outcome) words() string {
	if o.NotRun != "" {
		return "not run: " + o.NotRun
	}
	var words []string
	for _, w := range []struct {
		n    int
		word string
	}{{o.Doubled, "doubled"}, {o.Lost, "lost"}, {o.Overlapped, "overlapped"}, {o.Late, "late"}, {o.Early, "early"}} {
		if w.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", w.n, w.word))
		}
	}
	if len(words) == 0 {
		return "all on time"
	}
	return strings.Join(words, ", ")
}

// missed tells that Solotick, or an app that asks it, did what the fault does not allow.
func (o outcome) missed() bool {
	f, ok := faultOf(o.Fault)
	alone, asks := o.Contender == solotick.key, contenderOf(o.Contender).asks
	over := func(n int, limit *int) bool { return limit != nil && n > *limit }
	return ok && (alone || asks) && (alone && o.NotRun != "" || over(o.Doubled, f.doubled) ||
		(alone || f.strike == nil) && over(o.Lost, f.lost) || over(o.Early, f.early) ||
		f.doubled != nil && o.Overlapped > 0)
}

func faultOf(key string) (fault, bool) {
	for _, group := range faultGroups {
		for _, f := range group {
			if f.key == key {
				return f, true
			}
		}
	}
	return fault{}, false
}

// showFaults prints outcomes, and what was committed where that was something else.
func showFaults(outcomes, committed []outcome) (missed bool) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	if len(outcomes) > 0 {
		fmt.Fprintln(w, "fault\tcontender\tticks\toutcome\tverdict\tcommitted")
	}
	for _, o := range outcomes {
		verdict, was := "", ""
		if o.missed() {
			verdict, missed = "MISSED", true
		}
		for _, c := range committed {
			if c.Fault == o.Fault && c.Contender == o.Contender && c.words() != o.words() {
				was = c.words()
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", o.Fault, o.Contender, o.Ticks, o.words(), verdict, was)
	}
	w.Flush()
	return missed
}
