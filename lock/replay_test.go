//go:build !race

package lock

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/model"
	"github.com/solotick/solotick/internal/rds"
)

// A replay ties the model of the protocol to the scripts. It takes random traces of the model, has the real scripts do
// each step in which Redis has a part, and compares after each the answer, the ticks that the step settled, and what
// Redis knows.
//
// The model is coarser than Redis on purpose. This is how a replay translates, and what it does not compare:
//
//   - Tick n comes due n periods after the beginning. An instant is the newest tick that had come by then. So are the newest
//     tick claimed, since a new ledger claims an instant that is no tick, and when a run was claimed and last renewed. The
//     last two are kept only as far as the fate of a tick may still depend on them.
//   - A claim in time may win until the next tick is due, one by a due member at any time, and one that is too late never.
//   - A claim comes with the list of older ticks that is right when Redis runs it, and with the tick before it. So there is
//     no GAP. There is no UNKNOWN: a lost ledger is registered in the step that loses it.
//   - DUE is FIRED. LATE is LOST with evidence of the run, NONE is LOST without.
//   - A due member is its tick, attempt and nonce, and the one replica that could not start it. Its kind and its number of
//     deaths are those of the real member.
//   - The model forgets the evidence of a run when no request of it can come any more. Redis keeps it for a day.
//   - Locks end in steps of their own. Tokens, history and nudges are not compared, and there are no pauses.
type replay struct {
	*walk
	scenario model.Scenario
	runs     map[model.Run]*Claim
	members  map[model.Member]string // texts of all due members that there ever were
	before   model.Store             // what the model knew before the step
	sees     redisSight
	watched  string // the lease end that the watcher of a late takeover has seen
}

const (
	replayPeriod = time.Hour // so that a lease can end between two ticks
	replaySteps  = 400       // of a trace at most
)

// redisSight is what Redis holds.
type redisSight struct {
	model.Store
	fields map[string]string
	leases map[model.Run]string // their ends
}

// replayTrace replays one trace of a scenario. met counts what happened.
func replayTrace(rdb redis.UniversalClient, scripts walkScripts, c model.Scenario, with model.Mend, seed uint64, met map[string]int) (trace []string, err error) {
	p := &replay{walk: &walk{rdb: rdb, scripts: scripts.clocked(), keys: rds.NewKeys("replay")}, scenario: c, runs: map[model.Run]*Claim{},
		members: map[model.Member]string{}}
	defer func() {
		if r := recover(); r != nil {
			err = brokenBy(r)
		}
		trace = p.trace
	}()
	p.do("FLUSHDB")
	p.do("HSET", p.ledger(), "born", 1, "since", 1, "tick", replayTick(0))
	p.does(model.Step{Deed: model.Replicates})
	for step := range model.Trace(c, with, rand.New(rand.NewPCG(seed, 0)), replaySteps) {
		met[p.step(step)]++
	}
	return p.trace, nil
}

// step does what the model did, and compares.
func (p *replay) step(x model.Step) (met string) {
	for _, line := range x.Before {
		p.note("      %s", line)
	}
	p.passes(x)
	before := p.sees.fields
	answer, overlapped := p.does(x)
	p.note("%5d %s", p.clock-replayTick(x.Now), x.Text)
	p.demand(answer == x.Answer, "%s, by the model; %q by the script", x.Text, answer)
	p.agree(x, "settles as overlaps", x.Overlapped, overlapped)
	p.agree(x, "counts as missed", x.Missed, p.missed(x, before))
	// The model forgets evidence before Redis does.
	p.sees.Evidence = slices.DeleteFunc(p.sees.Evidence, func(r model.Run) bool { return !slices.Contains(x.Store.Evidence, r) })
	p.agree(x, "knows", x.Store, p.sees.Store)
	p.before = x.Store
	return strings.TrimSpace(x.Deed.String() + " " + answer)
}

func (p *replay) agree(x model.Step, what string, model, script any) {
	m, s := fmt.Sprintf("%+v", model), fmt.Sprintf("%+v", script)
	p.demand(m == s, "%s: what Redis %s\n  by the model:  %s\n  by the script: %s\n  ledger: %v", x.Text, what, m, s, p.sees.fields)
}

// passes sets the clock to a little after the newest tick that has come, or a little before one that is near.
func (p *replay) passes(x model.Step) {
	at := replayTick(x.Now) + 1
	if x.Near {
		at = replayTick(x.Now+1) - 900
	}
	p.clock = max(p.clock+1, at)
	if x.Deed == model.StepsClock {
		p.clock += 2 * walkTTL.Milliseconds()
	}
}

