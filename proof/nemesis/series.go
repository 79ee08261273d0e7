package nemesis

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/rig"
)

const (
	// timerPrefix begins the names by which the app and the history know timers.
	timerPrefix = "timer:"
	// timerLease is the lease of a timer's run.
	timerLease = 15 * time.Second
	// lingering is how long a request may have an effect whose answer was lost with its replica.
	lingering = 3 * time.Second
	// movedOn is how long a time may wait for a replica that makes it due, when nothing is struck.
	movedOn = 5 * time.Second
)

// series is a timer with a schedule, which an operator sets, changes and deletes while the nemesis is at work.
type series struct {
	id    string
	take  time.Duration // how long a run is at work
	again bool          // a run that was cut short is run again
}

var manySeries = []series{
	{id: "quick"}, {id: "again", take: 500 * time.Millisecond, again: true}, {id: "short", take: 300 * time.Millisecond},
	{id: "long", take: 2500 * time.Millisecond}, {id: "long-again", take: 2500 * time.Millisecond, again: true},
}

// order is what the operator has asked of a series.
type order struct {
	every          time.Duration // its times are the multiples of this since the Unix epoch; 0 = it is deleted
	version        int           // of its definition, in rising order; the same one is asked for again by the same
	sent, answered time.Time     // answered is zero where there was no answer until the end
}

// operator sets the series of a world, and writes down when.
type operator struct {
	*world
	mu     sync.Mutex
	orders map[string][]order
}

// operate keeps the series of the world until ctx ends. It returns what waits for the end of the last request.
func (o *operator) operate(ctx context.Context, seed uint64) (wait func()) {
	var all sync.WaitGroup
	for _, s := range o.series {
		all.Go(func() { o.keep(ctx, s, dice(seed, s.id, time.Time{})) })
	}
	return all.Wait
}

// keep sets a series, and every few seconds sets it again, with the same or another definition, or deletes it for a
// while.
func (o *operator) keep(ctx context.Context, s series, rng *rand.Rand) {
	every, version := drawn(rng), 1
	for wait := upTo(rng, time.Second); pause(ctx, wait); wait = 4*time.Second + upTo(rng, 6*time.Second) {
		o.order(ctx, s, rng, order{every: every, version: version})
		switch rng.IntN(4) {
		case 0: // the same one is asked for again
		case 1:
			if !pause(ctx, 3*time.Second+upTo(rng, 3*time.Second)) {
				return
			}
			o.order(ctx, s, rng, order{})
			fallthrough
		default:
			every, version = drawn(rng), version+1
		}
	}
}

// drawn are periods that divide a minute.
func drawn(rng *rand.Rand) time.Duration { return time.Duration(2+rng.IntN(4)) * time.Second }

// order asks any replica, until there is a clear answer or ctx ends.
func (o *operator) order(ctx context.Context, s series, rng *rand.Rand, x order) {
	x.sent = time.Now()
	at := o.note(s.id, -1, x)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for ctx.Err() == nil {
		switch status := o.ask(ctx, client, s, o.replicas[rng.IntN(len(o.replicas))], x); {
		case status == http.StatusOK, status == http.StatusCreated, status == http.StatusNotFound && x.every == 0:
			x.answered = time.Now()
			o.note(s.id, at, x)
			return
		case status == 0:
			pause(ctx, lingering)
		case status < 500:
			o.t.Errorf("order %+v of %s: status %d", x, s.id, status)
			return
		default:
			pause(ctx, askAgain)
		}
	}
}

// note writes an order down, and returns where.
func (o *operator) note(id string, at int, x order) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at < 0 {
		o.orders[id] = append(o.orders[id], x)
		return len(o.orders[id]) - 1
	}
	o.orders[id][at] = x
	return at
}

