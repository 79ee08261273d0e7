package lock

// Hashes by which faults are aimed at the operators' scripts.
var (
	AskSHA   = askScript.sha
	PauseSHA = pauseScript.sha
)
