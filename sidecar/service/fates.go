package service

// Fates are the names of all fates that a tick can have, and below are all places that decide one. settle.lua counts in
// `fate:NAME` what it decides, and book.lua all others. Timers and runs by hand have none (Entry.Ending).
//
//	outcome of the last run  settle.lua (endTick), as sidecar/outcome.go names it; drop.lua (sidecar/due.go)
//	overlapped               settle.lua, after the run in its way; acquire.lua, if queue or limit is full or 100 wait
//	replaced, without a run  acquire.lua, for a tick that waited until a newer one took its place
//	missed                   acquire.lua, register.lua, pause.lua, for what they pass over; drop.lua (sidecar/due.go)
//	paused                   acquire.lua and pause.lua, when a pause has ended
var Fates = [...]string{"succeeded", "failed", "timed_out", "lost_lock", "interrupted", "declined", "observed",
	"not_started", "replaced", "shutdown", "cancelled", "overlapped", "missed", "paused"}
