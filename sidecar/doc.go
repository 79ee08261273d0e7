// Package sidecar is the life of a tick on one replica. gocron wakes a job on the cluster clock, fire takes the wake through
// gate, lock and execution to one counted outcome, and the looker deals with what other replicas left behind.
//
// For every wake of a replica there is exactly one fire or one counted skip, and over all replicas at most one fire per
// tick (a job with the guarantee every-replica aside). What is not promised: a run whose lock is lost is cancelled before
// its lease ends, but an HTTP handler may go on after its caller has gone; the fencing token is for that.
//
// # The life of a wake
//
//	timer (cron.go)         due member (due.go)        missed tick (steps.go)
//	     │ job.take                │ takeOne                    │ job.owed
//	     └─────────────────────────┼────────────────────────────┘
//	                               ▼ fire.go
//	              ┌─▶ enter: gate, app ready, slot ────▶ skipped
//	  job changed │                ▼
//	              └── acquire: the claim in Redis ─────▶ skipped           (acquire.go)
//	                               ▼
//	                  attempts ───────────────┐ never started              (attempt.go)
//	                               ▼          ▼
//	                            settle     handover ───▶ start_failed      (settle.go)
//	                               ▼
//	                  finished, release                                    (record.go, settle.go)
//
// # Who starts wakes
//
// A timer of gocron stands for a group: the jobs that come due at the same instants. It wakes them one after the other, and each
// wake is fired beside all others. The looker looks at Redis once a second, or sooner when something nudges it, and hands what
// it sees to the parts that deal with it: registrar, takeover, dynamicJobs, dueTicks, timers. Then steps looks for what no timer
// could wake for. New wires up the parts; none of them holds a Sidecar.
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
//	which jobs there are, the table in force      atWork            Reload and SetDynamic
//	which jobs share a timer                      cron              Reload and SetDynamic; anew when the clock was set back
//	a wake on its way                             wake              its own fire
//	slots, whether the app is ready               admission         fires; the probe
//	what is due and is left alone, or worked on   deferred          looks, fires, nudges
//	that a look is wanted                         nudges            anybody
//	what Redis answered at the last look          looker, standing  the goroutine that looks
//	where the clock was at the last look          steps             the goroutine that looks
//	who else is there                             rendezvous        heartbeat, handover
//	what is counted                               metrics           record.go
package sidecar
