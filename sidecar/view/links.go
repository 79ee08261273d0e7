package view

import (
	"strconv"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/service"
)

// Links are URLs of pages about a run, in other tools.
type Links struct {
	Logs   string `json:"logs,omitempty"`
	Traces string `json:"traces,omitempty"`
}

const (
	// around is how much time before the start of a run, and after its end, a link shows too: clocks differ, and logs
	// come late.
	around = time.Minute

	// unknownLength is how long a run counts whose end nobody knows.
	unknownLength = time.Hour
)

// linksOf returns the links of a run that has ended.
func linksOf(t *config.Table, e service.Entry) Links {
	from, to := e.Ended.Add(-e.Took), e.Ended
	if e.Ended.IsZero() {
		from, to = e.Tick, e.Tick.Add(unknownLength)
	}
	return links(t, e.Job, e.Run, e.Replica, e.Tick, from, to)
}

// liveLinks returns the links of a live run. They stay the same for a minute, so that a page need not be drawn again
// with each answer.
func liveLinks(t *config.Table, job string, r service.RunState, now time.Time) Links {
	return links(t, job, r.Run, r.Replica, r.Tick, r.Since, now.Truncate(time.Minute).Add(time.Minute))
}

func links(t *config.Table, job, run, replica string, tick, from, to time.Time) Links {
	if t.Links == (config.Links{}) { // as in most tables, whose runs may be thousands
		return Links{}
	}
	values := map[string]string{"service": t.Service, "job": job, "run": run, "trace": strings.ReplaceAll(run, "-", ""),
		"replica": replica, "tick": Stamp(tick), "from": unixMilli(from.Add(-around)), "to": unixMilli(to.Add(around))}
	return Links{t.Links.Logs.Fill(values), t.Links.Traces.Fill(values)}
}

func unixMilli(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
