package lock

import (
	"errors"
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
	Waits   Code = "DUE"     // it was claimed before, and waits: to be started, or for the end of the present run
	Free    Code = "FREE"    // to a claim with Look: nothing is in the tick's way
	Paused  Code = "PAUSED"  // the job is paused
	Held    Code = "HELD"    // a due member has to wait for the present run
	Gone    Code = "GONE"    // the due member was taken by another
	Early   Code = "EARLY"   // Redis' clock has not reached the tick
	Gap     Code = "GAP"     // the list of older ticks was made from a ledger that has moved on
	Lost    Code = "LOST"    // it had been ours, and is no more
	Stale   Code = "STALE"   // Redis came to it after the claim's Until, by a clock that may not be where it was thought to be
	unknown Code = "UNKNOWN" // the ledger is new or was lost
)

// Answer is what Redis said, with what the loser may want to know.
type Answer struct {
	Code     Code
	Now      time.Time // Redis' time; estimated, for a claim with Second
	Prev     time.Time // newest tick claimed before this call; zero if none
	Token    int64     // with Won: the run's fencing token
	Overlap  time.Time // newest tick that was settled as overlapped
	PausedTo time.Time // end of the last pause
	Holder   string    // replica that claimed last
	Until    time.Time // with Paused: when the pause ends; zero if nobody knows
	LeaseEnd time.Time // with Overlap and Held: when, by Redis' time, the run in the way loses its lease unless it renews it
	// Gaps are the times in which ticks were missed that nobody has counted yet (see Store.Book); "" = there are none.
	Gaps string
	Born time.Time // when the ledger was made: another one than Register answered has been made since, Redis having lost its data
}

func parseAnswer(parts []any) (Answer, error) {
	if len(parts) != 9 {
		return Answer{}, unexpected(parts)
	}
	var n [9]int64
	for _, i := range []int{1, 2, 3, 4, 6, 8} {
		v, err := integer(parts[i])
		if err != nil {
			return Answer{}, err
		}
		n[i] = v
	}
	code, _ := parts[0].(string)
	a := Answer{Code: Code(code), Now: fromMillis(n[1]), Prev: fromMillis(n[2]), Overlap: fromMillis(n[3]), PausedTo: fromMillis(n[4]),
		Born: fromMillis(n[8])}
	a.Holder, _ = parts[5].(string)
	a.Gaps, _ = parts[7].(string)
	switch a.Code {
	case Won:
		a.Token = n[6]
	case Paused:
		a.Until = fromMillis(n[6])
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
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, unexpected(v)
}

// unexpected is the error of an answer of another form. It repeats its beginning alone: a hostile one has megabytes.
func unexpected(reply any) error {
	switch r := reply.(type) {
	case string:
		return fmt.Errorf("unexpected answer %.100q", r)
	case []any:
		if len(r) > 0 {
			return fmt.Errorf("%w, the first of %d", unexpected(r[0]), len(r))
		}
	case int64:
		return fmt.Errorf("unexpected answer %d", r)
	}
	return errors.New("unexpected answer of another kind")
}
