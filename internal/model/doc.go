// Package model is an explicit-state model of the protocol: a small world in which everything that can happen next is
// tried, in every order, and every state that comes of it is checked. It finds what tests do not think of, and says
// nothing about what it does not model.
//
// # What is modelled
//
// One job, up to three replicas and four ticks, and Redis. A replica has a fiber for each tick, and one that pops the due
// set. The scripts are acquire, extend and settle as in package lock, each in one step. Between them requests and
// replies are lost, overtake one another, or arrive when nobody waits for them; replicas crash, restart, stall beyond
// their window, and cannot start the job; Redis fails over, loses its data, or its clock steps; somebody who knows
// nothing of the protocol takes the lock. A [Scenario] says how often each of these may happen.
//
// Time is no number. Redis' clock counts the ticks that have come, and, where a scenario has a tolerance, knows that the
// next one is near. Replicas with a wrong clock wake at any time. A lease ends at any moment after the trust window of
// the request that set it has closed, which is all that the margin between the two promises. The windows of a live
// replica close by a stall, those of a dead one at once.
//
// Checked in every state: no tick is fired twice and no attempt started twice, no two trusted runs at once (except under
// Allow), nothing is counted as skipped or missed and fired, nothing counted as missed twice, no overlap with a run that
// ended before the tick came, no lock of somebody else taken. Checked where nothing more happens unless something fails:
// no tick is lost, and no at-least-once run remains unfinished.
//
// # What is not modelled
//
//   - Several jobs, real durations, livelock; pause, trigger, backfill; a reload, a register while it runs. A lost ledger
//     is registered again in the step that loses it.
//   - The token, the history, nudges, and who claimed last. They decide nothing.
//   - GAP and UNKNOWN: the list of older ticks is always right, and the ledger is always there. The claimant would ask again.
//   - The order under `missed: all`: the script makes the claimed tick due behind the older ones, here it runs at once.
//   - How long a lock lingers: one without a run may go at any moment, so that it costs no tick here whether the next
//     claim knows it (`last` in the ledger) or waits for its end.
//   - The safety delay after a run that was cut short, backoff, standing back for a time: what is due can be had at once.
//   - The length of the list of interrupted runs: three here, eight there.
//
// # Mends
//
// A [Mend] is one thought of the protocol that can be left out. The search then finds a counterexample, for all but one:
// LateFinish breaks no promise when it is missing, it saves runs that at-least-once would repeat for nothing.
//
// # How to read a counterexample
//
// It is a shortest way to the violation, one step a line. A/T1 is what replica A does about the first tick, B/due is B
// with what it popped from the due set; a line without such a name happens to Redis or to a whole replica. "Redis runs its
// request" and "reads the answer" are two steps, between which anything may happen. The last line names the broken
// promise and says what Redis knows by then. Where a tick is lost, look for the last line that had it in hand: the claim,
// the refusal or the handover after which nobody was to come back for it.
//
//	go run ./internal/model/modelcheck -scale pairs -only forbid -without Pend
package model
