package service

// Hashes by which faults are aimed at scripts.
var (
	AskSHA     = askScript.SHA
	PauseSHA   = pauseScript.SHA
	TimerSHA   = timerScript.SHA
	DynamicSHA = dynamicScript.SHA
)
