package lock

import "time"

// Hashes by which faults are aimed at scripts.
var (
	AcquireSHA  = acquireScript.sha
	ExtendSHA   = extendScript.sha
	SettleSHA   = settleScript.sha
	ReleaseSHA  = releaseScript.sha
	RegisterSHA = registerScript.sha
	BookSHA     = bookScript.sha
	DropSHA     = dropScript.sha
	TimerSHA    = timerScript.sha
	DynamicSHA  = dynamicScript.sha
)

// TrustLeft is what remains of the trust window.
func TrustLeft(l *Lease) time.Duration { return l.remaining() }

// BatchSize is the longest pipeline of a burst.
const BatchSize = maxBatch
