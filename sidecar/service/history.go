package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/lock"
)

// historyPage is how many entries of a stream are read at once at most, and firstPage at least; atOnce is of all.
const (
	historyPage = 500
	firstPage   = 5
	atOnce      = 4000
)

// Search says which entries of the history are wanted.
type Search struct {
	Jobs         []string  // or timers; for an Operator, none = all
	Failed       bool      // only runs that failed
	Outcomes     []string  // none = any but lock.Overlapped and lock.PausedTick, whose ticks are no runs
	Replicas     []string  // none = any
	Since, Until time.Time // settled from Since to before Until, by Redis' clock; zero = no limit
	Limit        int
	Each         int // at most so many of each job; handovers do not count; 0 = any number

	all   []string // whose histories are read, instead of Jobs
	whole bool     // no failures from before the time of which Redis has all
}

// wants reports whether an entry is wanted that was settled in the time wanted.
func (q *Search) wants(e *Entry) bool {
	in := func(wanted []string, value string) bool { return len(wanted) == 0 || slices.Contains(wanted, value) }
	if e.Count > 0 && e.Outcome != lock.Missed && len(q.Outcomes) == 0 {
		return false
	}
	return in(q.Jobs, e.Job) && in(q.Outcomes, e.Outcome) && in(q.Replicas, e.Replica)
}

// History returns the newest entries of a job's history, at most limit of them, the one that was settled last first.
// Redis keeps about as many of each job as lock.Options say, and a quarter as many of runs that failed.
func (s *Store) History(ctx context.Context, job string, limit int) ([]Entry, error) {
	return s.Search(ctx, Search{Jobs: []string{job}, Limit: limit})
}

// Search returns the newest entries that are wanted, the one that was settled last first.
func (s *Store) Search(ctx context.Context, q Search) ([]Entry, error) {
	var keys []string
	for _, job := range append(q.all, q.Jobs...) {
		if !q.whole {
			keys = append(keys, s.redis.Keys.Failures(job))
		}
		if !q.Failed {
			keys = append(keys, s.redis.Keys.History(job))
		}
	}
	slices.Sort(keys)
	b := backwards{size: max(firstPage, q.Limit/max(len(keys), 1))}
	if q.Each > 0 {
		b.size = 2 * q.Each // with handovers
	}
	if !q.Since.IsZero() {
		b.oldest = strconv.FormatInt(q.Since.UnixMilli(), 10)
	}
	if !q.Until.IsZero() {
		b.newest = strconv.FormatInt(q.Until.UnixMilli()-1, 10) // with all entries of that millisecond
	}
	found, err := s.read(ctx, b, slices.Compact(keys), q.choose) // timers share theirs
	entries := make([]Entry, len(found))
	for i := range found {
		entries[i] = found[i].Entry
	}
	return entries, err
}

// choose returns those that are wanted of entries, the newest of which is the first. It tells whether an entry that is
// older than another one of its stream may be wanted too.
func (q *Search) choose(all []*stored) (chosen []*stored, more func(than *stored) bool) {
	seen, count := map[string]bool{}, map[string]int{}
	for _, e := range all {
		// A failed run is in both streams. And one that was taken over may still have ended.
		if len(chosen) == q.Limit || seen[e.Run] {
			continue
		}
		seen[e.Run] = e.Count == 0
		if !q.wants(&e.Entry) || q.Each > 0 && count[e.Job] == q.Each {
			continue
		}
		if e.Outcome != HandedOver { // which belongs to the run that followed it
			count[e.Job]++
		}
		chosen = append(chosen, e)
	}
	return chosen, func(than *stored) bool {
		return (len(chosen) < q.Limit || len(chosen) > 0 && byAge(than, chosen[len(chosen)-1]) < 0) &&
			(q.Each == 0 || count[than.Job] < q.Each && !rds.IsTimer(than.Job))
	}
}

// HistoryBegins is when the oldest entry of a job's or timer's history was written; zero if none has left it.
func (s *Store) HistoryBegins(ctx context.Context, job string) (time.Time, error) {
	all := func(all []*stored) ([]*stored, func(*stored) bool) { return all, func(*stored) bool { return true } }
	found, err := s.read(ctx, backwards{}, []string{s.redis.Keys.History(job)}, all)
	if len(found) < s.redis.History(job) {
		return time.Time{}, err
	}
	return rds.FromMillis(int64(found[len(found)-1].id[0])), err
}

// backwards says what is read of streams; the zero value is all.
type backwards struct {
	newest, oldest string // ids that bound it
	size           int    // of the first page
}

// stored is an entry as a stream has it.
type stored struct {
	Entry
	id   [3]uint64 // its milliseconds, its number in them, and 1 in a history: the failures may have it later
	tick bool      // it says what became of its ticks
}

// byAge sorts entries, the newest first.
func byAge(a, b *stored) int { return slices.Compare(b.id[:], a.id[:]) }

