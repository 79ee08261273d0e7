package schedule

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// loadZone loads a time zone by a name that means the same on all replicas.
func loadZone(name string) (*zone, error) {
	folder, _, _ := strings.Cut(strings.ToLower(name), "/")
	switch folder {
	case "local", "localtime", "posixrules":
		return nil, fmt.Errorf("time zone %q depends on the machine: write an IANA name such as Europe/Berlin", name)
	case "right", "posix":
		// Debian ships these copies. The first counts leap seconds, unlike Unix time, and Go embeds neither.
		return nil, fmt.Errorf("time zone %q is no IANA name: leave %q out", name, folder+"/")
	}
	z, err := findZone(name)
	if err != nil {
		return nil, fmt.Errorf("time zone %q is unknown: write an IANA name such as Europe/Berlin", name)
	}
	return z, nil
}

// IsZone reports whether there is a time zone of that name. Not every zone fits a schedule.
func IsZone(name string) bool {
	_, err := findZone(name)
	return name != "" && name != "Local" && err == nil
}

// zone is a time zone as schedules use it: its stretches of constant offset, in order, from the oldest tick to the
// newest.
type zone struct{ stretches []stretch }

// zones has the zones that were asked for, by name. A table has thousands of jobs and few zones, and a zone takes
// 20 KiB.
var zones sync.Map

// findZone returns the zone of a name; "" is UTC. It keeps the zones of names that are written in the one way in which
// a file can be named, so that it keeps no more than there are files.
func findZone(name string) (*zone, error) {
	if known, ok := zones.Load(name); ok {
		return known.(*zone), nil
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	z := newZone(location)
	if name == "" || path.Clean(name) == name {
		zones.Store(name, z)
	}
	return z, nil
}

func newZone(location *time.Location) *zone {
	z := &zone{}
	for u := int64(oldestTick); u != distantFuture; {
		s := stretchAt(location, u)
		z.stretches = append(z.stretches, s)
		u = s.end
	}
	z.stretches = slices.Clip(z.stretches)
	return z
}

// index returns the place of the stretch that contains u.
func (z *zone) index(u int64) int {
	return sort.Search(len(z.stretches)-1, func(i int) bool { return z.stretches[i].end > u })
}

// at returns the stretch that contains u.
func (z *zone) at(u int64) *stretch { return &z.stretches[z.index(u)] }

// A Reading tells when the clocks of a zone show a time.
type Reading struct {
	First, Last time.Time // they differ if the clocks are set back over it
	Skipped     time.Time // when the clocks skip it: First and Last are then later by the gap, as ticks are
}

// Clocks returns when the clocks of a location show what clocks in UTC show at an instant.
func Clocks(location *time.Location, shown time.Time) (r Reading) {
	z, err := findZone(location.String())
	if err != nil {
		z = newZone(location)
	}
	u, _ := z.first(shown.Unix())
	now := z.at(u)
	r.First = time.Unix(u, int64(shown.Nanosecond())).UTC()
	r.Last = r.First
	if u+now.offset != shown.Unix() {
		r.Skipped = time.Unix(now.start, 0).UTC()
	} else if later := z.at(now.end); shown.Unix()-later.offset >= later.start {
		r.Last = r.First.Add(time.Duration(now.offset-later.offset) * time.Second)
	}
	return r
}

// stretch is a time over which a zone's offset from UTC does not change, in Unix seconds.
type stretch struct {
	start, end int64 // end is not part of it
	offset     int64 // seconds east of UTC
	before     int64 // the offset before start; the same as offset where nothing came before
}

// These lie far beyond all ticks. Adding an offset does not overflow.
const (
	distantPast   = -1 << 60
	distantFuture = 1 << 60
)

// stretchAt returns the stretch that contains u. It joins stretches of the same offset: Go ends one at every turn of
// the year, and some changes of a zone affect only its name.
func stretchAt(location *time.Location, u int64) stretch {
	t := time.Unix(u, 0).In(location)
	offset := offsetAt(t)
	s := stretch{start: distantPast, end: distantFuture, offset: offset, before: offset}
	start, end := bounds(t)
	for !start.IsZero() && start.Unix() > oldestTick-day {
		earlier := start.Add(-time.Second)
		if before := offsetAt(earlier); before != offset {
			s.start, s.before = start.Unix(), before
			break
		}
		start, _ = bounds(earlier)
	}
	for !end.IsZero() && end.Unix() < newestTick+day {
		if offsetAt(end) != offset {
			s.end = end.Unix()
			break
		}
		_, end = bounds(end)
	}
	return s
}

// bounds is ZoneBounds with a correction for 31 December of leap years. Go assumes 365 days for every year that it
// derives from a zone's rule, so on that day it says that the zone ended before t.
func bounds(t time.Time) (start, end time.Time) {
	start, end = t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		end = time.Date(t.UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC).In(t.Location())
	}
	return start, end
}

func offsetAt(t time.Time) int64 {
	_, offset := t.Zone()
	return int64(offset)
}
