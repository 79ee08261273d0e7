// Package sidecar takes ticks through their lives on one replica.
//
// A timer of gocron wakes a job on the cluster clock. fire takes the wake through the gate, the claim and the run to
// one counted outcome. The looker reads what other replicas have left behind in Redis, and deals with it.
//
// # Promises
//
//   - Each wake of a replica ends in exactly one fire or one counted skip; service.Fates lists the fates of ticks.
//   - Over all replicas, each tick fires at most once, except for jobs with the guarantee every-replica.
//   - A run whose lock is lost (see "Loss of all data" in package lock) is cancelled before its lease ends. An HTTP
//     handler may go on after its caller has gone: the fencing token tells other systems to refuse it.
//
// # The life of a wake
//
//	timer (cron.go)        due member (due.go)      missed tick (steps.go)
//	     │ job.take              │ takeOne               │ job.missedTick
//	     ├─▶ yield: others ask first ──────────────────▶ skipped          (yield.go)
//	     └───────────────────────┼───────────────────────┘
//	                             ▼ fire.go
//	              ┌─▶ passGate: table, app, slot ──────▶ skipped
//	  job changed │              ▼
//	 or too early └── acquire: the claim in Redis ─────▶ skipped          (acquire.go)
//	                             ▼
//	                         attempts ────────┐ never started             (attempt.go)
//	                             │            ▼
//	                             │        handover ────▶ skipped          (settle.go)
//	                             ▼            │ of no use
//	                          settle ◀────────┘                           (settle.go)
//	                             ▼
//	                    finished, release                                 (record.go, settle.go)
//
// # Layers
//
//	connect ─▶ look ─▶ fire ─▶ peers ─▶ metrics ─▶ job ─▶ life
//
// A file uses what stands in its own layer or below. A test of internal/imports says which file is where, and holds it.
//
// # Who starts wakes
//
// All jobs share one timer of gocron, which goes off at the next instant at which any of them comes due, and wakes
// those that are due together. Each wake whose turn it is to ask fires in a goroutine of its own. The others share one
// goroutine, and wait together for what is heard of the claims of the other replicas.
//
// The looker reads the running set and the due set once a second, at rest less often, and after a nudge. It hands the
// answer to takeover, registrar, dueTicks and timers, in this order. Then steps looks for ticks that no
// timer could wake for. New connects the parts; none of them holds a Sidecar.
//
// # The lifetimes inside Run
//
// Each one ends before the one above it.
//
//	clock      until Run returns; fires sleep on it
//	attending  until the last fire has ended; heartbeats, and messages of other replicas
//	working    until the runs have ended, at most for the shutdown grace; the contexts of runs
//	accepting  until Drain is called or Run's context ends; timers, looks, readiness probes
//
// # State
//
//	state                                     holder           writers
//	what the table says of a job              job.spec         put: Reload
//	what is known of a job's ticks            job.ticks        put, timers, wakes, registrar, steps
//	pauses of jobs on every replica           job.pauses       looker (readPauses)
//	the table in force, the jobs at work      atWork           Reload
//	when the timer wakes which jobs           cron             Reload; steps after the clock was set back
//	jobs that left, to be deregistered        registrar.gone   Reload, looker
//	a wake under way                          wake             its own fire
//	slots, and whether the app is ready       slots            fires, looks, Reload, probe
//	runs that their apps end by themselves    callback.Runs    attempts, reports of apps
//	due members busy here, or deferred        deferred         looks, fires, messages
//	jobs in line with something due           dueTicks.line    looker
//	timers busy here                          timers.firing    looks, fires
//	whether a look is wanted, and who waits   nudges           looks, fires, Reload, slots, messages
//	how Redis answered the last looks         redisStatus      looker
//	the clock at the last look                steps            looker
//	the peers                                 rendezvous       heartbeat, handover
//	the newest skips and runs to report       heartbeat        recorder, settler, Reload
//	counters and gauges                       metrics          recorder, settler, claimer, probe, redisStatus, Reload
package sidecar
