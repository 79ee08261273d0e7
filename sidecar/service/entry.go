package service

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/lock"
)

// Entry is the history's record of a run that was settled, or of ticks that no replica fired. In Redis it is one field
// of an entry of the streams `history:<job>` and `failures:<job>`: `tick` if it says what became of its ticks, else
// `run`; and the field `done` of the job's ledger.
type Entry struct {
	Job     string        `json:"job"`
	Tick    time.Time     `json:"-"`
	Run     string        `json:"run,omitempty"` // UUID
	Replica string        `json:"replica,omitempty"`
	Kind    string        `json:"kind,omitempty"`
	Attempt int           `json:"attempt,omitempty"` // the last one
	Outcome string        `json:"outcome"`           // one word, opaque here, except HandedOver
	Ended   time.Time     `json:"-"`                 // zero = not known: the replica was gone
	Took    time.Duration `json:"-"`                 // all attempts, in whole milliseconds; 0 = never begun, or unknown
	Detail  string        `json:"detail,omitempty"`  // why it failed
	Failed  bool          `json:"failed,omitempty"`  // kept among the failures too, which successes do not push out

	// Of ticks that no replica fired, Tick is the last one, and Outcome their fate.
	First  time.Time `json:"-"`
	Count  int       `json:"count,omitempty"`  // 0 = it is a run
	Behind string    `json:"behind,omitempty"` // of ticks that overlapped: the run in their way
}

// HandedOver is the outcome of a run that never began and whose tick went to another replica. It is not the end of its
// tick, so it is never the job's Last.
const HandedOver = "handed_over"

// entryText is an Entry as Redis keeps it: JSON with times in milliseconds.
type entryText struct {
	Entry
	Tick  int64 `json:"tick"`
	Ended int64 `json:"ended,omitempty"`
	Took  int64 `json:"ms,omitempty"`
	First int64 `json:"first,omitempty"`
}

// Ending is the lock.Ending that a settlement writes down when this is the entry of its run.
func (e *Entry) Ending() lock.Ending {
	ending := lock.Ending{At: e.Ended, Entry: e.text(), Failed: e.Failed}
	if !rds.IsTimer(e.Job) && e.Kind != "manual" {
		ending.Fate, ending.Again = e.Outcome, e.Kind == "backfill"
	}
	return ending
}

// Booking is the lock.Booking of ticks that no replica fired.
func (e *Entry) Booking() lock.Booking {
	return lock.Booking{Fate: e.Outcome, Ticks: e.Count, Entry: e.text()}
}

func (e *Entry) text() string { return text.JSON(e.kept()) }

// told is the entry of ticks that no replica fired; "" if there are none.
func (e *Entry) told() string {
	if e.Count == 0 {
		return ""
	}
	return e.text()
}

func (e *Entry) kept() entryText {
	return entryText{*e, rds.Millis(e.Tick), rds.Millis(e.Ended), e.Took.Milliseconds(), rds.Millis(e.First)}
}

// parseEntry reads what Ending wrote, which is less than 2 KiB.
func parseEntry(text string) (Entry, error) {
	var t entryText
	if err := json.Unmarshal([]byte(text[:min(len(text), 2<<10)]), &t); err != nil {
		return Entry{}, fmt.Errorf("reading the history entry %.100q: %w", text, err)
	}
	return t.entry(), nil
}

func (t *entryText) entry() Entry {
	e := t.Entry
	e.Tick, e.Ended, e.First = rds.FromMillis(t.Tick), rds.FromMillis(t.Ended), rds.FromMillis(t.First)
	e.Took = time.Duration(t.Took) * time.Millisecond
	return e
}

// ByFailure sorts the failed entries before the others, and in both groups those that ended last first.
func ByFailure(a, b Entry) int {
	if a.Failed != b.Failed {
		return map[bool]int{true: -1, false: 1}[a.Failed]
	}
	return b.Ended.Compare(a.Ended)
}
