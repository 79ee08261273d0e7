package schedule

import (
	"encoding/binary"
	"hash/fnv"
	"math/bits"
	"time"
)

// Jitter returns the delay of a tick: in [0, max), in whole milliseconds. It is the same on every replica, and spreads
// evenly over jobs and over the ticks of one job.
func Jitter(job string, tick time.Time, max time.Duration) time.Duration {
	if max <= 0 {
		return 0
	}
	steps := (max-1)/time.Millisecond + 1 // rounded up, without an overflow
	return time.Duration(pick('J', uint64(tick.UnixMilli()), job, uint64(steps))) * time.Millisecond
}

// pick returns a number in [0, n) that depends only on the other arguments. All replicas of all versions must agree on
// it, and H may never move a job, so the algorithm can never change. It is FNV-1a, mixed by the last steps of
// splitmix64 because FNV spreads the last byte badly, and scaled to n.
func pick(purpose byte, number uint64, text string, n uint64) uint64 {
	fnv1a := fnv.New64a()
	_, _ = fnv1a.Write(append(binary.LittleEndian.AppendUint64([]byte{purpose}, number), text...))
	h := fnv1a.Sum64()
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	h ^= h >> 31
	scaled, _ := bits.Mul64(h, n)
	return scaled
}