// ask sends one request; 0 = there was no answer.
func (o *operator) ask(ctx context.Context, client *http.Client, s series, r *replica, x order) (status int) {
	method, body := http.MethodDelete, []byte(nil)
	if x.every > 0 {
		method = http.MethodPut
		guarantee := map[bool]string{false: "at-most-once", true: "at-least-once"}[s.again]
		url := fmt.Sprintf("%s&note=%d", o.app.URL(timerPrefix+s.id, s.take), x.version)
		body, _ = json.Marshal(map[string]any{ // which never fails
			"schedule": fmt.Sprintf("*/%d * * * * *", x.every/time.Second), "guarantee": guarantee,
			"http": map[string]string{"url": url},
		})
	}
	q, err := http.NewRequestWithContext(ctx, method, "http://"+r.admin+"/v1/timers/"+s.id, bytes.NewReader(body))
	if err != nil {
		o.t.Error(err)
		return 0
	}
	q.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(q)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// docket is all that is known of one series.
type docket struct {
	series
	orders   []order // in their order
	requests []rig.Request
	rows     []fate // of times that nobody started
	ends     []time.Time
	record   *record
	to       time.Time // of the times that must have a fate
}

// account of series.
type times struct {
	orders, times, started, missed, overlapped, takenBack int
}

// judge calls find for each broken promise.
func (d *docket) judge(find func(what string, tick time.Time)) (a times) {
	started := map[time.Time]int{}
	type attempt struct {
		tick time.Time
		n    int
	}
	attempts := map[attempt]int{}
	for _, q := range d.requests {
		started[q.Tick]++
		attempts[attempt{q.Tick, q.Attempt}]++
		if attempts[attempt{q.Tick, q.Attempt}] > 1 || started[q.Tick] > 1 && !d.again {
			find("started twice", q.Tick)
		}
		d.judgeDefinition(q, find)
	}
	told := map[time.Time]string{}
	for _, f := range d.rows {
		if told[f.tick] != "" && !d.beingSet(f.tick) {
			find("told twice", f.tick)
		}
		told[f.tick] = f.what
		if started[f.tick] > 0 && !d.beingSet(f.tick) {
			find("started, and told as "+f.what, f.tick)
		}
	}
	a.orders, a.started = len(d.orders), len(started)
	for i, o := range d.orders {
		end, next := d.to, i+1 < len(d.orders)
		if next {
			end = d.orders[i+1].sent
		}
		if o.every == 0 || o.answered.IsZero() {
			continue
		}
		for tick := o.answered.Truncate(o.every).Add(o.every); tick.Before(end); tick = tick.Add(o.every) {
			a.times++
			row := slices.IndexFunc(d.rows, func(f fate) bool { return !tick.Before(f.first) && !tick.After(f.tick) })
			switch {
			case started[tick.UTC()] > 0, slices.ContainsFunc(d.ends, tick.Equal):
			case row >= 0 && d.rows[row].what == overlapped:
				a.overlapped++
			case row >= 0:
				a.missed++
			case d.passedOver(tick, started):
				a.overlapped++
			case next && (end.Sub(tick) < movedOn || d.struck(tick.Add(-time.Second), end)):
				a.takenBack++ // perhaps no replica had seen it
			default:
				find("lost", tick)
			}
		}
	}
	return a
}

// passedOver reports whether a time came during a run of which an earlier overlap was told: it is the first, until a
// time is started, or the series is set anew.
func (d *docket) passedOver(tick time.Time, started map[time.Time]int) bool {
	var told, since time.Time // since: it may have been set before it was told, and after its time had come
	for _, f := range d.rows {
		if f.what == overlapped && f.tick.Before(tick) && f.tick.After(told) {
			told, since = f.tick, f.at.Add(time.Millisecond)
		}
	}
	for at := range started {
		if at.After(told) && !at.After(tick) {
			return false
		}
	}
	for i, o := range d.orders {
		anew := i > 0 && o.version != d.orders[i-1].version && !o.answered.IsZero()
		if anew && !o.sent.Before(since) && o.answered.Before(tick) {
			return false
		}
	}
	return !told.IsZero()
}

// judgeDefinition judges with which definition a time was started.
func (d *docket) judgeDefinition(q rig.Request, find func(what string, tick time.Time)) {
	version, err := strconv.Atoi(q.Note)
	if err != nil {
		find("no version", q.Tick)
		return
	}
	inForce, known := 0, false
	for i, o := range d.orders {
		switch answered := !o.answered.IsZero() && o.answered.Before(q.Tick); {
		case answered:
			inForce, known = i, o.every > 0 && o.version == version
		case o.every > 0 && o.version == version && o.sent.Before(q.Arrived):
			known = true
		}
	}
	o := d.orders[inForce]
	switch {
	case !known:
		find(fmt.Sprintf("version %d started, and version %d was in force (0 = deleted)", version, o.version), q.Tick)
	case o.version == version && o.answered.Before(q.Tick) && !q.Tick.Truncate(o.every).Equal(q.Tick):
		find("no time of its schedule", q.Tick)
	}
	for _, o := range d.orders {
		claimed := time.UnixMilli(q.Token)
		if o.every == 0 && !o.answered.IsZero() && !q.Tick.After(o.sent) && claimed.After(o.answered) && q.Attempt == 1 &&
			!d.struck(q.Tick.Add(-time.Second), q.Arrived) {
			find("claimed after it was deleted", q.Tick)
		}
	}
}

// beingSet reports whether a time came while a request was under way: that may begin with it anew.
func (d *docket) beingSet(tick time.Time) bool {
	return slices.ContainsFunc(d.orders, func(o order) bool {
		return !tick.Before(o.sent) && (o.answered.IsZero() || !tick.After(o.answered))
	})
}

// struck reports whether anything was, within [from, to].
func (d *docket) struck(from, to time.Time) bool {
	return slices.ContainsFunc(d.record.strikes, func(s strike) bool { return s.touches(from, to) })
}

// dockets reads what Redis and the app know of all series.
func (o *operator) dockets(t testing.TB, to time.Time) (all []*docket) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	entries, err := o.store.client().XRange(ctx, keyPrefix+"history:@timers", "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range o.series {
		d := &docket{series: s, orders: o.orders[s.id], record: o.record, to: to}
		for _, q := range o.app.Seen() {
			if q.Job == timerPrefix+s.id {
				d.requests = append(d.requests, q)
			}
		}
		if d.rows, d.ends, err = fatesOf(timerPrefix+s.id, entries); err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// fatesOf are the rows of times of a series that nobody started, and the times of which a run has ended.
func fatesOf(job string, entries []redis.XMessage) (rows []fate, ends []time.Time, err error) {
	for _, m := range entries {
		e, err := parseEntry(m)
		if err != nil {
			return nil, nil, err
		}
		switch f, err := parseFate(m); {
		case err != nil:
			return nil, nil, err
		case e.job != job:
		case e.run == "":
			rows = append(rows, f)
		default:
			ends = append(ends, e.tick)
		}
	}
	return rows, ends, nil
}

// ofTimers reports whether a job is a timer's, which the table does not have.
func ofTimers(job string) bool { return strings.HasPrefix(job, timerPrefix) }

// beside are the jobs of the table beside timers, for the classes that aim at one.
var beside = []job{
	{name: "once-5s-3s", every: 5 * time.Second, take: 3 * time.Second},
	{name: "again-2s-1s", every: 2 * time.Second, take: time.Second, again: true},
}

func (a *times) add(b times) {
	a.orders += b.orders
	a.times += b.times
	a.started += b.started
	a.missed += b.missed
	a.overlapped += b.overlapped
	a.takenBack += b.takenBack
}

// story is what is known around a time.
func (d *docket) story(tick time.Time) string {
	var b strings.Builder
	near := func(at time.Time) bool { return at.Sub(tick).Abs() < 15*time.Second }
	for _, o := range d.orders {
		if near(o.sent) || near(o.answered) {
			fmt.Fprintf(&b, "  order: version %d, every %s, sent %s, answered %s\n", o.version, o.every, clock(o.sent),
				clock(o.answered))
		}
	}
	for _, q := range d.requests {
		if near(q.Tick) {
			fmt.Fprintf(&b, "  app: time %s, version %s from %s, run %s, attempt %d, claimed %s, arrived %s\n",
				clock(q.Tick), q.Note, q.Replica, q.Run, q.Attempt, clock(time.UnixMilli(q.Token)), clock(q.Arrived))
		}
	}
	for _, f := range d.rows {
		if near(f.tick) || near(f.first) {
			fmt.Fprintf(&b, "  fate %s: %s, %d from %s to %s\n", clock(f.at), f.what, f.count, clock(f.first), clock(f.tick))
		}
	}
	for _, s := range d.record.strikes {
		if s.touches(tick.Add(-10*time.Second), tick.Add(10*time.Second)) {
			fmt.Fprintf(&b, "  nemesis: %s %s from %s to %s\n", s.target, s.harm, clock(s.from), clock(s.to))
		}
	}
	return b.String()
}
