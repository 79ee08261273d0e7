package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/lock"
)

// Entry is the history's record of a run that was settled. In Redis it is one field, `run`, of an entry of the streams
// `runs` and `failures`, and the field `done` of the job's ledger.
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
}

// HandedOver is the outcome of a run that never began and whose tick went to another replica. It is not the end of its tick, so
// it is never the job's Last.
const HandedOver = "handed_over"

// entryText is an Entry as Redis keeps it: JSON with times in milliseconds.
type entryText struct {
	Job     string `json:"job"`
	Tick    int64  `json:"tick"`
	Run     string `json:"run"`
	Replica string `json:"replica"`
	Kind    string `json:"kind"`
	Attempt int    `json:"attempt"`
	Outcome string `json:"outcome"`
	Ended   int64  `json:"ended,omitempty"`
	Took    int64  `json:"ms,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
}

// Ending is the lock.Ending that a settlement writes down when this is the entry of its run.
func (e *Entry) Ending() lock.Ending {
	var b strings.Builder
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	_ = w.Encode(e.kept()) // never fails
	return lock.Ending{At: e.Ended, Entry: strings.TrimSuffix(b.String(), "\n"), Failed: e.Failed}
}

func (e *Entry) kept() entryText {
	return entryText{e.Job, rds.Millis(e.Tick), e.Run, e.Replica, e.Kind, e.Attempt, e.Outcome, rds.Millis(e.Ended),
		e.Took.Milliseconds(), e.Detail, e.Failed}
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
		time.Duration(t.Took) * time.Millisecond, t.Detail, t.Failed}
}
