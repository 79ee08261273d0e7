package lock

import (
	"slices"
)

func (w *walk) extend(x *fiber) string {
	before := w.look(x)
	parts := w.run(x, w.scripts.extend, []string{w.lockOf(&x.claim), w.ledger(), w.keys.Running}, x.claim.Run, walkJob, walkTTL.Milliseconds())
	want := "OK"
	switch _, ok := before.records[x.claim.Run]; {
	case !ok || before.owner != "" && before.owner != x.claim.Run:
		want = "LOST"
	case before.replaced(x.claim.Run):
		want = "REPLACED"
	}
	w.note("%d %s extends: %v", w.clock-walkStart, x, parts[0])
	w.demand(parts[0] == want, "%s extended: %v, want %s", x, parts[0], want)
	if want != "LOST" {
		w.demand(w.number("ZSCORE", w.keys.Running, x.claim.Run+" "+walkJob) == w.clock+walkTTL.Milliseconds(),
			"%s extended, and its lease was not", x)
	}
	return want
}

// settlement is what a fiber sends when it comes to its end.
func (w *walk) settlement(x *fiber) []any {
	c := &x.claim
	verb, again, delay := "finish", c.takeover(1), 60_000
	switch {
	case x.stage == handing && x.outcome == "given up":
		verb, again, delay = "handover", "", 0
	case x.stage == handing:
		d := c.due()
		d.Kind, d.Refused = "handover", append(slices.Clone(d.Refused), c.Replica)
		verb, again, delay = "handover", d.Member(), 0
	case x.stage == abandoning:
		verb, again, delay = "abandon", c.due().Member(), 0
	case x.outcome == "cut short":
		verb, again, delay = "requeue", c.takeover(0), 0
	}
	if c.Policy == Allow {
		delay = 0
	}
	args := []any{verb, c.Run, walkJob, delay, "an entry"}
	if again != "" {
		args = append(args, again, 0, 0, 1)
	}
	return args
}

func (w *walk) settleKeys(x *fiber) []string {
	keys := []string{w.lockOf(&x.claim), w.ledger(), w.keys.Running, w.keys.DueJobs, w.keys.History(walkJob), w.keys.Memo(x.claim.Run),
		w.keys.Failures(walkJob)}
	if x.claim.Kind == "timer" {
		keys = append(keys, w.keys.Timer(walkJob))
	}
	return keys
}

// whole are the arguments of a settlement as the script wants them, with the channel of the nudges, and the fate of a
// tick of the table. args are the verb, run, job, delay and entry; then what may be left out: the due member that hands
// the tick on, its delay, the lease end that a watcher saw, that watcher or the birth of the ledger, how long ago the
// run ended, and whether it failed.
func (w *walk) whole(x *fiber, args []any) []any {
	fate := map[any]string{"finish": "succeeded", "requeue": "shutdown", "handover": "not_started", "reap": "interrupted"}[args[0]]
	if !w.ofTable(x.tick()) || x.claim.Kind == "manual" || x.claim.Kind == "backfill" {
		fate = ""
	}
	whole := append(slices.Insert(slices.Clone(args[:5]), 4, any(w.keys.Events)), 500, fate)
	if len(args) == 5 {
		return whole
	}
	rest := slices.Concat(args[5:], []any{"", 0, 0, 0, 0, ""}[len(args)-5:])
	return append(whole, rest[2], rest[3], rest[4], rest[5], rest[0], rest[1], 0)
}

// settle sends a settlement for the first time, or a copy of it, and compares what becomes of it with what is to.
func (w *walk) settle(x *fiber, args []any) []any {
	before := w.look(x)
	want := w.settled(x, args, before)
	parts := w.run(x, w.scripts.settle, w.settleKeys(x), w.whole(x, args)...)
	after := w.look(x)
	w.note("%d %s of %s: %s: %v", w.clock-walkStart, x, w.name(x.tick()), args[0], parts)
	w.compare(x, args, parts, want, before, after)
	w.check(after)
	if w.rng.IntN(3) == 0 { // the reply is lost, and the next copy is answered
		code := w.run(x, w.scripts.settle, w.settleKeys(x), w.whole(x, args)...)[0]
		now := w.look(x)
		w.demand(args[0] != "reap" || code == parts[0], "the takeover of %s was answered %v, and then %v", x, parts[0], code)
		w.demand(now.text == after.text, "%s of %s, sent again, was told %v and changed\n%s\nto\n%s", args[0], x, code, after.text, now.text)
	}
	return parts
}

func (w *walk) reap(x *fiber, score string) {
	again := x.claim.takeover(1)
	w.settle(x, []any{"reap", x.claim.Run, walkJob, 0, "e", again, 0, score})
}

// reapHastily is the reap of a watcher whose last look is older than the lease, and of one that saw the lease and no
// record.
func (w *walk) reapHastily(x *fiber) {
	parts := w.run(x, w.scripts.settle, w.settleKeys(x), w.whole(x, []any{"reap", x.claim.Run, walkJob, 0, "e", "", 0, 12345, "another"})...)
	w.demand(parts[0] == "MOVED", "%s was reaped for a lease that had moved: %v", x, parts)
	if score := w.text("ZSCORE", w.keys.Running, x.claim.Run+" "+walkJob); score != "" {
		parts = w.run(x, w.scripts.settle, w.settleKeys(x), w.whole(x, []any{"reap", x.claim.Run, walkJob, 0, "", "", 0, score, "another"})...)
		w.demand(parts[0] == "MOVED", "%s was reaped without its record: %v", x, parts)
	}
}

// release is never in order while a run lasts, and never needed.
func (w *walk) release(x *fiber) {
	w.run(x, w.scripts.release, []string{w.lockOf(&x.claim), w.ledger()}, x.claim.Run)
}
