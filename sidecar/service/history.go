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

	"github.com/solotick/solotick/lock"
)

// historyPage is how many entries are read at once when most of them may be of other jobs.
const historyPage = 500

// Search says which runs of the history are wanted.
type Search struct {
	Jobs         []string  // none = of all jobs
	Failed       bool      // only those that failed
	Outcomes     []string  // none = any
	Replicas     []string  // none = any
	Since, Until time.Time // settled from Since to before Until, by Redis' clock; zero = no limit
	Limit        int
}

// wants reports whether a run is wanted that was settled in the time wanted.
func (q *Search) wants(e *Entry) bool {
	in := func(wanted []string, value string) bool { return len(wanted) == 0 || slices.Contains(wanted, value) }
	return in(q.Jobs, e.Job) && in(q.Outcomes, e.Outcome) && in(q.Replicas, e.Replica)
}

// History returns the newest runs of one job or of all ("" = all), at most limit of them, the one that was settled last
// first. Redis keeps some ten thousand runs, and as many of those that failed. History reads on until it has enough or
// has read all.
func (s *Store) History(ctx context.Context, job string, limit int) ([]Entry, error) {
	return s.Search(ctx, Search{Jobs: strings.Fields(job), Limit: limit})
}

// Search is History for the runs that are wanted.
func (s *Store) Search(ctx context.Context, q Search) ([]Entry, error) {
	streams := []string{s.redis.Keys.Failures}
	if !q.Failed {
		streams = []string{s.redis.Keys.Runs, s.redis.Keys.Failures}
	}
	var sources []*page
	for _, key := range streams {
		p := &page{key: key, next: "+", oldest: "-", size: historyPage}
		if len(q.Jobs)+len(q.Outcomes)+len(q.Replicas) == 0 {
			p.size = min(historyPage, q.Limit)
		}
		if !q.Since.IsZero() {
			p.oldest = strconv.FormatInt(q.Since.UnixMilli(), 10)
		}
		if !q.Until.IsZero() {
			p.next = strconv.FormatInt(q.Until.UnixMilli()-1, 10) // with all entries of that millisecond
		}
		sources = append(sources, p)
	}
	var found []Entry
	seen := map[string]bool{}
	for len(found) < q.Limit {
		e, err := s.newest(ctx, sources)
		if err != nil {
			return nil, fmt.Errorf("reading the history: %w", err)
		}
		if e == nil {
			break
		}
		if q.wants(e) && !seen[e.Run] {
			seen[e.Run] = e.Count == 0 // a run is settled once; a failed one is in both streams
			found = append(found, *e)
		}
	}
	return found, nil
}

// newest takes the newest entry of all sources; nil if none is left.
func (s *Store) newest(ctx context.Context, sources []*page) (*Entry, error) {
	var first *page
	for _, p := range sources {
		if err := p.fill(ctx, s); err != nil {
			return nil, err
		}
		if len(p.read) > 0 && (first == nil || newer(p.read[0].id, first.read[0].id)) {
			first = p
		}
	}
	if first == nil {
		return nil, nil
	}
	e := first.read[0].entry
	first.read = first.read[1:]
	return &e, nil
}

// page is a part of a stream that is read backwards, from its end.
type page struct {
	key    string
	next   string // bound of the next read; "" = there is none
	oldest string // bound of all reads
	size   int
	read   []stored
}

type stored struct {
	id    string
	entry Entry
}

// fill reads on if no entry is left.
func (p *page) fill(ctx context.Context, s *Store) error {
	for len(p.read) == 0 && p.next != "" {
		found, err := onServer(ctx, s, func(ctx context.Context, rdb redis.UniversalClient) ([]redis.XMessage, error) {
			return rdb.XRevRangeN(ctx, p.key, p.next, p.oldest, int64(p.size)).Result()
		})
		if err != nil {
			return err
		}
		p.take(found)
	}
	return nil
}

func (p *page) take(messages []redis.XMessage) {
	p.next = ""
	if len(messages) == p.size {
		p.next = "(" + messages[len(messages)-1].ID
	}
	for _, m := range messages {
		text, _ := m.Values["run"].(string)
		if e, err := parseEntry(text); err == nil { // written by another version, and left alone
			p.read = append(p.read, stored{m.ID, e})
		}
	}
}

// newer compares the ids of two entries: <ms>-<number>.
func newer(a, b string) bool {
	aTime, aCount := splitID(a)
	bTime, bCount := splitID(b)
	return cmp.Or(cmp.Compare(aTime, bTime), cmp.Compare(aCount, bCount)) > 0
}

func splitID(id string) (ms, count uint64) {
	before, after, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(before, 10, 64) // Redis' own words
	count, _ = strconv.ParseUint(after, 10, 64)
	return ms, count
}

// maxHistory is about how many entries a stream of the history keeps; the script that settles runs has the same number.
const maxHistory = 10000

// AppendHistory writes down the end of a run that had no lease.
func (s *Store) AppendHistory(ctx context.Context, e lock.Ending) error {
	streams := []string{s.redis.Keys.Runs}
	if e.Failed {
		streams = append(streams, s.redis.Keys.Failures)
	}
	for _, stream := range streams {
		if _, err := s.redis.Do(ctx, "xadd", stream, "maxlen", "~", maxHistory, "*", "run", e.Entry); err != nil {
			return fmt.Errorf("writing the history: %w", err)
		}
	}
	return nil
}
