package lock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
)

// sight is all that Redis holds of the walk's job at one moment.
type walkSight struct {
	fields  map[string]string
	records map[string]Record
	runs    []string // uuids, oldest first
	running map[string]int64
	due     []string
	asked   map[string]int64 // by member, when it became due; a trigger at its tick
	behind  []refused
	open    opened
	owner   string // of the lock of the one who looks
	newest  int64  // tick claimed or refused
	text    string // all of it but leases
}

// replaced reports whether a run is told to end.
func (s walkSight) replaced(run string) bool { return s.fields["x:"+run] == "REPLACED" }

// refused is an entry of `behind`.
type refused struct {
	waits     bool
	tick, due int64
}

// look reads what Redis holds.
func (w *walk) look(x *fiber) walkSight {
	ctx := context.Background()
	pipe := w.rdb.Pipeline()
	fields := pipe.HGetAll(ctx, w.ledger())
	due := pipe.ZRangeWithScores(ctx, w.keys.DueJobs, 0, -1)
	running := pipe.ZRangeWithScores(ctx, w.keys.Running, 0, -1)
	var owner *redis.StringCmd
	if x != nil {
		owner = pipe.Get(ctx, w.lockOf(&x.claim))
	}
	_, _ = pipe.Exec(ctx)
	s := walkSight{fields: fields.Val(), asked: map[string]int64{}, records: map[string]Record{}, running: map[string]int64{}}
	for _, z := range due.Val() {
		m := z.Member.(string)
		s.due, s.asked[m] = append(s.due, m), int64(z.Score)
		if z.Score == 0 {
			tick, _, _ := strings.Cut(m, " ")
			s.asked[m] = rds.Number(tick)
		}
	}
	if owner != nil {
		s.owner = owner.Val()
	}
	for name, text := range s.fields {
		if run, ok := strings.CutPrefix(name, "r:"); ok {
			rec, err := ParseRecord(text)
			w.demand(err == nil, "%v", err)
			s.records[run] = rec
		}
	}
	s.open = openIn(s.fields["open"])
	s.runs = strings.Fields(s.open.runs)
	for _, z := range running.Val() {
		run, _, _ := strings.Cut(z.Member.(string), " ")
		s.running[run] = int64(z.Score)
	}
	s.newest = rds.Number(s.fields["tick"])
	for entry := range strings.FieldsSeq(s.open.behind) {
		tick, due, _ := strings.Cut(entry[1:], "@")
		s.behind = append(s.behind, refused{entry[0] == '+', rds.Number(tick), rds.Number(due)})
		s.newest = max(s.newest, rds.Number(tick))
	}
	s.text = fmt.Sprint(s.fields, s.due, s.running)
	return s
}

func (s *walkSight) stands(tick int64) *refused {
	for i := range s.behind {
		if s.behind[i].tick == tick {
			return &s.behind[i]
		}
	}
	return nil
}

func (s *walkSight) waiting() *refused {
	for i := range s.behind {
		if s.behind[i].waits {
			return &s.behind[i]
		}
	}
	return nil
}

// isDue reports whether a tick of the table is due: it has waited, or was given back.
func (s *walkSight) isDue() bool {
	return slices.ContainsFunc(s.due, func(m string) bool { return !strings.Contains(m, " manual ") && !strings.Contains(m, " backfill ") })
}

// dueOf are the members of a tick.
func (s *walkSight) dueOf(tick int64) (members []string) {
	for _, m := range s.due {
		if strings.HasPrefix(m, rds.Itoa(tick)+" ") {
			members = append(members, m)
		}
	}
	return members
}

