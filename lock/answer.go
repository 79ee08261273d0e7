package lock

import (
	"fmt"
	"strconv"
	"time"
)

// Code is what Redis said to a claim.
type Code string

const (
	Won     Code = "WON"     // the tick and the lock are ours
	Fired   Code = "FIRED"   // this tick, or a newer one, was claimed before
	Overlap Code = "OVERLAP" // an earlier run of the job is not over
	Locked  Code = "LOCKED"  // the lock has an owner that the ledger does not know
	Queued  Code = "QUEUED"  // claimed, and runs when the present run ends, wherever that is
	Paused  Code = "PAUSED"  // the job is paused
	Held    Code = "HELD"    // a due member has to wait for the present run
	Gone    Code = "GONE"    // the due member was taken by another
	Early   Code = "EARLY"   // Redis' clock has not reached the tick
	Gap     Code = "GAP"     // the list of older ticks was made from a ledger that has moved on
	Lost    Code = "LOST"    // it had been ours, and is no more
	stale   Code = "STALE"   // this copy of the request came after its window; it had no effect
	unknown Code = "UNKNOWN" // the ledger is new or was lost
)

// Answer is what Redis said, with what the loser may want to know.
type Answer struct {
	Code     Code
	Now      time.Time // Redis' time; estimated, for a claim with Second
	Prev     time.Time // newest tick claimed before this call, with Overlap also newest refused so; zero if none
	Token    int64     // with Won: the run's fencing token
	Overlap  time.Time // newest tick that was settled as overlapped
	PausedTo time.Time // end of the last pause
	Holder   string    // replica that claimed last
	Until    time.Time // with Paused: when the pause ends; zero if nobody knows
	Waited   time.Time // with Queued: the tick that waited until now, and whose place was taken; zero if none did
	LeaseEnd time.Time // with Overlap and Held: when, by Redis' time, the run in the way loses its lease unless it renews it
}

func parseAnswer(parts []any) (Answer, error) {
	if len(parts) != 7 {
		return Answer{}, fmt.Errorf("unexpected answer %v", parts)
	}
	var n [7]int64
	for _, i := range []int{1, 2, 3, 4, 6} {
		v, err := integer(parts[i])
		if err != nil {
			return Answer{}, err
		}
		n[i] = v
	}
	code, _ := parts[0].(string)
	holder, _ := parts[5].(string)
	a := Answer{Code: Code(code), Now: fromMillis(n[1]), Prev: fromMillis(n[2]), Overlap: fromMillis(n[3]), PausedTo: fromMillis(n[4]), Holder: holder}
	switch a.Code {
	case Won:
		a.Token = n[6]
	case Paused:
		a.Until = fromMillis(n[6])
	case Queued:
		a.Waited = fromMillis(n[6])
	case Overlap, Held:
		a.LeaseEnd = fromMillis(n[6])
	}
	return a, nil
}

func integer(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case string:
		return strconv.ParseInt(v, 10, 64)
	}
	return 0, fmt.Errorf("unexpected answer %v", v)
}
