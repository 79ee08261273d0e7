package command

import (
	"sync"
	"time"
)

const (
	// A job may write logBurst bytes to the log at once, and logPerSecond from then on, in all its runs together. A
	// job that prints in a loop, or much in each run of every second, must not fill the disk or cost its neighbours
	// their lines.
	logBurst     = 4 << 20
	logPerSecond = 64 << 10

	// lineCost is the size of a log line without its text: time, job, run.
	lineCost = 200

	// muteTime is how long the log then leaves out every line: each gap costs a line of its own.
	muteTime = time.Second
)

// rate bounds the log lines of the runs of one job.
type rate struct {
	mu         sync.Mutex
	spent      int       // of logBurst, in bytes, at that time
	at         time.Time // zero = nothing was written yet
	mutedUntil time.Time // until then all is left out
	leftOut    int       // lines that were left out, and not reported yet
}

// admit reports whether a line of so many bytes goes to the log, and how many were left out before it.
func (r *rate) admit(size int, now time.Time) (ok bool, leftOut int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.mutedUntil) {
		r.leftOut++
		return false, 0
	}
	if !r.at.IsZero() {
		r.spent = max(0, r.spent-int(now.Sub(r.at).Seconds()*logPerSecond))
	}
	r.at = now
	if r.spent += size + lineCost; r.spent > logBurst {
		r.spent -= size + lineCost
		r.mutedUntil = now.Add(muteTime)
		r.leftOut++
		return false, 0
	}
	leftOut, r.leftOut = r.leftOut, 0
	return true, leftOut
}

// takeLeftOut returns how many lines were left out since the last call, or since a line was admitted.
func (r *rate) takeLeftOut() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.leftOut
	r.leftOut = 0
	return n
}
