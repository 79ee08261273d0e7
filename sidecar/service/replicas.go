package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/text"
)

// HeartbeatTimeout is how long a replica may be silent before others consider it gone: some heartbeats may be lost.
const HeartbeatTimeout = 15 * time.Second

const (
	Draining   = "draining"     // Replica.Ready of one that takes nothing new, since it is about to end
	forgotten  = 24 * time.Hour // a replica that was silent for longer is forgotten
	maxSkips   = 100            // kept of one replica, and the same number of results
	maxReport  = 128 << 10      // bytes of both; more than Beat writes
	maxReports = 1 << 20        // bytes of those that are kept of all replicas
	// MaxReplicas bounds the heartbeats of a service, silent ones included, and maxBeats their bytes.
	MaxReplicas, maxBeats = 3000, 1 << 20
)

// Replica is the report of one replica about itself. All replicas read each other's heartbeats all the time, and an
// operator alone reads Skips and Ran, which may be long: Redis keeps these two apart.
type Replica struct {
	Name    string           `json:"-"` // one word
	Version string           `json:"version"`
	Table   string           `json:"table"`             // hash of its table
	Observe bool             `json:"observe,omitempty"` // it takes ticks, and calls no job
	Offset  time.Duration    `json:"-"`                 // Redis' clock minus its own, in whole microseconds
	Local   bool             `json:"local,omitempty"`   // it follows its own clock, as its table says
	Ready   string           `json:"ready,omitempty"`   // why it takes no ticks; "" = it takes ticks
	Reload  string           `json:"reload,omitempty"`  // why the table that it read last is not in force; "" = it is
	Skips   map[string]Skip  `json:"-"`                 // job → its newest tick that it skipped for a reason of its own
	Ran     map[string]Entry `json:"-"`                 // job that runs on every replica → its newest run on this one
	Process string           `json:"process,omitempty"` // tells this process from others of the same name; "" = unknown
	// Environment is where it belongs, such as a namespace; "" = not said. Different ones should not share a service.
	Environment string    `json:"environment,omitempty"`
	Twin        bool      `json:"twin,omitempty"` // another process has the same name
	Seen        time.Time `json:"-"`              // Redis' time of the heartbeat, as its sender estimates it
}

// Skip is a tick that a replica did not fire.
type Skip struct {
	Tick   time.Time
	Reason string // one word, opaque here
	At     time.Time
}

// replicaText is a Replica as Redis keeps it, in the field of its name: JSON with times in milliseconds.
type replicaText struct {
	Replica
	Offset int64 `json:"us"` // microseconds
	Seen   int64 `json:"seen"`
}

// reportText is what Redis keeps of a Replica apart, in a field of its name too: JSON with times in milliseconds.
type reportText struct {
	Skips map[string]skipText  `json:"skips,omitempty"`
	Ran   map[string]entryText `json:"ran,omitempty"`
}

type skipText struct {
	Tick   int64  `json:"tick"`
	Reason string `json:"reason"`
	At     int64  `json:"at"`
}

// Beat sends the heartbeat: it writes the replica's report to Redis, stamped with Redis' time instead of r.Seen. It
// keeps the newest hundred of its Skips, and a hundred of the runs in Ran, failed ones before the others.
func (s *Store) Beat(ctx context.Context, r Replica) error {
	if err := rds.OneWord("replica", r.Name); err != nil {
		return fmt.Errorf("sending a heartbeat: %w", err)
	}
	now, err := s.redis.Time(ctx)
	if err == nil {
		beat := text.JSON(replicaText{r, r.Offset.Microseconds(), rds.Millis(now)})
		_, err = s.redis.Do(ctx, "hset", s.redis.Keys.Replicas, r.Name, beat)
	}
	if err == nil {
		err = s.report(ctx, r)
	}
	if err != nil {
		return fmt.Errorf("sending a heartbeat: %w", err)
	}
	return nil
}

// report writes what Redis keeps apart of a heartbeat. If there is nothing, it removes what an earlier process of the
// same name has written.
func (s *Store) report(ctx context.Context, r Replica) error {
	if len(r.Skips)+len(r.Ran) == 0 {
		if s.reportGone.Load() {
			return nil
		}
		_, err := s.redis.Do(ctx, "hdel", s.redis.Keys.Reports, r.Name)
		s.reportGone.Store(err == nil)
		return err
	}
	s.reportGone.Store(false)
	t := reportText{Skips: map[string]skipText{}, Ran: map[string]entryText{}}
	jobs := slices.SortedFunc(maps.Keys(r.Skips), func(a, b string) int {
		return cmp.Or(r.Skips[b].At.Compare(r.Skips[a].At), cmp.Compare(a, b))
	})
	for _, job := range jobs[:min(len(jobs), maxSkips)] {
		k := r.Skips[job]
		t.Skips[job] = skipText{rds.Millis(k.Tick), k.Reason, rds.Millis(k.At)}
	}
	ran := slices.SortedFunc(maps.Keys(r.Ran), func(a, b string) int {
		return cmp.Or(ByFailure(r.Ran[a], r.Ran[b]), cmp.Compare(a, b))
	})
	for _, job := range ran[:min(len(ran), maxSkips)] {
		e := r.Ran[job]
		t.Ran[job] = e.kept()
	}
	_, err := s.redis.Do(ctx, "hset", s.redis.Keys.Reports, r.Name, text.JSON(t))
	return err
}