// read reads streams from their ends, and gives choose what it has read so far. It reads on where choose wants more.
func (s *Store) read(ctx context.Context, b backwards, keys []string,
	choose func([]*stored) ([]*stored, func(than *stored) bool)) (chosen []*stored, err error) {
	last := map[string]*stored{} // nil = all of the stream was read
	more := func(*stored) bool { return true }
	b.size = min(cmp.Or(b.size, historyPage), historyPage)
	for all := []*stored(nil); ; b.size = min(2*b.size, historyPage) {
		open := slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
			end, known := last[key]
			return known && (end == nil || !more(end))
		})
		if len(open) == 0 {
			return chosen, nil
		}
		asked, size := make([]*redis.XMessageSliceCmd, len(open)), min(b.size, max(atOnce/len(open), 1))
		_, err := s.pipelined(ctx, func(pipe redis.Pipeliner) {
			for i, key := range open {
				from := cmp.Or(b.newest, "+")
				if end := last[key]; end != nil {
					from = fmt.Sprintf("(%d-%d", end.id[0], end.id[1])
				}
				asked[i] = pipe.XRevRangeN(ctx, key, from, cmp.Or(b.oldest, "-"), int64(size))
			}
		})
		if err != nil {
			return nil, fmt.Errorf("reading the history: %w", err)
		}
		for i, key := range open {
			last[key] = nil
			for n, m := range asked[i].Val() {
				e, err := parseStored(key, m)
				if err == nil { // else another version wrote it
					all = append(all, e)
				}
				if n == size-1 {
					last[key] = e
				}
			}
		}
		slices.SortStableFunc(all, byAge)
		chosen, more = choose(all)
	}
}

func parseStored(key string, m redis.XMessage) (*stored, error) {
	text, tick := m.Values["tick"].(string)
	if !tick {
		text, _ = m.Values["run"].(string)
	}
	e, err := parseEntry(text)
	_, job, _ := strings.Cut(key[strings.LastIndex(key, "}:")+2:], ":")
	e.Job = cmp.Or(e.Job, job) // which a script that writes an entry does not name
	id := splitID(m.ID)
	id[2] = uint64(strings.Count(key, "}:history:"))
	return &stored{e, id, tick}, err
}

// splitID reads the id of an entry: <ms>-<number>.
func splitID(text string) (id [3]uint64) {
	ms, number, _ := strings.Cut(text, "-")
	id[0], _ = strconv.ParseUint(ms, 10, 64) // Redis' own words
	id[1], _ = strconv.ParseUint(number, 10, 64)
	return id
}

// AppendHistory writes down the end of a run that had no lease.
func (s *Store) AppendHistory(ctx context.Context, e *Entry) error {
	most := s.redis.History(e.Job)
	_, err := s.redis.Do(ctx, "xadd", s.redis.Keys.History(e.Job), "maxlen", "~", most, "*", "run", e.text())
	if err == nil && e.Failed {
		_, err = s.redis.Do(ctx, "xadd", s.redis.Keys.Failures(e.Job), "maxlen", "~", (most+3)/4, "*", "run", e.text())
	}
	if err != nil {
		return fmt.Errorf("writing the history: %w", err)
	}
	return nil
}

// TickFates are what became of the newest ticks of a job, in the order in which that was decided.
type TickFates []Entry

// TickFates reads them, of a timer at most a thousand. States reads the ledger before: then a tick that ends meanwhile
// is in both.
func (s *Store) TickFates(ctx context.Context, job string) (TickFates, error) {
	if rds.IsTimer(job) {
		all, err := s.Search(ctx, Search{Jobs: []string{job}, Outcomes: Fates[:], Limit: 1000})
		slices.Reverse(all)
		return all, err
	}
	ended := func(all []*stored) ([]*stored, func(*stored) bool) {
		all = slices.DeleteFunc(slices.Clone(all), func(e *stored) bool { return !e.tick })
		return all, func(*stored) bool { return len(all) < 10_000 }
	}
	found, err := s.read(ctx, backwards{}, []string{s.redis.Keys.History(job)}, ended)
	fates := make(TickFates, 0, len(found))
	for _, e := range slices.Backward(found) {
		fates = append(fates, e.Entry)
	}
	return fates, err
}

// Fate returns what became of a tick: the entry of its last run or, if it had none, that of the shortest interval in
// which it lies. An operator's run of the tick is not among them: see Again. It returns nil if nothing is known.
func (t TickFates) Fate(tick time.Time) *Entry {
	var found *Entry
	for i := range t {
		e := &t[i]
		switch {
		case e.Kind == "backfill", tick.After(e.Tick), tick.Before(e.Tick) && (e.Count == 0 || tick.Before(e.First)):
		case e.Count == 0, found == nil, found.Count > 0 && e.Tick.Sub(e.First) < found.Tick.Sub(found.First):
			found = e
		}
	}
	return found
}

// Again returns the runs of a tick that an operator asked for, in the order in which they ended.
func (t TickFates) Again(tick time.Time) (runs []Entry) {
	for _, e := range t {
		if e.Kind == "backfill" && e.Tick.Equal(tick) {
			runs = append(runs, e)
		}
	}
	return runs
}

// Run returns the entry of a run; nil if it is not among the newest.
func (t TickFates) Run(id string) *Entry {
	for i := range t {
		if t[i].Run == id && t[i].Count == 0 {
			return &t[i]
		}
	}
	return nil
}
