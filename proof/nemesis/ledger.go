package nemesis

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// keptHistory is the table's redis.history: so many that Redis forgets none while the nemesis is at work.
const keptHistory = 100_000

// ledger is what Redis keeps of a job's ticks at the very end.
type ledger struct {
	since   time.Time // ticks up to then have no fate: Redis did not know the job yet
	newest  time.Time // tick that was claimed or settled
	gaps    []gap
	fates   []fate         // in the order in which they were written
	counted map[string]int // by fate
}

// gap has ticks whose fate is decided, and that no replica has counted yet. They lie between its ends.
type gap struct{ from, to time.Time }

// fate is one entry: of a run that was its tick's last, or of a row of ticks that had none.
type fate struct {
	at     time.Time // when Redis wrote it
	what   string
	tick   time.Time // of a row the last one
	run    string    // "" = it is of a row
	first  time.Time // of a row
	count  int       // of a row
	behind string    // of a row that overlapped: the run in the way, where it is known
	detail string    // why, of a row that was missed
}

// ledgers reads those of all jobs.
func ledgers(ctx context.Context, client redis.UniversalClient, jobs []job) (map[string]*ledger, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all := map[string]*ledger{}
	for _, j := range jobs {
		fields, err := client.HGetAll(ctx, keyPrefix+"job:"+j.name).Result()
		if err != nil {
			return nil, fmt.Errorf("reading the ledger of %s: %w", j.name, err)
		}
		entries, err := client.XRange(ctx, keyPrefix+"history:"+j.name, "-", "+").Result()
		if err != nil {
			return nil, fmt.Errorf("reading the history of %s: %w", j.name, err)
		}
		if all[j.name], err = parseLedger(fields, entries); err != nil {
			return nil, fmt.Errorf("reading the fates of %s: %w", j.name, err)
		}
	}
	return all, nil
}

// parseLedger reads numbers and times in milliseconds: a gap is `FROM-TO` or `FROM-TO:FATE`, a counter `fate:FATE`.
func parseLedger(fields map[string]string, entries []redis.XMessage) (*ledger, error) {
	l := &ledger{counted: map[string]int{}}
	var err error
	number := func(text string) int64 {
		n, wrong := strconv.ParseInt(text, 10, 64)
		if wrong != nil && err == nil {
			err = wrong
		}
		return n
	}
	at := func(text string) time.Time { return time.UnixMilli(number(text)).UTC() }
	for field, text := range fields {
		switch what, isCount := strings.CutPrefix(field, "fate:"); {
		case isCount:
			l.counted[what] = int(number(text))
		case field == "since":
			l.since = at(text)
		case field == "tick":
			l.newest = at(text)
		case field == "gaps":
			for g := range strings.FieldsSeq(text) {
				between, _, _ := strings.Cut(g, ":")
				from, to, _ := strings.Cut(between, "-")
				l.gaps = append(l.gaps, gap{at(from), at(to)})
			}
		}
	}
	for _, m := range entries {
		if m.Values["tick"] == nil {
			continue
		}
		f, wrong := parseFate(m)
		if wrong != nil {
			return nil, wrong
		}
		l.fates = append(l.fates, f)
	}
	return l, err
}

// parseFate reads an entry of the history that says what became of ticks.
func parseFate(m redis.XMessage) (fate, error) {
	e, err := parseEntry(m)
	if err != nil {
		return fate{}, err
	}
	var row struct {
		First  int64
		Count  int
		Behind string
	}
	if err := json.Unmarshal([]byte(entryText(m)), &row); err != nil {
		return fate{}, fmt.Errorf("reading the fate %q: %w", m.ID, err)
	}
	return fate{at: e.at, what: e.outcome, tick: e.tick, run: e.run, first: time.UnixMilli(row.First).UTC(),
		count: row.Count, behind: row.Behind, detail: e.detail}, nil
}
