package schedule

import (
	"strings"
	"time"
)

// Pool parses expressions. It returns one schedule for all jobs that have the same expression, zone and window:
// thousands of jobs often have a few dozen of them. The zero value is empty. A Pool is for one goroutine at a time.
type Pool struct{ parsed map[source]*Schedule }

// source is what a schedule is made of, if the job's name makes no difference.
type source struct {
	text, timeZone string
	start, end     time.Time
}

// ParseAll is the function ParseAll, for one of many jobs. It shares no schedules with rules.
func (p *Pool) ParseAll(exprs []string, o Options) (*Schedule, error) {
	if !o.Rules.none() {
		return ParseAll(exprs, o)
	}
	from := source{strings.TrimSpace(strings.Join(exprs, "; ")), o.TimeZone, o.Start, o.End}
	if s := p.parsed[from]; s != nil {
		return s, nil
	}
	s, err := ParseAll(exprs, o)
	if err != nil || s.ByName() {
		return s, err
	}
	if p.parsed == nil {
		p.parsed = map[source]*Schedule{}
	}
	p.parsed[from] = s
	return s, nil
}
