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

// seriesVersion changes when the meaning of a schedule changes: of H, of jitter, of daylight saving. Jobs then count
// as changed, and ticks that only the new meaning has are not taken for missed ones.
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

// content tells a job from what a reload makes of it.
func (j *Job) content() string {
	whole := *j
	whole.Schedule = nil // the fingerprint stands for it
	return digest(whole, 16)
}

// hash is that of the table as written: variables that differ from replica to replica, as the name of a pod, make no other
// table of it. So it is taken of what the table says where no variable is set, and of the values that have one as they stand.
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

// hash tells one table from another. It is shown in metrics and logs, so it must not help to guess a secret:
// values that may hold one contribute sixteen bits, far too few to confirm a guess. The jobs and when they run, which are
// no secret, fill the other thirty-two. The addresses a replica listens on do not count: replicas on one machine differ in
// them and fire the same.
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

// whole is all that a table says, its secrets too.
func (t *Table) whole() Table {
	whole := *t
	whole.Warnings, whole.Hash = nil, ""
	whole.Jobs = slices.Clone(t.Jobs)
	for i := range whole.Jobs {
		whole.Jobs[i].Schedule = nil // the fingerprint stands for it
	}
	return whole
}

// Equal says whether two tables have the same hash, the same values and the same order of jobs: then there is nothing to
// reload. Unlike Hash, which contains only 16 bits of the secrets, Equal compares every value.
func (t *Table) Equal(other *Table) bool {
	return t.Hash == other.Hash && digest(t.whole(), 64) == digest(other.whole(), 64)
}

// digest is the beginning of a hash, in hex digits. JSON writes a mapping in the order of its keys.
func digest(v any, digits int) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("config: a table that cannot be written as JSON: %v", err))
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:digits]
}
