package lock

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/rds"
)

// Code is Redis' answer to a claim.
type Code string

const (
	Won     Code = "WON"     // the tick and the lock are ours
	Fired   Code = "FIRED"   // this tick, or a newer one, was claimed before
	Overlap Code = "OVERLAP" // an earlier run of the job is not over
	Locked  Code = "LOCKED"  // the lock has an owner that the ledger does not know
	Queued  Code = "QUEUED"  // claimed, and runs when the present run ends, wherever that is
	Waits   Code = "DUE"     // it was claimed before, and waits for its start, or for the end of the present run
	Free    Code = "FREE"    // to a claim that may not win: nothing is in the tick's way
	Paused  Code = "PAUSED"  // the job is paused
	Held    Code = "HELD"    // a due member, or who asks for a lease, has to wait for the present run
	Gone    Code = "GONE"    // the due member was taken by another
	Early   Code = "EARLY"   // Redis' clock has not reached the tick
	Gap     Code = "GAP"     // the list of older ticks was made from a ledger that has moved on
	Lost    Code = "LOST"    // it had been ours, and no longer is
	Stale   Code = "STALE"   // Redis ran the claim after its Until, by a clock that may differ from the estimate
	unknown Code = "UNKNOWN" // the ledger is new or was lost
)

// Answer is Redis' answer, with what a loser may need to know.
type Answer struct {
	Code     Code
	Now      time.Time // Redis' time
	Prev     time.Time // newest tick claimed before this call; zero if none
	Token    int64     // with Won: the run's fencing token
	Since    time.Time // with Won: see Lease.Since
	Overlap  time.Time // newest tick that was settled as overlapped
	PausedTo time.Time // end of the last pause
	Holder   string    // replica that had claimed last
	Until    time.Time // with Paused: when the pause ends; zero = until it is resumed
	// Gaps are the times in which ticks were missed that no replica has counted yet (see Store.Book); "" = there are
	// none.
	Gaps string
	Born time.Time // when the ledger was made; if Register answered another time, Redis has lost its data since
}

func parseAnswer(parts []any) (Answer, error) {
	if len(parts) != 9 {
		return Answer{}, rds.Unexpected(parts)
	}
	var n [9]int64
	for _, i := range []int{1, 2, 3, 4, 6, 8} {
		v, err := rds.Integer(parts[i])
		if err != nil {
			return Answer{}, err
		}
		n[i] = v
	}
	code, _ := parts[0].(string)
	a := Answer{Code: Code(code), Now: rds.FromMillis(n[1]), Prev: rds.FromMillis(n[2]), Overlap: rds.FromMillis(n[3]),
		PausedTo: rds.FromMillis(n[4]), Born: rds.FromMillis(n[8])}
	a.Holder, _ = parts[5].(string)
	a.Gaps, _ = parts[7].(string)
	switch a.Code {
	case Won:
		a.Token, a.Since, a.Overlap = n[6], a.Overlap, time.Time{}
	case Paused:
		a.Until = rds.FromMillis(n[6])
	}
	return a, nil
}

// Heard is a claim of a tick of the table, as the replicas hear of it on the channel of nudges.
type Heard struct {
	Running // as it began
	Tick    time.Time
	Answer  Answer        // as a claim of this tick would get it
	Since   time.Duration // when it was heard of, by the boot clock
}

// ParseHeard reads `JOB TICK BORN REPLICA RUN END`, which acquire publishes after `run`, heard of at since; false if it
// is anything else. So the others need not ask for the tick. A message that is lost costs a question.
func ParseHeard(text string, since time.Duration) (h Heard, ok bool) {
	f := strings.Fields(text)
	if len(f) != 6 {
		return h, false
	}
	tick, err := strconv.ParseInt(f[1], 10, 64)
	born, err2 := strconv.ParseInt(f[2], 10, 64)
	end, err3 := strconv.ParseInt(f[5], 10, 64)
	h = Heard{Running: Running{Run: f[4], Job: f[0], leaseEnd: end}, Tick: rds.FromMillis(tick), Since: since}
	h.Answer = Answer{Code: Fired, Prev: h.Tick, Born: rds.FromMillis(born), Holder: f[3]}
	return h, cmp.Or(err, err2, err3) == nil
}