// does what a step does to Redis, and sees what comes of it.
func (p *replay) does(x model.Step) (answer string, overlapped []int) {
	switch x.Deed {
	case model.Acquires:
		return p.acquires(x)
	case model.Extends:
		c := p.claim(x)
		parts := p.call(p.scripts.extend, []string{p.lockOf(c), p.ledger(), p.keys.Running}, c.Run, c.Job, c.TTL.Milliseconds())
		return fmt.Sprint(parts[0]), nil
	case model.Drops:
		parts := p.call(p.scripts.drop, []string{p.ledger(), p.keys.Due("j")}, p.members[memberOf(x)], Missed)
		return map[int64]string{0: "GONE", 1: "OK"}[millisOf(parts[2])], nil
	case model.Cancels:
		parts := p.call(p.scripts.cancel, []string{p.ledger(), p.keys.Memo("cancel")}, p.keys.Events, walkJob, string(x.Run))
		return fmt.Sprint(parts[0]), nil
	case model.Asks:
		d := Due{Job: walkJob, Kind: "backfill", Attempt: 1, Nonce: string(model.Operator)}
		parts := p.call(p.scripts.ask, []string{p.ledger(), p.keys.Due("j"), p.keys.Memo("rerun")}, d.Suffix(), p.keys.Events, replayTick(x.Tick))
		return fmt.Sprint(parts[0]), nil
	case model.Watches:
		p.command("PING")
		p.watched = p.sees.leases[x.Run]
	case model.Expires:
		key, owner := p.slot(x.Slot), p.sees.Locks[x.Slot]
		if owner == model.Foreign || p.sees.leases[owner] != "" {
			p.command("DEL", key)
		} else {
			p.call(p.scripts.release, []string{key, p.ledger()}, string(owner))
		}
	case model.Steals:
		p.command("SET", p.slot(x.Slot), string(model.Foreign))
	case model.Replicates:
		p.copyAll("", standby)
		p.command("PING")
	case model.FailsOver:
		p.copyAll(standby, "")
		p.command("PING")
	case model.LosesData:
		p.deleteAll("")
		p.call(p.scripts.register, []string{p.ledger(), p.keys.Due("j"), p.keys.History("j"), p.keys.Failures("j"),
			p.keys.Prefix + "runs"}, "", farFuture)
	case model.StepsClock:
		p.command("PING")
	default:
		return p.settles(x)
	}
	return "", nil
}

// claim is that of the run that a step speaks of.
func (p *replay) claim(x model.Step) *Claim {
	if c := p.runs[x.Run]; c != nil {
		return c
	}
	c := &Claim{Job: walkJob, Run: string(x.Run), Tick: rds.FromMillis(replayTick(x.Tick)), Replica: replicaName(x.Replica), TTL: walkTTL,
		Policy: policyOf[x.Policy], Period: replayPeriod, Attempt: x.Attempt + 1, Again: x.Again}
	if x.Popped {
		c.Member = p.members[memberOf(x)]
		d, err := ParseDue(c.Member)
		p.demand(err == nil, "%s: there was no such due member: %v", x.Text, err)
		c.Kind, c.Deaths = d.Kind, d.Deaths
	}
	prepared(c)
	p.runs[x.Run] = c
	return c
}

var policyOf = map[model.Policy]Policy{model.Forbid: Forbid, model.Allow: Allow, model.Replace: Replace, model.Queue: Queue}

func replicaName(n int) string { return fmt.Sprint("r", n) }

func memberOf(x model.Step) model.Member {
	return model.Member{Tick: x.Tick, Attempt: x.Attempt, Nonce: x.Nonce, ByHand: x.ByHand}
}

func (p *replay) slot(tick int) string {
	if tick == 0 {
		return p.keys.Lock(walkJob, "")
	}
	return p.keys.Lock(walkJob, ":"+rds.Itoa(replayTick(tick)))
}

func (p *replay) acquires(x model.Step) (answer string, overlapped []int) {
	c := *p.claim(x)
	c.MayNotWin = x.Look
	until := int64(farFuture)
	if !x.Popped {
		until = replayTick(x.Tick + 1)
		p.older(&c, x.Tick)
	}
	if !x.InTime {
		until = longPast
	}
	keys, args := p.question(&c, until)
	before := p.sees.fields["overlap"]
	a, err := parseAnswer(p.call(p.scripts.acquire, keys, args...))
	p.demand(err == nil, "%s: %v", x.Text, err)
	if now := p.sees.fields["overlap"]; now != before {
		overlapped = append(overlapped, tickOf(rds.Number(now)))
	}
	if a.Code == Waits {
		a.Code = Fired
	}
	return string(a.Code), overlapped
}

