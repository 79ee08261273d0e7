// Package lock lets at most one of many processes fire a tick of a job. A tick is one instant of the job's schedule,
// named by its nominal time. Redis grants each tick once, even if clocks differ, processes die or are cut off, or Redis
// loses all its data. A process that holds a [Lease] that is [Lease.Trusted] is the only one that does. Under the
// policy Allow, it is the only one for that tick.
//
// # What is not promised
//
//   - A process can be paused (SIGSTOP, garbage collection, a frozen virtual machine) after it has looked at its lease.
//     It then acts too late. Only the system that the job writes to can notice: let it refuse a [Lease.Token] smaller
//     than one it has seen. The token grows with every run, even if Redis loses all data (unless its clock is set back
//     too).
//   - A failover of an asynchronously replicated Redis can forget a claim that was just made, and with it that the tick
//     was fired. The package notices the loss of all data, but not of a part.
//   - A client that resends by itself can deliver a request twice. [New] refuses a client that is known to resend, and
//     [NewClient] makes one that does not. The package cannot control a proxy in between.
//   - A process that dies between its claim and the start of the job loses the tick. The replica that takes the run
//     over records it as interrupted. The alternative would be to fire some ticks twice.
//   - A new ledger has missed nothing: it refuses ticks up to a second after it was made.
//   - A tick that was handed on, and any timer, only runs if some process reads the due set. Package gocronlock does
//     not read it.
//
// # Why a claim beside the lock
//
// A lock says who runs, and only while it is held. A job of five milliseconds has released its lock before a process
// whose clock is fifty milliseconds behind asks. That process finds the lock free and fires the same tick again.
// Holding every lock longer would cost later ticks. A claim says which tick was taken, for good: one script compares
// the tick with the newest claimed one, and takes both lock and tick. The lock may then outlive its run by a safety
// delay without harm, because a later tick replaces a lock that only lingers.
//
// # A missing reply is a third answer
//
// After a timeout the lock may be held or free: the request may be lost, its reply may be lost, or it is still on its
// way. So the claim carries a UUID, and the caller asks again with the same UUID until an answer comes. Redis answers
// the holder as it did before.
//
// Redis may stand still and run many copies of a request at once when it goes on. A late copy must not claim a tick for
// a caller that has given up, nor a tick that a newer one has superseded. So every copy says until when, on Redis'
// clock, it may have an effect. A caller that gives up abandons its UUID at once, repeatedly until that moment, and
// once after it. If a copy has claimed the tick, the tick becomes due for the other replicas, even if the run was taken
// over.
//
// # Trust
//
// A lease is trusted until ttl minus [Margin] after the answered request was sent. The time of sending counts, because
// Redis may have begun the lease at any moment after it. So a slow reply does not prolong trust. If a reply comes after
// its own lease, the caller extends the lease before anything runs. The clock is CLOCK_BOOTTIME, because Go's monotonic
// clock stands still while a machine sleeps. [Lease.Keep] extends the lease in time. If it cannot, it ends the run's
// context, with [ErrLost] as the cause, before the lease ends.
//
// # Takeover
//
// If a process dies, the entries of its runs stay in Redis. A [Watcher] takes a run over when it has seen the run's
// lease unchanged for a whole ttl on its own clock, or when its caller knows that the run's process is dead
// ([Watcher.Dead], [NewRun]). Watchers tell each other what they have seen, so that one that is new need not begin at
// zero ([Watcher.Learn], [Watcher.Tell]). A watcher ignores Redis' clock: a step of that clock, or a failover to a
// server that is ahead, would end all leases at once while their holders still trust them. A run is in the way of the
// next one until it is settled or taken over, even if its lock key has expired.
//
// # Loss of all data
//
// Redis keeps and loses lock and ledger together, so neither can prove the other. A claim without a ledger is refused.
// The replica registers the job first, and the new ledger counts every earlier tick as settled. A run that lived
// meanwhile hears LOST at its next extension (extend.lua, at once after the registration), and ends as lost_lock, which
// only its replica knows. Under at-least-once settle.lua makes its tick due again. A replica that knew the old ledger
// tells the ticks since then ([Store.RegisterAgain]): they count as missed, under at-least-once they are due once more.
//
// # A tick that comes due while a run lives
//
// It is not known yet whether such a tick overlaps: the run may have died, or never have started. So the first refusal
// notes the tick and the time at which it came due behind the run, and the end of the run decides. A tick that came due
// while the run provably lived is an overlap; all others are set free, which makes them due.
//
// # What Redis keeps of a job
//
// The ledger is a hash; docs/protocol.md lists its fields. Redis also keeps memos by UUID, each for a day. One says
// which watcher took a run over: it may ask again, and the run's replica can still give back a tick that it never
// started. Another says which request was carried out: a copy of it then has no effect.
//
// # The life of a run
//
//	                 Acquire: WON
//	the tick is due ─────────────► the run lives ─┐ Keep extends
//	      ▲                          │    ▲───────┘ its lease
//	      │                          │
//	      ├─── Handover, NextRound ──┤    it could not start here
//	      ├─── Acquire, giving up ───┤    its answer did not come in time
//	      ├─── Requeue ──────────────┤    it was cut short, and its claim has Again
//	      └─── Reap ─────────────────┤    its replica is gone, and its claim has Again
//	                                 │
//	                                 ├─── Finish ────────► it ended
//	                                 ├─── GiveUp ────────► it never began, and will not
//	                                 └─── Requeue, Reap ─► it was cut short, and is not run again
//
// Each arrow that leaves a live run is one script, settle: it also sets free what waited behind the run.
package lock
