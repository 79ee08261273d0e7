package service

// Fates are the names of all fates that a tick can have. A script decides each, and counts it in the ledger's `fate:NAME`:
//
//	the outcome of the last run         settle.lua, endTick; drop.lua, if the run was to be repeated
//	overlapped                          settle.lua, at the end of the run in the way; acquire.lua, behind a queue that is full
//	replaced, cancelled, without a run  acquire.lua, by the newer tick; settle.lua
//	missed, paused                      acquire.lua, register.lua and pause.lua, for what they pass over; drop.lua
var Fates = [...]string{"succeeded", "failed", "timed_out", "lost_lock", "interrupted", "declined", "observed", "not_started", "replaced",
	"shutdown", "cancelled", "overlapped", "missed", "paused"}