// older adds to a claim of the table what its replica knows of the ticks before.
func (p *replay) older(c *Claim, tick int) {
	first := tick
	if p.scenario.MissedAll {
		c.OlderThan = rds.FromMillis(rds.Number(p.sees.fields["tick"]))
		first = min(tick, p.sees.Claimed+1)
		for t := first; t <= tick && first < tick; t++ {
			c.Older = append(c.Older, Past{rds.FromMillis(replayTick(t)), rds.FromMillis(replayTick(t))})
		}
	}
	if first > 1 {
		c.Before = rds.FromMillis(replayTick(first - 1))
	}
}

// settles ends a run as the lease does, or as the watcher does.
func (p *replay) settles(x model.Step) (answer string, overlapped []int) {
	var verb, again, entry, leaseEnd string
	var delay int64
	c := p.claim(x)
	switch x.Deed {
	case model.Finishes:
		verb, again, delay = "finish", c.takeover(1), 60_000
		if c.Policy == Allow {
			delay = 0
		}
	case model.Requeues:
		verb, again = "requeue", c.takeover(0)
	case model.HandsOver:
		d := c.due()
		d.Refused = []string{c.Replica}
		if d.Kind == "schedule" || d.Kind == "catchup" {
			d.Kind = "handover"
		}
		verb, again = "handover", d.Member()
	case model.GivesUp:
		verb = "handover"
	case model.Abandons:
		verb, again = "abandon", c.due().Member()
	case model.Reaps:
		verb, again, entry, leaseEnd = "reap", c.takeover(1), "an entry", p.sees.leases[x.Run]
		if x.Late {
			leaseEnd = p.watched
		}
	}
	parts := p.call(p.scripts.settle, []string{p.lockOf(c), p.ledger(), p.keys.Running, p.keys.Due("j"), p.keys.History("j"), p.keys.Memo(c.Run),
		p.keys.Failures("j")}, verb, c.Run, c.Job, delay, p.keys.Events, entry, 500, verb, leaseEnd, p.sees.fields["born"],
		0, "", again, 0, 0)
	told, _ := parts[3].(string)
	for tick := range strings.FieldsSeq(told) {
		overlapped = append(overlapped, tickOf(rds.Number(tick)))
	}
	lost := None
	if slices.Contains(p.before.Evidence, x.Run) {
		lost = Late
	}
	if answer = fmt.Sprint(parts[0]); answer == string(lost) {
		answer = "LOST"
	}
	return answer, overlapped
}

func replayTick(n int) int64 { return walkStart + int64(n)*replayPeriod.Milliseconds() }

// tickOf is the newest tick that has come at an instant.
func tickOf(ms int64) int { return int((ms - walkStart) / replayPeriod.Milliseconds()) }

func (p *replay) call(sc *rds.Script, keys []string, args ...any) []any {
	cmd := []any{"EVALSHA", sc.SHA, len(keys)}
	for _, k := range keys {
		cmd = append(cmd, k)
	}
	parts, _ := p.command(append(cmd, args...)...).([]any)
	return parts
}

// command sends a command with the time, and sees what Redis holds after it: one round trip.
func (p *replay) command(cmd ...any) any {
	ctx, pipe := context.Background(), p.rdb.Pipeline()
	pipe.HSet(ctx, walkClock, "s", p.clock/1000, "us", p.clock%1000*1000)
	reply := pipe.Do(ctx, cmd...)
	fields := pipe.HGetAll(ctx, p.ledger())
	due := pipe.ZRange(ctx, p.keys.Due("j"), 0, -1)
	running := pipe.ZRangeWithScores(ctx, p.keys.Running, 0, -1)
	var keys []string
	for t := range p.scenario.Ticks + 1 {
		keys = append(keys, p.slot(t))
	}
	runs := slices.Sorted(maps.Keys(p.runs))
	for _, r := range runs {
		keys = append(keys, p.keys.Memo(string(r)))
	}
	texts := pipe.MGet(ctx, keys...)
	if _, err := pipe.Exec(ctx); err != nil {
		panic(wrong{fmt.Sprintf("%v: %v", cmd, err)})
	}
	p.sees = redisSight{fields: fields.Val(), leases: map[model.Run]string{}}
	p.seesLedger()
	for i, v := range texts.Val() {
		text, _ := v.(string)
		switch {
		case i <= p.scenario.Ticks && text != "":
			p.sees.Locks[i] = model.Run(text)
		case strings.HasPrefix(text, "dead "):
			p.sees.Evidence = append(p.sees.Evidence, runs[i-p.scenario.Ticks-1])
		}
	}
	for _, z := range running.Val() {
		p.seesRun(z)
	}
	p.demand(len(p.sees.Running) == len(strings.Fields(openIn(p.sees.fields["open"]).runs)), "running %v, and %q in the ledger", p.sees.Running, p.sees.fields["open"])
	for field := range p.sees.fields {
		run, ok := strings.CutPrefix(field, "x:")
		p.demand(!ok || p.sees.leases[model.Run(run)] != "", "%s is cancelled, and does not live", run)
	}
	for _, text := range due.Val() {
		p.seesDue(text)
	}
	var ticks []string
	for _, m := range p.sees.Due {
		if !m.ByHand {
			ticks = append(ticks, rds.Itoa(replayTick(m.Tick)))
		}
	}
	slices.Sort(ticks)
	open := slices.Sorted(strings.FieldsSeq(openIn(p.sees.fields["open"]).due))
	p.demand(slices.Equal(ticks, open), "due are %v, and open is %q", ticks, p.sees.fields["open"])
	p.sees.Sort()
	return reply.Val()
}

