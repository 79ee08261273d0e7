package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/lock"
)

// Entry is the history's record of a run that was settled, or of ticks that no replica fired. In Redis it is one field,
// `run`, of an entry of the streams `runs`, `failures` and `fates:<job>`, and the field `done` of the job's ledger.
type Entry struct {
	Job     string
	Tick    time.Time
	Run     string // UUID
	Replica string
	Kind    string
	Attempt int           // the last one
	Outcome string        // one word, opaque here, except HandedOver
	Ended   time.Time     // zero = not known: the replica was gone
	Took    time.Duration // with all its attempts, in whole milliseconds; 0 = it never began, or the time is not known
	Detail  string        // why it failed
	Failed  bool          // kept in `failures` too, which successes do not push out
	Data    int           // bytes of data that a trigger brought; UnknownData = it brought some; 0 = none

	// Of ticks that no replica fired, Tick is the last one, and Outcome their fate.
	First  time.Time
	Count  int    // 0 = it is a run
	Behind string // of ticks that overlapped: the run in their way
}

// UnknownData stands for data whose size the replica does not know.
const UnknownData = -1

// HandedOver is the outcome of a run that never began and whose tick went to another replica. It is not the end of its tick, so
// it is never the job's Last.
const HandedOver = "handed_over"

// entryText is an Entry as Redis keeps it: JSON with times in milliseconds.
type entryText struct {
	Job     string `json:"job"`
	Tick    int64  `json:"tick"`
	Run     string `json:"run,omitempty"`
	Replica string `json:"replica,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Outcome string `json:"outcome"`
	Ended   int64  `json:"ended,omitempty"`
	Took    int64  `json:"ms,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
	First   int64  `json:"first,omitempty"`
	Count   int    `json:"count,omitempty"`
	Behind  string `json:"behind,omitempty"`
	Data    int    `json:"data,omitempty"`
}

// Ending is the lock.Ending that a settlement writes down when this is the entry of its run.
func (e *Entry) Ending() lock.Ending {
	ending := lock.Ending{At: e.Ended, Entry: e.text(), Failed: e.Failed}
	if _, timer := rds.TimerID(e.Job); !timer && e.Kind != "manual" {
		ending.Fate, ending.Again = e.Outcome, e.Kind == "backfill"
	}
	return ending
}

// Booking is the lock.Booking of ticks that no replica fired.
func (e *Entry) Booking() lock.Booking {
	return lock.Booking{Fate: e.Outcome, Ticks: e.Count, Entry: e.text()}
}

func (e *Entry) text() string {
	var b strings.Builder
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	_ = w.Encode(e.kept()) // never fails
	return strings.TrimSuffix(b.String(), "\n")
}

func (e *Entry) kept() entryText {
	return entryText{e.Job, rds.Millis(e.Tick), e.Run, e.Replica, e.Kind, e.Attempt, e.Outcome, rds.Millis(e.Ended),
		e.Took.Milliseconds(), e.Detail, e.Failed, rds.Millis(e.First), e.Count, e.Behind, e.Data}
}

// parseEntry reads what Ending wrote.
func parseEntry(text string) (Entry, error) {
	var t entryText
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return Entry{}, fmt.Errorf("reading the history entry %.100q: %w", text, err)
	}
	return t.entry(), nil
}

func (t *entryText) entry() Entry {
	return Entry{t.Job, rds.FromMillis(t.Tick), t.Run, t.Replica, t.Kind, t.Attempt, t.Outcome, rds.FromMillis(t.Ended),
		time.Duration(t.Took) * time.Millisecond, t.Detail, t.Failed, t.Data, rds.FromMillis(t.First), t.Count, t.Behind}
}
