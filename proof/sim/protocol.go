package sim

import (
	"strconv"
	"strings"
	"time"
)

// The checks' knowledge of the scripts and of the ledger stands here alone. ARGV is counted from 0.

// acquire: ARGV, and the words of the record among them.
const (
	argJob    = 1
	argTick   = 2
	argPolicy = 6
	argRecord = 7
	argCame   = 8 // when the tick came due, on Redis' clock
	argMember = 12
	argList   = 16 // due members and when their ticks came due, by turns

	recordKind    = 2
	recordAttempt = 3
	recordRounds  = 5
	recordDeaths  = 6
	recordAgain   = 7
)

// The words of a due member: its job, its kind, the run that made it, and behind that the replicas that have refused it
// in this round.
const (
	memberJob  = 1
	memberKind = 2
	memberRun  = 6
	refusals   = 7
)

// kindIn is the kind in a word that may have a key behind it.
func kindIn(word string) string {
	kind, _, _ := strings.Cut(word, ":")
	return kind
}

// acquire: the answer.
const (
	answerAt      = 1 // Redis' time
	answerOverlap = 3 // the newest tick that was settled as an overlap
	answerToken   = 6
)

// settle: ARGV, and the answer.
const (
	argVerb       = 0
	argRun        = 1
	argSettledJob = 2
	argEntry      = 5  // of the history
	argAgain      = 12 // the due member by which the tick goes on; often left out
	argWait       = 13 // until that is due

	answerFreed      = 2 // the newest tick that was set free
	answerOverlapped = 3 // the ticks that were settled as overlaps
	answerBefore     = 4 // how many ticks in a row had failed
	answerAfter      = 5 // and with this one
)

// waitIn is how long after a settlement the due member is due by which the tick goes on.
func waitIn(settle []string) time.Duration {
	if len(settle) <= argWait {
		return 0
	}
	ms, _ := strconv.Atoi(settle[argWait]) // not a number: at once
	return time.Duration(ms) * time.Millisecond
}

// extend: ARGV.
const argExtendedJob = 1

// register: ARGV, and the answer: now, when the ledger was born, since when the ticks are these, the newest claimed
// one.
const (
	argFingerprint = 0
	gone           = "none" // the fingerprint of a job that has left the table

	answerNow   = 0
	answerBorn  = 1
	answerSince = 2
	answerTick  = 3
)

// ask and pause: ARGV. Their answers are a code, now, and what was made.
const (
	argSuffix   = 0 // ask: what follows the tick in a due member
	argBackfill = 2 // ask: the ticks, from here on, and behind them the act
	argPause    = 2 // pause: pause or resume, or pauseAll or resumeAll
	argEnds     = 5 // pause: its end
	answerMade  = 2
)

// backfilled are the ticks that are asked for; none: the script makes one.
func (c *call) backfilled() []string { return c.args[argBackfill : len(c.args)-1] }

// request is the id of an operator's request, or of one that counts missed ticks.
func (c *call) request() string {
	for _, key := range c.keys {
		if id, ok := strings.CutPrefix(key, prefix+"memo:"); ok {
			return id
		}
	}
	return ""
}

// cancel: ARGV, and the answer.
const argCancelJob = 1

const answerCancelled = 2 // the runs that lived

// outcomeIn is the outcome in an entry of the history.
func outcomeIn(entry string) string {
	_, after, _ := strings.Cut(entry, `"outcome":"`)
	name, _, _ := strings.Cut(after, `"`)
	return name
}

// timer: ARGV, and the answer.
const (
	argTimer    = 1
	argSource   = 5
	answerTime  = 1
	answerWaits = 3
)

// spring: ARGV of the first timer, and its code in the answer.
const (
	argSprings   = 1 // member, tick, next, missed, overlapped
	springArgs   = 5
	answerSprung = 2
)

// book: ARGV, and the answer: 1 when the ticks were counted by this request.
const (
	argGaps      = 0
	argBooked    = 1
	answerBooked = 2
)

// ledger is what stands in a job's ledger.
type ledger struct {
	tick   int64
	behind []int64 // what came due while runs lived: <tick>~<<due> or <tick>~+<due>
}