func (p *replay) seesLedger() {
	f, s := p.sees.fields, &p.sees.Store
	s.Claimed, s.Last, s.Locks = tickOf(rds.Number(f["tick"])), model.Run(f["last"]), map[int]model.Run{}
	for entry := range strings.FieldsSeq(openIn(f["open"]).behind) {
		text, came, _ := strings.Cut(entry[1:], "@")
		p.demand(text == came, "%q came due at its own time", entry)
		if tick := tickOf(rds.Number(text)); entry[0] == '-' {
			s.Refused = append(s.Refused, tick)
		} else {
			p.demand(s.Waits == 0, "%q, and two wait", f["open"])
			s.Waits = tick
		}
	}
	slices.Sort(s.Refused)
}

func (p *replay) seesRun(z redis.Z) {
	name, _, _ := strings.Cut(z.Member.(string), " ")
	f, run := p.sees.fields, model.Run(name)
	rec, err := ParseRecord(f["r:"+name])
	p.demand(err == nil && strings.Contains(openIn(f["open"]).runs, name+" "), "%s runs: %v, among the runs %q", name, err, f["open"])
	p.sees.leases[run] = rds.Itoa(int64(z.Score))
	e := model.Entry{Run: run, Tick: tickOf(rds.Millis(rec.Tick)), Attempt: rec.Attempt - 1, ToEnd: f["x:"+name] == "REPLACED",
		Cancelled: f["x:"+name] == "CANCELLED", ByHand: rec.Kind == "backfill"}
	if rec.Policy == Allow {
		e.Slot = e.Tick
	}
	e.BeganUpTo = p.sees.OpenUpTo(tickOf(rds.Millis(rec.Claimed)))
	e.RenewedUpTo = p.sees.OpenUpTo(tickOf(int64(z.Score) - rec.TTL.Milliseconds()))
	p.sees.Running = append(p.sees.Running, e)
}

func (p *replay) seesDue(text string) {
	d, err := ParseDue(text)
	p.demand(err == nil, "%v", err)
	m := model.Member{Tick: tickOf(rds.Millis(d.Tick)), Attempt: d.Attempt - 1, Nonce: model.Run(d.Nonce), ByHand: d.Kind == "backfill"}
	p.members[m] = text
	if len(d.Refused) > 0 {
		m.Avoids = int(rds.Number(strings.TrimPrefix(d.Refused[0], "r")))
	}
	p.sees.Due = append(p.sees.Due, m)
}

// missed are the ticks in the gaps that a step has added.
func (p *replay) missed(x model.Step, before map[string]string) (ticks []int) {
	if x.Deed == model.FailsOver || x.Deed == model.LosesData {
		return nil
	}
	added, ok := strings.CutPrefix(p.sees.fields["gaps"], before["gaps"])
	p.demand(ok, "%s: gaps %q, before %q", x.Text, p.sees.fields["gaps"], before["gaps"])
	gaps, err := ParseGaps(added)
	p.demand(err == nil, "%v", err)
	for _, g := range gaps {
		if g.Fate == PausedTick || g.Fate == Overlapped { // the model tells of them otherwise
			continue
		}
		for t := range p.scenario.Ticks + 1 {
			if at := replayTick(t); at > rds.Millis(g.From) && at < rds.Millis(g.To) {
				ticks = append(ticks, t)
			}
		}
	}
	if x.Deed == model.Drops { // what had been counted as interrupted is not counted once more, and that the model does not know
		for counted := range strings.FieldsSeq(openIn(before["open"]).counted) {
			if !strings.Contains(openIn(p.sees.fields["open"]).counted, counted) {
				ticks = append(ticks, tickOf(rds.Number(counted)))
			}
		}
	}
	slices.Sort(ticks)
	return ticks
}

// standby is the prefix of the keys of Redis' replica.
const standby = "standby:"

func (p *replay) copyAll(from, to string) {
	p.deleteAll(to)
	for _, key := range p.list("KEYS", from+"solotick:*") {
		p.do("COPY", key, to+strings.TrimPrefix(key, from))
	}
}

func (p *replay) deleteAll(prefix string) {
	for _, key := range p.list("KEYS", prefix+"solotick:*") {
		p.do("DEL", key)
	}
}