// expected is what a claim is to be told.
func (w *walk) expected(x *fiber, until int64, s walkSight) Code {
	c, tick := &x.claim, x.tick()
	_, mine := s.records[c.Run]
	live := len(s.runs) > 0 && c.Policy != Allow
	list := len(c.Older) > 0
	fromTable := c.Member == "" && !mine
	blocks := live && c.Member == "" && (c.Policy == Forbid || c.Policy == Queue && (s.waiting() != nil || s.isDue()) && !list)
	switch {
	case fromTable && tick <= rds.Number(s.fields["tick"]):
		if s.stands(tick) != nil || slices.Contains(strings.Fields(s.open.due), rds.Itoa(tick)) {
			return Waits
		}
		return Fired
	case fromTable && tick < s.newest && s.stands(tick) == nil:
		return Fired
	case w.clock > until:
		return Stale
	case mine && s.owner != "" && s.owner != c.Run:
		return Lost
	case mine:
		return Won
	case w.keptBack(c, s) && c.Member == "" && rds.Millis(c.Due) > w.clock:
		return Early
	case w.keptBack(c, s):
		return Paused
	case c.Member != "" && !slices.Contains(s.due, c.Member):
		return Gone
	case c.Member != "" && live:
		return Held
	case c.Member == "" && tick > w.clock+c.tolerance().Milliseconds():
		return Early
	case c.Member == "" && !c.OlderThan.IsZero() && rds.Millis(c.OlderThan) != rds.Number(s.fields["tick"]):
		return Gap
	case live && rds.Millis(c.Due) > w.clock:
		return Early
	case blocks:
		return Overlap
	case c.MayNotWin && !live:
		return Free
	case !live && s.owner != "" && (c.slot() != "" || s.owner != s.fields["last"]):
		if _, lives := s.records[s.owner]; lives {
			return Held
		}
		return Locked
	case live || list:
		return Queued
	}
	return Won
}

// keptBack reports whether a pause is in the way of a claim.
func (w *walk) keptBack(c *Claim, s walkSight) bool {
	at := rds.Millis(c.Tick)
	if c.Member != "" {
		at = max(at, w.clock)
	}
	byHand := c.Member != "" && isByHand(c.Kind)
	asked, waits := s.asked[c.Member]
	if !waits { // it is gone, and nothing keeps it back
		asked = w.clock
	}
	return slices.ContainsFunc(s.pauses(), func(p pauseNote) bool {
		return (p.Until.IsZero() || at < rds.Millis(p.Until)) && !(byHand && asked >= rds.Millis(p.At))
	})
}

func isByHand(kind string) bool { return kind == "manual" || kind == "backfill" }

// follows checks what an answer has done: nothing, unless it says so.
func (w *walk) follows(x *fiber, a Answer, before, after walkSight) {
	tick := x.tick()
	switch a.Code {
	case Won:
		w.followsWin(x, before, after)
		w.takeWin(x, a)
	case Queued:
		w.followsQueued(x, before, after)
	case Overlap:
		w.touched[tick] = true
		full := x.claim.Policy == Queue // for good, since another waits
		e := after.stands(tick)
		w.demand(full == (e == nil) && (full || !e.waits), "%s overlaps, and stands as %+v behind the run", w.name(tick), e)
		w.demand(!full || rds.Number(after.fields["overlap"]) == tick && !w.overlapped[tick], "%s overlaps, and the ledger is %v", w.name(tick),
			after.fields)
		w.demand(after.fields["by"] == before.fields["by"], "%s was refused, and the ledger says that %s has claimed", x, after.fields["by"])
		w.overlapped[tick] = full
	default:
		w.demand(before.text == after.text, "%s was told %s, and changed\n%s\nto\n%s", x, a.Code, before.text, after.text)
	}
	for _, p := range x.claim.Older {
		t := rds.Millis(p.Tick)
		if e := after.stands(t); a.Code == Overlap && t > max(before.newest, w.pausedTo(after)) {
			w.demand(e != nil && !e.waits && e.due == rds.Millis(p.Due), "%s of the list is not written down", w.name(t))
			w.touched[t] = true
		}
	}
}

// pausedTo is the last instant of the last pause that is over.
func (w *walk) pausedTo(s walkSight) int64 {
	to := rds.Number(s.fields["pausedTo"])
	for _, p := range s.pauses() {
		to = max(to, min(rds.Millis(p.Until)-1, w.clock))
	}
	return to
}

