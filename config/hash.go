package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"
)

// seriesVersion changes when the meaning of schedules changes: of H, of jitter, of daylight saving. Then all jobs count
// as changed, and ticks that only the new meaning has do not count as missed.
const seriesVersion = 1

// fingerprint tells one series of ticks from another.
func (j *Job) fingerprint() string {
	if j.Schedule == nil {
		return ""
	}
	return digest([]any{
		seriesVersion, j.Schedule.String(), j.TimeZone, j.Start, j.End, j.Jitter, j.Suspend,
	}, 16)
}

// content tells whether a reload has changed a job.
func (j *Job) content() string {
	whole := *j
	whole.Schedule = nil // the fingerprint stands for it
	return digest(whole, 16)
}

// hash returns the hash of the table as written: a variable that differs from replica to replica, such as the name of a
// pod, does not change it. So it covers the table as it is read without any variable set, and the unreplaced text of
// the values that have variables.
func (d *decoder) hash(root *yaml.Node) string {
	if len(d.References) == 0 {
		return d.table.hash(nil)
	}
	bare := newTableDecoder(nil, d.now)
	bare.Rules.Unset = bare.leftUnset
	bare.Again(d.Decoder)
	bare.whole(root)
	return bare.table.hash(slices.DeleteFunc(bare.References, func(r [2]string) bool { return r[0] == "listen" || r[0] == "admin" }))
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
		Resources                   Resources
	}
	open := []any{t.Service, t.Clock, t.ShutdownGrace, t.MaxRunning}
	for _, j := range t.Jobs {
		open = append(open, job{j.Name, j.Fingerprint, j.TimeZone, j.Timeout, j.StartingDeadline,
			j.Guarantee, j.ConcurrencyPolicy, j.Missed, j.StartRetries, j.Retry, j.Lock, j.Reserved, j.Resources})
	}
	shared := t.whole()
	shared.Listen, shared.Admin = "", ""
	if len(references) == 0 {
		return digest(open, 8) + digest(shared, 4)
	}
	return digest(open, 8) + digest([]any{shared, references}, 4)
}

// whole returns everything that a table says, with its secrets.
func (t *Table) whole() Table {
	whole := *t
	whole.Warnings, whole.Hash = nil, ""
	whole.Jobs = slices.Clone(t.Jobs)
	for i := range whole.Jobs {
		whole.Jobs[i].Schedule = nil // the fingerprint stands for it
	}
	return whole
}

// Equal says whether two tables have the same hash, the same values and the same order of jobs, so that a reload has
// nothing to do. Unlike Hash, which contains only 16 bits of the secrets, Equal compares every value.
func (t *Table) Equal(other *Table) bool {
	return t.Hash == other.Hash && digest(t.whole(), 64) == digest(other.whole(), 64)
}

// digest returns the first hex digits of a hash of v. It is stable because JSON sorts the keys of a mapping.
func digest(v any, digits int) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("config: a table that cannot be written as JSON: %v", err))
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:digits]
}