// ledger reads one. The store is not locked.
func (s *store) ledger(job string) (l ledger) {
	key := prefix + "job:" + job
	l.tick, _ = strconv.ParseInt(s.mini.HGet(key, "tick"), 10, 64)
	for _, e := range strings.Fields(s.mini.HGet(key, "open")) {
		if tick, due, _ := strings.Cut(e, "~"); due != "" && due[0] != ':' {
			l.behind = append(l.behind, numbers(tick)...)
		}
	}
	return l
}

func numbers(text string) (all []int64) {
	for _, word := range strings.Fields(text) {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// leftover reports whether a field of a ledger may not be there when all runs are over.
func leftover(field, value string) bool {
	lives := strings.Contains(value, "=") || strings.Contains(value, "~+") || strings.Contains(value, "~<")
	return strings.HasPrefix(field, "x:") || field == "open" && lives || strings.HasPrefix(field, "r:")
}

// leftoverTimer reports whether the entry of a timer is more than a mark.
func leftoverTimer(entry string) bool {
	return strings.IndexAny(entry, "0123456789") == 0 || strings.HasPrefix(entry, "series ")
}

// gapText reads one gap of a ledger: from and to, both exclusive, and the fate of the ticks in it.
func gapText(gap string) (from, to int64, fate string) {
	bounds, fate, given := strings.Cut(gap, ":")
	if !given {
		fate = missed
	}
	first, last, _ := strings.Cut(bounds, "-")
	a, b := numbers(first), numbers(last)
	if len(a) != 1 || len(b) != 1 {
		return 0, 0, fate
	}
	return a[0], b[0], fate
}

// unbooked are the gaps of a ledger that nobody has counted yet: from and to, both exclusive.
func (s *store) unbooked(job string) (gaps [][2]int64) {
	for _, gap := range strings.Fields(s.mini.HGet(prefix+"job:"+job, "gaps")) {
		from, to, _ := gapText(gap)
		gaps = append(gaps, [2]int64{from, to})
	}
	return gaps
}

// isDue reports whether something of a job is in the due set, and is due by then; byHand: that was asked for by hand.
func (s *store) isDue(job string, by time.Duration, byHand bool) bool {
	set, _ := s.mini.SortedSet(prefix + "due") // an error is an empty set
	for member, at := range set {
		f := strings.Fields(member)
		asked := f[memberKind] == "manual" || f[memberKind] == "backfill"
		if f[memberJob] == job && int64(at) <= s.world.began.Add(by).UnixMilli() && (asked || !byHand) {
			return true
		}
	}
	return false
}

// uncounted are the times of which the ticks were missed, and Redis alone knows that: those of the gaps, those between
// the newest claimed tick and a pause that still lasts, which become a gap when it ends, and those of single ticks that
// wait: behind a run, whichever claim listed them there, or in the due set, to be fired late.
func (s *store) uncounted() (all []missing) {
	for _, job := range s.world.plan.names() {
		for _, gap := range s.unbooked(job) {
			all = append(all, missing{job, gap[0], gap[1]})
		}
		key := prefix + "job:" + job
		for _, field := range []string{"paused", "pausedAll"} {
			if note := numbers(s.mini.HGet(key, field)); len(note) > 1 {
				all = append(all, missing{job, s.ledger(job).tick, note[1]})
			}
		}
		for _, tick := range append(s.ledger(job).behind, s.waiting(job)...) {
			all = append(all, missing{job, tick - 1, tick + 1})
		}
	}
	return all
}

// waiting are the ticks of a job in the due set for which no run has begun: not those that are run again, nor what
// somebody asked for by hand.
func (s *store) waiting(job string) (ticks []int64) {
	members, _ := s.mini.ZMembers(prefix + "due")
	for _, m := range members {
		words := strings.Fields(m)
		if len(words) <= memberKind || words[memberJob] != job {
			continue
		}
		switch kindIn(words[memberKind]) {
		case "schedule", "catchup", "handover":
			ticks = append(ticks, numbers(words[0])...)
		}
	}
	return ticks
}
