// Package sim plays a service for a minute or two, in a testing/synctest bubble and so in milliseconds: real sidecars
// on the real scripts in miniredis, over connections in memory, with a nemesis between them. All that goes wrong is
// drawn from a seed (Plan). Afterwards the promises of the design are checked over the whole trace: what started and
// ended, what Redis answered, which locks its scripts touched, what the replicas logged and counted (check).
//
// Some of the seeds have faults of all kinds, a few each. The others belong to a class (classes): each class is made
// for one fault that needs its surroundings, for example a Redis that stalls, or jobs that take the last slot. A class
// has dice of its own, so that a new one does not change the seeds of the others. -class plays the seeds of one.
//
// The checks know the ticks of a job by the plan (ticking), and not by the product's own schedules.
//
// The app that ends a run by a report (http.async) is a worker: a goroutine of the world, which lives on when its
// replica does not. It works only while it may, by the heartbeats that were answered with leave. checkWorkers demands
// that no two workers of a job ever work at the same time, or no more than the job allows. Their class has no Redis
// that loses data, because the leases are lost with them, and no app that stands still and then works on: the fencing
// token is for both.
//
// The app that asks for the ticks of a job (claim) is the same worker, begun by a scheduler of the world beside each
// replica, whose clock is its own. checkAsked judges what it is answered. In its class Redis may lose its data, and
// apps may stand still: what such an app works on after its leave is not held against anybody, but its reports must
// not be taken.
//
// The app that asks for a lease (@lease) is that worker, too, and asks again whenever it has none. checkLeases demands
// that an app begins only when the one before it does not rely on the lease any more, by the heartbeats that each of
// them had answered; that the lease goes to an app that waits, in time, when its holder has died or nobody has it; and
// that nothing of a lease counts as missed. Redis that loses all data, or a failover that loses a claim, excuses two
// holders, as it excuses two runs.
//
// It does not show a Redis that is not miniredis (TTLs do not grow when its clock is set back), and executors that call
// anything: what is said between a worker and its replica goes to package callback directly. A stalled replica's timers
// go on and find a clock that stands, as after a suspend; under SIGSTOP they stand too. A failover goes back to a copy
// that was made in one piece; a master that lives on beside the new one is not played. Plain seeds with `clock: local`
// and a fault are not asked whether a tick was lost, nor is a tick of a job whose schedule changes, until the last
// replica has seen that.
//
// A seed is played the same way again but for goroutines that wake at the same instant, and for the chance that the
// sidecar puts into the wait before a retry. Play runs one seed; the processes of TestSeeds have one processor each,
// which is both faster and closer to having an order.
package sim
