package service

// Fates are the names of all fates that a tick can have. The scripts count them in the job's ledger, each in the field
// `fate:` and the name.
var Fates = [...]string{"succeeded", "failed", "timed_out", "lost_lock", "interrupted", "declined", "observed", "not_started", "replaced",
	"shutdown", "cancelled", "overlapped", "missed", "paused"}
