package service

// Hashes by which faults are aimed at scripts.
var (
	AskSHA    = askScript.SHA
	PauseSHA  = pauseScript.SHA
	CancelSHA = cancelScript.SHA
	TimerSHA  = timerScript.SHA
)
