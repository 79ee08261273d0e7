package service

// Fates are the names of all fates that a tick can have. A script decides each. The ledger counts it in `fate:NAME`:
// settle.lua what it decides itself, book.lua the others.
//
//	the outcome of the last run  settle.lua, endTick, as sidecar/outcome.go names it; drop.lua, if the run was to be repeated
//	overlapped                   settle.lua, at the end of the run in the way; acquire.lua, if queue or limit is full or a hundred wait
//	replaced, without a run      acquire.lua, for a tick that waited until a newer one took its place
//	missed                       acquire.lua, register.lua and pause.lua, for the ticks that they pass over; drop.lua (see sidecar/due.go)
//	paused                       acquire.lua and pause.lua, when a pause has ended
var Fates = [...]string{"succeeded", "failed", "timed_out", "lost_lock", "interrupted", "declined", "observed", "not_started", "replaced",
	"shutdown", "cancelled", "overlapped", "missed", "paused"}
