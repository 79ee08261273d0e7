package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"github.com/solotick/solotick/config/schedule"
)

// seriesVersion changes when the meaning of schedules changes: of H, of jitter, of daylight saving. Then all jobs count
// as changed, and ticks that only the new meaning has do not count as missed.
const seriesVersion = 1

// fingerprint tells one series of ticks from another.
func (j *Job) fingerprint() string {
	if j.Schedule == nil {
		return ""
	}
	all := []any{seriesVersion, j.Schedule.String(), j.TimeZone, j.Start, j.End, j.Jitter, j.Suspend}
	// Most jobs have no rules, and keep the fingerprint that they had before there were any.
	if d := j.Days; len(d.Exclude)+len(d.Include) > 0 || d.Every != (schedule.Every{}) {
		excluded := min(len(d.Exclude), len(d.Sums))
		all = append(all, d.Sums[:excluded], d.Sums[excluded:], d.OnExcluded, d.Every)
	}
	if j.Schedule.Anchored() {
		all = append(all, "from start")
	}
	return digest(all, 16)
}

// content reports whether a reload has changed a job.
func (j *Job) content() string {
	whole := *j
	whole.Schedule = nil // the fingerprint stands for it
	return digest(whole, 16)
}

// hash tells one table from another. It is shown in metrics and logs, so it must not help to guess a secret: values
// that may hold one contribute sixteen bits, far too few to confirm a guess. The jobs and when they run, which are no
// secret, fill the other thirty-two. The addresses a replica listens on do not count: replicas on one machine differ in
// them and fire the same ticks.
func (t *Table) hash(references [][2]string) string {
	type job struct {
		Name, Fingerprint, TimeZone string
		Timeout, StartingDeadline   time.Duration
		Guarantee                   Guarantee
		ConcurrencyPolicy           ConcurrencyPolicy
		Missed                      Missed
		StartRetries                int
		Retry                       Retry
		Lock                        Lock
		Reserved                    bool
		Observe                     bool `json:",omitzero"` // without it, the hash is that of versions that lack it
		Concurrency                 int  `json:",omitzero"` // the same
		Priority                    int  `json:",omitzero"` // the same
	}
	open := newJSONHash()
	open.text("[").json(t.Service).text(",").json(t.Clock).text(",").json(t.ShutdownGrace).text(",").json(t.MaxRunning)
	for i := range t.Jobs {
		j := &t.Jobs[i]
		open.text(",").json(job{j.Name, j.Fingerprint, j.TimeZone, j.Timeout, j.StartingDeadline, j.Guarantee,
			j.ConcurrencyPolicy, j.Missed, j.StartRetries, j.Retry, j.Lock, j.Reserved, j.Observe, j.Concurrency,
			j.Priority})
	}
	open.text("]")
	shared, secret := *t, newJSONHash()
	shared.Listen, shared.Admin = "", ""
	if len(references) == 0 {
		secret.table(&shared)
	} else {
		secret.text("[").table(&shared).text(",").json(references).text("]")
	}
	return open.digits(8) + secret.digits(4)
}

// Equal reports whether two tables have the same hash, the same values and the same order of jobs, so that a reload has
// nothing to do. Unlike Hash, which contains only 16 bits of the secrets, Equal compares every value.
func (t *Table) Equal(other *Table) bool {
	return t.Hash == other.Hash && newJSONHash().table(t).digits(64) == newJSONHash().table(other).digits(64)
}

// jsonHash is a hash of JSON. It is stable because JSON sorts the keys of a mapping. The JSON comes in parts: that of a
// table with thousands of jobs has megabytes.
type jsonHash struct{ hash.Hash }

func newJSONHash() jsonHash { return jsonHash{sha256.New()} }

func (h jsonHash) text(s string) jsonHash {
	_, _ = io.WriteString(h, s) // no hash refuses it
	return h
}

func (h jsonHash) json(v any) jsonHash { return h.text(marshalled(v)) }

func marshalled(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("config: a table that cannot be written as JSON: %v", err))
	}
	return string(data)
}

// table adds everything that a table says, with its secrets.
func (h jsonHash) table(t *Table) jsonHash {
	whole := *t
	whole.Warnings, whole.Hash, whole.Jobs = nil, "", nil
	const none = `"Jobs":null` // it stands in no text, where JSON escapes the quotes
	before, after, ok := strings.Cut(marshalled(whole), none)
	if !ok {
		panic("config: a table whose JSON has no jobs")
	}
	if t.Jobs == nil {
		return h.text(before + none + after)
	}
	h.text(before + `"Jobs":[`)
	for i, job := range t.Jobs {
		if i > 0 {
			h.text(",")
		}
		job.Schedule = nil // the fingerprint stands for it
		h.json(job)
	}
	return h.text("]" + after)
}

// digits returns the first n hex digits, an even number.
func (h jsonHash) digits(n int) string { return hex.EncodeToString(h.Sum(nil)[:n/2]) }

// digest returns the first hex digits of a hash of v.
func digest(v any, digits int) string { return newJSONHash().json(v).digits(digits) }