func (w *walk) followsWin(x *fiber, before, after walkSight) {
	c, tick := &x.claim, x.tick()
	rec, ok := after.records[c.Run]
	w.demand(ok && rds.Millis(rec.Tick) == tick && rec.Policy == c.Policy, "%s won, and its record is %q", x, after.fields["r:"+c.Run])
	w.demand(after.running[c.Run] == w.clock+walkTTL.Milliseconds() && w.owner(x) == c.Run, "%s won, and has no lease", x)
	w.touched[tick] = true
	if x.won {
		return
	}
	w.demand(after.fields["by"] == c.Replica, "%s won, and the ledger says that %s did", x, after.fields["by"])
	w.demand(c.Policy == Allow || len(before.runs) == 0, "%s begins beside %v", x, before.runs)
	w.demand(!c.MayNotWin, "%s won although it has no slot", x)
	w.demand(rds.Millis(rec.Claimed) == w.clock, "%s was claimed at %s", x, rec.Claimed)
	w.demand(c.Member == "" || !slices.Contains(after.due, c.Member), "%s won, and its member is due", x)
	behind := slices.DeleteFunc(before.behind, func(e refused) bool { return c.Member == "" && e.tick == tick })
	w.demand(slices.Equal(after.behind, behind), "%s won, and %v stand behind a run, want %v", x, after.behind, behind)
	if c.Member == "" {
		w.demand(after.stands(tick) == nil && rds.Number(after.fields["tick"]) == tick, "%s won from the table, and the ledger is %v", x,
			after.fields)
	} else {
		w.demand(after.fields["tick"] == before.fields["tick"], "%s won a due member, and the ledger's tick moved", x)
	}
}

func (w *walk) followsQueued(x *fiber, before, after walkSight) {
	c, tick := &x.claim, x.tick()
	w.demand(rds.Number(after.fields["tick"]) == tick && after.fields["by"] == c.Replica, "%s was queued, and the ledger's tick is %s", x,
		after.fields["tick"])
	if c.Policy == Replace && len(before.runs) > 0 {
		for run := range before.records {
			w.demand(after.replaced(run), "%s takes the place of %s, which is not told to end", x, run)
		}
	} else {
		for run := range before.records {
			w.demand(after.replaced(run) == before.replaced(run), "%s tells %s to end", x, run)
		}
	}
	w.touched[tick] = true
	if len(c.Older) == 0 {
		e := after.stands(tick)
		w.demand(e != nil && e.waits && e.due == rds.Millis(c.Due), "%s waits, and is not written down", w.name(tick))
		w.demand(c.Policy == Replace || before.waiting() == nil, "two ticks wait: %v", after.behind)
		return
	}
	paused := w.pausedTo(after)
	for _, p := range c.Older {
		t := rds.Millis(p.Tick)
		w.touched[t] = w.touched[t] || t > paused
		open := t > paused && (t > before.newest || before.stands(t) != nil)
		w.demand((len(after.dueOf(t)) == 1) == open, "%s of the list has the due members %v, and the pause ended at %d", w.name(t),
			after.dueOf(t), paused)
	}
}

// settled is what a settlement is to do.
type settlementOf struct {
	code       string
	due        []string
	overlapped string
	freed      int64
	behind     []refused
}

func (w *walk) settled(x *fiber, args []any, s walkSight) settlementOf {
	verb, again := said(args)
	rec, live := s.records[x.claim.Run]
	want := settlementOf{code: "OK", due: slices.Clone(s.due), behind: s.behind}
	score := int64(0)
	if verb == "reap" {
		score = millisOf(args[7])
	}
	switch {
	case verb == "reap" && s.running[x.claim.Run] != score:
		want.code = "MOVED"
		return want
	case verb != "reap" && !live:
		return w.settledBefore(x, verb, again, want)
	}
	want.behind = nil
	others := len(s.runs) > 1
	lived := int64(0) // until then it certainly did
	switch verb {
	case "finish", "requeue":
		lived = w.clock
	case "reap":
		lived = score - walkTTL.Milliseconds()
	}
	spared := int64(0) // the newest that a run by hand has refused
	for _, e := range s.behind {
		if !e.waits && isByHand(rec.Kind) {
			spared = max(spared, e.tick)
		}
	}
	for _, e := range s.behind {
		switch {
		case e.tick != spared && !e.waits && rds.Millis(rec.Claimed) <= e.due && e.due <= lived:
			want.overlapped += rds.Itoa(e.tick) + " "
		case others:
			want.behind = append(want.behind, e)
		default:
			want.freed = max(want.freed, e.tick)
			want.due = append(want.due, Due{Tick: rds.FromMillis(e.tick), Job: walkJob, Kind: "catchup", Attempt: 1, Nonce: x.claim.Run}.Member())
		}
	}
	replaced := s.replaced(x.claim.Run) && (verb == "reap" || verb == "requeue")
	if again != "" && verb != "finish" && !replaced {
		want.due = append(want.due, again)
	} else if verb != "finish" && replaced {
		w.finished[x.tick()] = true
	}
	return want
}

