package sim

import "time"

// dice is the seed's randomness for what happens at an unforeseeable moment: a throw depends on what it is for, and not
// on how many were thrown before it, so that goroutines that wake at the same instant cannot change each other's luck.
type dice uint64

// throw mixes the seed with the keys (splitmix64).
func (d dice) throw(keys ...uint64) uint64 {
	x := uint64(d)
	for _, k := range keys {
		x += 0x9e3779b97f4a7c15 + k
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return x
}

// chance is true with probability p.
func (d dice) chance(p float64, keys ...uint64) bool {
	return float64(d.throw(keys...)>>11)/(1<<53) < p
}

// between draws a duration from [from, to).
func (d dice) between(from, to time.Duration, keys ...uint64) time.Duration {
	if to <= from {
		return from
	}
	return from + time.Duration(d.throw(keys...)%uint64(to-from))
}

// text makes a key of a word (FNV-1a).
func text(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// A throw is for one of these.
const (
	forDelay uint64 = iota + 1
	forFault
	forHang
	forLate
	forHeld
	forSlow
	forStalled
	forWork
	forStart
	forLimit
	forReload
	forRelease
	forApp
	forDeaf
	forAsk
	forHold
)
