// Package sidecar is the life of a tick on one replica. gocron wakes a job on the cluster clock, fire takes the wake through
// gate, lock and execution to one counted outcome, and the watcher deals with what other replicas left behind.
//
// For every wake of a replica there is exactly one fire or one counted skip, and over all replicas at most one fire per
// tick (a job with the guarantee every-replica aside). What is not promised: a run whose lock is lost is cancelled before
// its lease ends, but an HTTP handler may go on after its caller has gone; the fencing token is for that.
//
// # The life of a wake
//
//	timer (cron.go)         due member (due.go)        missed tick (watch.go)
//	     │ job.take                │ takeOne                    │ job.owed
//	     └─────────────────────────┼────────────────────────────┘
//	                               ▼ fire.go
//	              ┌─▶ enter: gate, app ready, slot ────▶ skipped
//	  job changed │                ▼
//	              └── acquire: the claim in Redis ─────▶ skipped
//	                               ▼
//	                  attempts (attempt.go) ──┐ never started
//	                               ▼          ▼
//	                            settle     handover ───▶ skipped: start_failed
//	                               ▼
//	                  finished (outcome.go), release
//
// # The lifetimes inside Run
//
// Each ends before the one above it.
//
//	clock      until Run returns: fires sleep on it
//	attending  until the last fire has ended: heartbeats, and nudges from other replicas
//	working    until the runs have ended, at most for the shutdown grace: what runs jobs
//	accepting  until Drain, or the end of Run's context: timers, looks, readiness
//
// # State
//
//	what                                          where             who writes it
//	what the table says of a job                  job.spec          Reload and SetDynamic, by put
//	what is known of its ticks                    job.ticks         timers (take), wakes (close, heard), registrar
//	which jobs there are, the table in force      Sidecar.roster    Reload and SetDynamic
//	which jobs share a timer                      cron              Reload and SetDynamic; anew when the clock was set back
//	a wake on its way                             wake              its own fire
//	slots, whether the app is ready               admission         fires; probeApp
//	what is due and is left alone, or worked on   deferred          looks, fires, nudges
//	what Redis answered at the last look          watcher           the goroutine that looks
//	who else is there                             rendezvous        heartbeat, handover
//	what is counted                               metrics           outcome.go
package sidecar
