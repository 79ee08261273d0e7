package lock

import "time"

// Hashes by which faults are aimed at scripts.
var (
	AcquireSHA  = acquireScript.SHA
	ExtendSHA   = extendScript.SHA
	SettleSHA   = settleScript.SHA
	ReleaseSHA  = releaseScript.SHA
	RegisterSHA = registerScript.SHA
	BookSHA     = bookScript.SHA
	DropSHA     = dropScript.SHA
)

// TrustLeft is what remains of the trust window.
func TrustLeft(l *Lease) time.Duration { return l.remaining() }
