package model

import (
	"hash/maphash"
	"unsafe"
)

var seed = maphash.MakeSeed()

// bytes are those of a state, which has no padding and no pointers.
func bytes(s *state) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(s)), unsafe.Sizeof(*s)) }

func hash(s *state) uint64 { return maphash.Bytes(seed, bytes(s)) }

// frontier is a queue of states. Most of a state's bytes are zero: runs of them are kept as a zero and their number.
type frontier struct {
	packed []byte
	read   int
}

func (q *frontier) reset() { q.packed, q.read = q.packed[:0], 0 }

func (q *frontier) put(s *state) {
	b := bytes(s)
	for i := 0; i < len(b); {
		if b[i] != 0 {
			q.packed = append(q.packed, b[i])
			i++
			continue
		}
		n := 0
		for i+n < len(b) && b[i+n] == 0 && n < 255 {
			n++
		}
		q.packed = append(q.packed, 0, byte(n))
		i += n
	}
}

func (q *frontier) get(s *state) {
	*s = state{}
	b := bytes(s)
	for i := 0; i < len(b); q.read++ {
		if c := q.packed[q.read]; c != 0 {
			b[i] = c
			i++
			continue
		}
		q.read++
		i += int(q.packed[q.read])
	}
}

// visited is a set of fingerprints, with open addressing.
type visited struct {
	table []uint64
	n     int
}

func newVisited() *visited { return &visited{table: make([]uint64, 1<<16)} }

// add is false for one that is there already.
func (v *visited) add(fingerprint uint64) bool {
	fingerprint = max(fingerprint, 1) // 0 is a free place
	if v.n*2 > len(v.table) {
		old := v.table
		v.table = make([]uint64, 2*len(old))
		for _, h := range old {
			if h != 0 {
				v.insert(h)
			}
		}
	}
	if !v.insert(fingerprint) {
		return false
	}
	v.n++
	return true
}

func (v *visited) insert(h uint64) bool {
	mask := uint64(len(v.table) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch v.table[i] {
		case 0:
			v.table[i] = h
			return true
		case h:
			return false
		}
	}
}