// said are the verb of a settlement and the due member that it names.
func said(args []any) (verb, again string) {
	verb, _ = args[0].(string)
	if len(args) > 5 {
		again, _ = args[5].(string)
	}
	return verb, again
}

// settledBefore is what a settlement is to do when the run was settled before.
func (w *walk) settledBefore(x *fiber, verb, again string, want settlementOf) settlementOf {
	want.code = "NONE"
	if w.evidence[x.claim.Run] {
		want.code = "LATE"
	}
	switch {
	case verb == "finish":
		want.due = slices.DeleteFunc(want.due, func(m string) bool { return m == again })
	case verb != "requeue" && want.code == "LATE" && again != "":
		want.due = append(want.due, again)
		delete(w.begun, x.tick())
		delete(w.finished, x.tick())
	}
	delete(w.evidence, x.claim.Run)
	return want
}

// compare checks a settlement against what it was to do, and takes down what became of ticks by it.
func (w *walk) compare(x *fiber, args, parts []any, want settlementOf, before, after walkSight) {
	verb, again := said(args)
	w.demand(parts[0] == want.code, "%s of %s: %v, want %s", verb, x, parts, want.code)
	slices.Sort(want.due)
	got := slices.Sorted(slices.Values(after.due))
	w.demand(slices.Equal(want.due, got), "after %s of %s these are due:\n%q, want\n%q", verb, x, got, want.due)
	if want.code != "OK" {
		w.demand(verb != "reap" || before.open == after.open, "%s of %s changed the tick that was handed on", verb, x)
		return
	}
	w.demand(millisOf(parts[2]) == want.freed && parts[3] == want.overlapped, "%s of %s: %v, want %s set free and %q overlapped", verb, x,
		parts, w.name(want.freed), want.overlapped)
	w.demand(slices.Equal(after.behind, want.behind), "after %s of %s %v stand behind a run, want %v", verb, x, after.behind, want.behind)
	for t := range strings.FieldsSeq(want.overlapped) {
		w.overlapped[rds.Number(t)] = true
		w.demand(rds.Number(after.fields["overlap"]) >= rds.Number(t), "%s of %s counted an overlap, and the ledger knows only of %s", verb, x,
			after.fields["overlap"])
	}
	if _, lives := before.records[x.claim.Run]; !lives {
		return // the claim of an entry without a record was never completed
	}
	if !slices.Contains(after.due, again) || again == "" {
		w.begun[x.tick()] = true
		if verb == "reap" {
			w.finished[x.tick()] = true
			w.evidence[x.claim.Run] = !before.replaced(x.claim.Run)
		}
	}
}

// check demands what is to hold at every moment.
func (w *walk) check(s walkSight) {
	live := slices.Sorted(maps.Keys(s.records))
	w.demand(slices.Equal(live, slices.Sorted(slices.Values(s.runs))) && slices.Equal(live, slices.Sorted(maps.Keys(s.running))),
		"the records are of %v, the runs %v, and these run: %v", live, s.runs, s.running)
	w.demand(slices.IsSortedFunc(s.runs, func(a, b string) int { return int(s.records[a].Token - s.records[b].Token) }),
		"the oldest run is not first: %v", s.runs)
	w.demand(len(s.behind) == 0 || len(s.runs) > 0, "%v stand behind no run", s.behind)
	for field := range s.fields {
		run, marked := strings.CutPrefix(field, "x:")
		w.demand(!marked || slices.Contains(live, run), "%s is told to end, and does not live", run)
	}
	waiting := 0
	for _, e := range s.behind {
		if e.waits {
			waiting++
		}
	}
	w.demand(waiting <= 1, "more than one tick waits: %v", s.behind)
	var due []string
	for _, m := range s.due {
		if f := strings.Fields(m); f[1] == walkJob && !strings.HasPrefix(f[2], "manual") && !strings.HasPrefix(f[2], "backfill") {
			due = append(due, f[0])
		}
	}
	slices.Sort(due)
	w.demand(slices.Equal(due, slices.Sorted(strings.FieldsSeq(s.open.due))), "due are %q, and open is %q", s.due, s.fields["open"])
	for tick := range strings.FieldsSeq(s.open.byHand) {
		w.demand(len(s.dueOf(rds.Number(tick))) > 0, "by hand %s is not due, and open is %q", tick, s.fields["open"])
	}
	w.takeGaps(s)
	w.checkFates(s)
}