// Refused is an error that is Redis' answer; nil if it is none.
func Refused(err error) error {
	if _, said := errors.AsType[redis.Error](err); said {
		return err
	}
	return nil
}

// Leave removes the heartbeat of a replica that has ended in order.
func (s *Store) Leave(ctx context.Context, name string) error {
	for _, key := range []string{s.redis.Keys.Replicas, s.redis.Keys.Reports} {
		if _, err := s.redis.Do(ctx, "hdel", key, name); err != nil {
			return fmt.Errorf("taking the heartbeat of replica %q away: %w", name, err)
		}
	}
	return nil
}

// Replicas returns the replicas whose heartbeat is less than a day old, sorted by name, and removes the others. A
// replica silent for longer than HeartbeatTimeout has probably ended without Leave: if it was draining, it has.
func (s *Store) Replicas(ctx context.Context) ([]Replica, error) {
	all, err := s.Heartbeats(ctx)
	if err != nil || len(all) == 0 {
		return all, err
	}
	// Reports of live ones count more.
	sort.Slice(all, func(i, j int) bool { return all[i].Seen.After(all[j].Seen) })
	defer sortByName(all)
	size := 0
	for some := range slices.Chunk(all, 50) { // an answer has its bound
		ask := []any{"hmget", s.redis.Keys.Reports}
		for _, r := range some {
			ask = append(ask, r.Name)
		}
		reply, err := s.redis.Do(ctx, ask...)
		texts, _ := reply.([]any)
		if err == nil && len(texts) != len(some) {
			err = rds.Unexpected(reply)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the replicas: %w", err)
		}
		for i, text := range texts {
			var t reportText
			text, _ := text.(string) // that of another version is left alone
			if len(text) <= min(maxReport, maxReports-size) && json.Unmarshal([]byte(text), &t) == nil {
				size += len(text)
				some[i].add(t)
			}
		}
	}
	return all, nil
}

// Heartbeats is Replicas without their Skips and Ran.
func (s *Store) Heartbeats(ctx context.Context) ([]Replica, error) {
	now, err := s.redis.Time(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the replicas: %w", err)
	}
	fields, tooMany := s.hash(ctx, s.redis.Keys.Replicas, MaxReplicas, maxBeats)
	var all []Replica
	var old []any
	for name, text := range fields {
		r, err := parseReplica(name, text)
		switch {
		case err != nil: // written by another version, and left alone
		case now.Sub(r.Seen) > forgotten, now.Sub(r.Seen) > HeartbeatTimeout && r.Ready == Draining:
			old = append(old, name)
		case tooMany == nil:
			all = append(all, r)
		}
	}
	if len(old) > 0 {
		_, _ = s.redis.Do(ctx, append([]any{"hdel", s.redis.Keys.Reports}, old...)...)
		_, _ = s.redis.Do(ctx, append([]any{"hdel", s.redis.Keys.Replicas}, old...)...) // if not, the next reader does
	}
	if tooMany != nil { // or Redis gave no answer
		return nil, fmt.Errorf("reading the heartbeats: %w", tooMany)
	}
	sortByName(all)
	return all, nil
}

// hash reads a hash as a whole. If it has more fields or bytes than a service may have, it returns ErrTooMany with
// them: another client wrote them, and what they would be parsed to could fill the memory.
func (s *Store) hash(ctx context.Context, key string, most, bytes int) (map[string]string, error) {
	fields, err := onServer(ctx, s, func(ctx context.Context, rdb redis.UniversalClient) (map[string]string, error) {
		return rdb.HGetAll(ctx, key).Result()
	})
	if err != nil {
		return nil, err // what came before a bound was met is no part of an answer
	}
	n, size := len(fields), 0
	for _, value := range fields {
		size += len(value)
	}
	if n > most || size > bytes {
		err = fmt.Errorf("%w: %d of %d bytes, and a service may have %d of %d bytes", ErrTooMany, n, size, most, bytes)
	}
	return fields, err
}

func sortByName(all []Replica) {
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
}

func parseReplica(name, text string) (Replica, error) {
	var t replicaText
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return Replica{}, fmt.Errorf("reading the heartbeat of replica %q: %w", name, err)
	}
	r := t.Replica
	r.Name, r.Offset, r.Seen = name, time.Duration(t.Offset)*time.Microsecond, rds.FromMillis(t.Seen)
	r.Skips, r.Ran = map[string]Skip{}, map[string]Entry{}
	return r, nil
}

func (r *Replica) add(t reportText) {
	for job, e := range t.Ran {
		r.Ran[job] = e.entry()
	}
	for job, k := range t.Skips {
		r.Skips[job] = Skip{rds.FromMillis(k.Tick), k.Reason, rds.FromMillis(k.At)}
	}
}
