// Package lock lets at most one of many processes fire a tick of a job: one instant of its schedule, named by its nominal
// time. However clocks differ, however long the job runs, whichever process is killed, stopped or cut off, and even if
// Redis loses all its data, a tick is claimed once, and whoever holds a [Lease] that is [Lease.Trusted] is the only one
// who does (under the policy Allow: for that tick).
//
// # What is not promised
//
//   - A process that is paused (SIGSTOP, a garbage collection, a frozen virtual machine) between looking at its lease and
//     acting on it acts too late. Only what the job writes to can tell: let it refuse a [Lease.Token] smaller than one it
//     has seen. The token grows with every run, also over the loss of all data (unless Redis' clock is set back as well).
//   - A failover of an asynchronously replicated Redis can forget a claim that was just made, and with it that the tick
//     was fired. Total loss is noticed, partial loss is not.
//   - A client that resends by itself can deliver a request twice. [New] refuses one that is known to; [NewClient] makes
//     one that does not. A proxy in between is beyond this package's reach.
//   - A claimant that dies between the claim and the start of the job loses the tick; the run is recorded as interrupted
//     by whoever takes it over. The other choice would be to fire some ticks twice.
//   - A ledger that is new has missed nothing: ticks up to a second after it was made are refused.
//   - That a tick handed on is run again, and a timer at all, is up to who reads what is due. [Locker] does
//     not.
//
// # Why a claim beside the lock
//
// A lock says who, and only for as long as it is held. A job of five milliseconds has let go of it before a process whose
// clock is fifty behind comes to ask, finds the lock free, and fires the same tick again; to hold it longer costs later
// ticks. A claim says which tick, for good: acquiring compares the tick with the newest claimed one and takes lock and
// tick in one script. The lock may then outlive the run by a safety delay without harm, since a later tick replaces a
// lock that only lingers.
//
// # A missing reply is a third answer
//
// Neither "held" nor "free" follows from a timeout: the request may have been lost, its reply may, or it may still be on
// its way. So the claim carries a UUID, and is asked again with the same one until an answer comes; Redis answers the
// holder as it did before. A copy that is late must not claim for somebody who has given up, nor a tick that a newer one
// has superseded: a Redis that stood still comes to many copies at once. Every copy therefore says until when (on Redis'
// clock) it may have an effect; who gives up abandons its UUID at once, now and then up to that moment, and once after it:
// what a copy has claimed becomes due for the others, and so it does if it was already taken over.
//
// # Trust
//
// A lease is trusted until ttl minus [Margin] after the answered request was sent. From the sending, because Redis may
// have begun the lease at any moment after it; a slow reply does not stretch trust, and one that comes after its own
// lease is extended before anything runs. On CLOCK_BOOTTIME, because Go's monotonic clock stands still while a machine
// sleeps. [Lease.Keep] extends in time, and ends the run's context, with [ErrLost] as its cause, before the lease ends.
//
// # Takeover
//
// A run leaves its entry in Redis when its process dies. A [Watcher] takes it over when it has seen the entry unchanged for
// a whole ttl on its own clock. Redis' clock has no say in that: a step of it, or a failover to a server that is ahead,
// would end all leases at once while every holder trusts its own. Until it is settled or taken over the run is in the way
// of the next, whether its lock key still exists or not; a tick that was refused for it is set free if it turns out that
// it never ran.
//
// # Loss of all data
//
// Lock and ledger live and die together, so neither can vouch for the other. A ledger without a birth is not claimed
// from: it is registered first, and is born with every earlier tick settled. What ran meanwhile learns at its next
// extension that its lease is lost. A replica that knew the ledger before says what is missing since
// ([Store.RegisterAgain]): those ticks are counted as missed, and under at-least-once they are due once more.
//
// # A tick that comes due while a run lives
//
// Whether it overlaps is not known yet: the run may have died, or may turn out never to have begun. So the first refusal
// writes the tick down behind the run, with the time at which it came due, and the end of the run decides. A run that ended
// by itself was in the way of every tick that came due after its claim. One that was taken over was in the way of those that
// came due while it provably lived, which is until one ttl before its lease ended. All others are set free: they become
// due, as does the one that was waiting under Queue or Replace.
//
// # What Redis keeps of a job
//
// The ledger is a hash. Each of its fields has one meaning:
//
//	born since schedule back   when the ledger was made; when its series of ticks began, which the fingerprint stands for;
//	                           when the job came back after no replica had it
//	tick                       newest tick that was claimed, or settled, by the table
//	r:<uuid>                   record of a run; it exists exactly while the run lives
//	runs                       the runs that live, oldest first (not of timers)
//	behind                     ticks that came due while runs lived: `-<tick>@<due> ` refused, `+<tick>@<due> ` waiting
//	stop                       a token: runs whose token is not greater are to end
//	token last by              newest fencing token; run whose lock may linger; replica that claimed last
//	overlap handed             newest tick that was settled as an overlap; that went back to the due set
//	gaps missed                times in which ticks were missed that nobody has counted; how many were counted
//	paused pausedAll pausedTo  note of the job's own pause; of that of all jobs; end of the last one
//	bytes                      of the timers' ledger alone: what the sources of all entries have together
//	manual done late           newest tick asked for by hand; last history entry; whether a loss of data was made good
//
// Beside it stand, for a day, memos by uuid: that a run was taken over, so that its replica can still give back what it never
// started, and that a request was carried out, so that a copy of it has no effect.
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
//	                                 ├─── GiveUp ────────► it never began, and is not to
//	                                 └─── Requeue, Reap ─► it was cut short, and is not run again
//
// Each arrow that leaves a live run is one script, settle: it also sets free what waited behind the run.
package lock
