package nemesis

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/rig"
)

// twelve is a series that comes each two seconds from noon on, is changed to come each three seconds after the time at
// 4 s, is deleted after the one at 9 s, and set for each second after 20 s. All is right.
func twelve() *docket {
	d := &docket{series: series{id: "a"}, record: &record{}, to: at(22.5)}
	d.orders = []order{
		{every: 2 * time.Second, version: 1, sent: at(-.5), answered: at(-.4)},
		{every: 3 * time.Second, version: 2, sent: at(4.5), answered: at(4.6)},
		{sent: at(9.5), answered: at(9.6)},
		{every: time.Second, version: 3, sent: at(20.5), answered: at(20.6)},
	}
	for tick, version := range map[float64]string{0: "1", 2: "1", 6: "2", 9: "2", 21: "3"} {
		d.starts(tick, version)
	}
	d.row(missed, 4, 4)
	d.row(overlapped, 22, 22)
	return d
}

func (d *docket) starts(tick float64, version string) *rig.Request {
	d.requests = append(d.requests, rig.Request{Tick: at(tick), Note: version, Attempt: 1, Arrived: at(tick + .01),
		Token: at(tick).UnixMilli()})
	return &d.requests[len(d.requests)-1]
}

func (d *docket) row(what string, from, to float64) {
	d.rows = append(d.rows, fate{at: at(to + .01), what: what, first: at(from), tick: at(to), count: 1})
}

// goesOn has it deleted after its time at 15 s. It is not started at the later times.
func (d *docket) goesOn() { d.orders[2].sent, d.orders[2].answered = at(17.5), at(17.6) }

func (d *docket) unstarted(tick float64) {
	d.requests = slices.DeleteFunc(d.requests, func(q rig.Request) bool { return q.Tick.Equal(at(tick)) })
}

func TestSeriesAreJudged(t *testing.T) {
	for name, x := range map[string]struct {
		change func(d *docket)
		want   string // "" = nothing is found
	}{
		"all right":                           {func(*docket) {}, ""},
		"started twice":                       {func(d *docket) { d.starts(2, "1") }, "started twice"},
		"started twice at least once":         {func(d *docket) { d.again = true; d.starts(2, "1").Attempt = 2 }, ""},
		"an attempt started twice":            {func(d *docket) { d.again = true; d.starts(2, "1") }, "started twice"},
		"no version":                          {func(d *docket) { d.starts(5, "") }, "no version"},
		"the definition before":               {func(d *docket) { d.unstarted(6); d.starts(6, "1") }, "version 1 started, and version 2 was in force (0 = deleted)"},
		"deleted":                             {func(d *docket) { d.starts(12, "2") }, "version 2 started, and version 0 was in force (0 = deleted)"},
		"not set yet":                         {func(d *docket) { d.unstarted(2); d.starts(2, "3") }, "version 3 started, and version 1 was in force (0 = deleted)"},
		"the definition that is sent":         {func(d *docket) { d.unstarted(2); d.starts(2, "2").Arrived = at(4.55) }, ""},
		"no time of the schedule":             {func(d *docket) { d.starts(7, "2") }, "no time of its schedule"},
		"claimed after it was deleted":        {func(d *docket) { d.unstarted(9); d.starts(9, "2").Token = at(9.7).UnixMilli() }, "claimed after it was deleted"},
		"the same beside a strike":            {func(d *docket) { d.unstarted(9); d.starts(9, "2").Token = at(9.7).UnixMilli(); d.strikes(8.5) }, ""},
		"started and missed":                  {func(d *docket) { d.starts(4, "1") }, "started, and told as missed"},
		"told twice":                          {func(d *docket) { d.row(overlapped, 4, 4) }, "told twice"},
		"told twice as it was set":            {func(d *docket) { d.orders[1].sent = at(3.9); d.row(overlapped, 4, 4) }, ""},
		"lost":                                {func(d *docket) { d.unstarted(0); d.orders[1].sent = at(5.1) }, "lost"},
		"ended without a start":               {func(d *docket) { d.unstarted(0); d.ends = append(d.ends, at(0)) }, ""},
		"lost at the end":                     {func(d *docket) { d.unstarted(21) }, "lost"},
		"taken back":                          {func(d *docket) { d.unstarted(9) }, ""},
		"lost long before it was deleted":     {func(d *docket) { d.unstarted(6); d.orders[2].sent = at(11.1) }, "lost"},
		"struck until it was deleted":         {func(d *docket) { d.unstarted(6); d.orders[2].sent = at(11.1); d.unstarted(9); d.strikes(10) }, ""},
		"passed over after one that was told": {func(d *docket) { d.goesOn(); d.row(overlapped, 9, 9); d.unstarted(9) }, ""},
		"passed over, and one started since":  {func(d *docket) { d.goesOn(); d.row(overlapped, 6, 6); d.unstarted(6) }, "lost"},
		"passed over, and set anew since":     {func(d *docket) { d.goesOn(); d.row(overlapped, 2, 2); d.unstarted(2); d.unstarted(6) }, "lost"},
		"passed over, and set as it was told": {func(d *docket) {
			d.goesOn()
			d.rows[0].what, d.orders[1].sent, d.orders[1].answered = overlapped, at(4.005), at(4.015)
			d.unstarted(6)
			d.unstarted(9)
		}, ""},
		"no answer": {func(d *docket) { d.orders[3].answered = time.Time{}; d.unstarted(21) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := twelve()
			x.change(d)
			found := ""
			a := d.judge(func(what string, tick time.Time) { found = what })
			if found != x.want {
				t.Errorf("found %q, want %q\n%s", found, x.want, d.story(at(5)))
			}
			if name == "all right" && a != (times{orders: 4, times: 7, started: 5, missed: 1, overlapped: 1}) {
				t.Errorf("counted %+v", a)
			}
		})
	}
}

func (d *docket) strikes(from float64) {
	d.record.strikes = append(d.record.strikes, strike{harm: killed, target: "r1", from: at(from), to: at(from + 1)})
}

func TestFatesOfASeriesAreRead(t *testing.T) {
	entries := []redis.XMessage{
		{ID: "1-0", Values: map[string]any{"tick": `{"job":"timer:a","first":2000,"tick":4000,"count":2,"outcome":"missed"}`}},
		{ID: "2-0", Values: map[string]any{"tick": `{"job":"timer:b","first":2000,"tick":4000,"count":2,"outcome":"missed"}`}},
		{ID: "3-0", Values: map[string]any{"run": `{"job":"timer:a","tick":6000,"run":"u","outcome":"interrupted"}`}},
	}
	rows, ends, err := fatesOf("timer:a", entries)
	if err != nil || len(rows) != 1 || rows[0].what != missed || !rows[0].first.Equal(time.UnixMilli(2000)) ||
		!rows[0].tick.Equal(time.UnixMilli(4000)) || len(ends) != 1 || !ends[0].Equal(time.UnixMilli(6000)) {
		t.Errorf("%+v, %v, %v", rows, ends, err)
	}
	if _, _, err := fatesOf("timer:a", []redis.XMessage{{ID: "1-0", Values: map[string]any{"tick": "{"}}}); err == nil {
		t.Error("broken entries are no error")
	}
}