// takeGaps takes down the gaps that are new: those of the ledger are the newest of all that there ever were.
func (w *walk) takeGaps(s walkSight) {
	gaps, err := ParseGaps(s.fields["gaps"])
	w.demand(err == nil, "%v", err)
	for _, g := range gaps {
		if !slices.Contains(w.gaps, g) {
			w.gaps = append(w.gaps, g)
		}
	}
}

// checkFates adds up what became of each tick: one thing, as soon as a newer one was claimed or refused.
func (w *walk) checkFates(s walkSight) {
	for n := int64(1); n <= w.ticks; n++ {
		t := nominal(n)
		fates := w.fates(t, s)
		want := 0
		if t <= s.newest {
			want = 1
		}
		w.demand(len(fates) == want, "%s, of newest %s, has the fates %q", w.name(t), w.name(s.newest), fates)
	}
}

func (w *walk) fates(t int64, s walkSight) (fates []string) {
	if w.overlapped[t] {
		fates = append(fates, "overlapped")
	}
	for _, g := range w.gaps {
		switch {
		case t <= rds.Millis(g.From) || t >= rds.Millis(g.To):
		case g.Fate == Overlapped:
			w.demand(w.overlapped[t], "%s is an overlap in a gap, and no answer told of one", w.name(t))
		case g.Fate == "interrupted":
			w.demand(w.begun[t] || len(w.started[t]) > 0, "%s is interrupted in a gap, and never began", w.name(t))
		default:
			fates = append(fates, fmt.Sprintf("%s %d-%d", g.Fate, rds.Millis(g.From), rds.Millis(g.To)))
		}
	}
	places := len(s.dueOf(t))
	for _, e := range s.behind {
		if e.tick == t {
			places++
		}
	}
	for _, rec := range s.records {
		if rds.Millis(rec.Tick) == t {
			places++
		}
	}
	w.demand(places <= 1, "%s is in %d places: %s", w.name(t), places, s.text)
	if places > 0 || len(w.started[t]) > 0 || w.begun[t] {
		fates = append(fates, "taken")
	}
	if t <= s.newest && !w.touched[t] && len(fates) == 0 && w.inPause(t, s) {
		fates = append(fates, "paused")
	}
	return fates
}

// inPause reports whether a tick lies in a pause that has been, or is.
func (w *walk) inPause(t int64, s walkSight) bool {
	for _, p := range w.pauses {
		if t >= p[0] && t <= p[1] {
			return true
		}
	}
	return slices.ContainsFunc(s.pauses(), func(p pauseNote) bool { // it holds, or has ended, and nobody has said so
		return t >= rds.Millis(p.At) && (p.Until.IsZero() || t < rds.Millis(p.Until))
	})
}

// checkRest demands that nothing is left, and that all was counted, when all has come to rest.
func (w *walk) checkRest() {
	for n := int64(1); n <= w.ticks; n++ {
		t := nominal(n)
		w.demand(len(w.started[t]) == 0 || !w.atLeastOnce || w.finished[t], "%s was started, and neither finished nor run again", w.name(t))
	}
	s := w.look(nil)
	w.demand(s.newest >= nominal(w.ticks), "the newest tick is %s", w.name(s.newest))
	w.check(s)
	w.demand(len(s.due) == 0, "something is still due")
	w.demand(len(s.running) == 0 && len(s.behind) == 0, "something still runs, or waits")
	w.countAll(s)
}

// countAll has the rest counted, and demands that each missed tick was, once, and somebody was told so.
func (w *walk) countAll(s walkSight) {
	if gaps := s.fields["gaps"]; gaps != "" {
		w.book(&booking{id: "last", args: w.bookingOf(gaps)})
	}
	all := 0
	for n := int64(1); n <= w.ticks; n++ {
		for _, g := range w.gaps {
			if (g.Fate == Missed || g.Fate == Displaced) && nominal(n) > rds.Millis(g.From) && nominal(n) < rds.Millis(g.To) {
				all++
			}
		}
	}
	w.demand(w.countedMissed() == int64(all), "%d ticks were missed, and %d counted", all, w.countedMissed())
	fates := int64(0)
	for name, n := range w.look(nil).fields {
		if strings.HasPrefix(name, "fate:") {
			fates += rds.Number(n)
		}
	}
	w.demand(fates == w.ticks, "%d ticks have %d fates: %v", w.ticks, fates, w.look(nil).fields)
}
