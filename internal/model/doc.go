// Package model is an explicit-state model of the protocol: a small world in which everything that can happen next is
// tried, in every order, and every state that comes of it is checked. It finds what tests do not think of, and says
// nothing about what it does not model.
//
// # What is modelled
//
// One job, up to three replicas and four ticks, and Redis. A replica has a fiber for each tick, and one that pops the
// due set. The scripts are acquire, extend, settle and drop as in package lock, each in one step. Between them requests
// and replies are lost, overtake one another, or arrive when nobody waits for them. Replicas crash, restart, stall
// beyond their window, have no slot free, and cannot start the job. In a rollout they ask with two policies, and a
// reload changes the policy of all. Redis fails over, loses its data, its clock steps, or it stands still and later
// runs what it received before. A takeover is under way while the run's lease is renewed. Somebody who knows nothing of
// the protocol takes the lock. An operator cancels a live run, or asks for a rerun of a tick that was claimed. When the
// reply is lost, that request comes once more, at any later time. A [Scenario] says how often each of these may happen.
//
// Time is no number. Redis' clock counts the ticks that have come, and, where a scenario has a tolerance, knows that
// the next one is near. Replicas with a wrong clock wake at any time before their tick. A lease ends at any moment
// after the trust window of the request that set it has closed, which is all that the margin between the two promises.
// The windows of a live replica close by a stall, those of a dead one at once.
//
// So a dead run may be taken over from the crash on, before a restart and after it, and copies of its requests that
// come later find that. A process that knows that the one before it is dead does nothing that is not tried anyway. The
// model has to show that no other run is taken for a dead one (Place). There are no names: an impostor is a replica
// that lives.
//
// Where apps ask for their ticks (Asked), an app may be gone between the claim and the start. Its replica then gives
// the run up for good. An app that dies later, or falls silent, is a job that ends. When a replica crashes, the app of
// its run works on until the time of its last heartbeat is over; a restart in place waits for that too (Alone). Due
// members are missed, since no app asks for them. A lease of the table is such a job: a tick comes whenever an app
// asks, and two holders at once are two trusted runs.
//
// How long a watcher has seen a lease is no number either: for a whole ttl, or not. A fault keeps its takeover from
// arriving at once. Meanwhile the lease may be renewed; then the takeover must have no effect (SameEnd), and whoever
// goes on with what that watcher saw must begin again (Sightings). How times of several watchers add up is not
// modelled.
//
// Checked in every state:
//
//   - No tick is fired twice, and no attempt is started twice.
//   - No trusted run goes on beside one that was claimed after it under another policy than Allow. A run whose app
//     works on without its replica is trusted.
//   - A run is told to end when a newer tick replaces it, and only then.
//   - A tick that waits is not set free beside a run. Under Queue not more than one is set free.
//   - A run is in the way of those ticks only that came due after it began, and of none if it never began. Those that
//     came due while it certainly lived are not set free when it dies.
//   - No tick of the table is claimed when the next one is due.
//   - No tick has two fates: it is fired, an overlap or missed, once.
//   - No lock of somebody else is taken.
//   - A cancelled run is not due again, however it ends, and a cancel ends no other run.
//   - A rerun is started once for one request, under at-least-once each attempt once. It does not start beside a run,
//     not even, under Allow, beside one of its own tick. A world shows the limit of this: the run of the tick began
//     under another policy. No tick is skipped for a rerun that only waits.
//
// Checked where nothing more happens unless something fails: no tick is lost or settled without a fate, and no
// at-least-once run remains unfinished. That holds for a rerun and for the tick that it repeats, each by itself.
//
// # What is not modelled
//
//   - Timers with a schedule: package series has a model of them.
//   - Several jobs, real durations, livelock; pause, trigger, backfill of several ticks; a register while it runs, and
//     what at-least-once owes after a loss of data. A lost ledger is registered again in the step that loses it.
//   - Heartbeats of an app, and how long its replica waits for one. The app's time is over when the trust window is.
//   - The token, the history, nudges, and who claimed last. A stop by token is a mark on the runs that it is for.
//   - Jitter: a tick is due when it comes. The schedules of all replicas are the same.
//   - How missed ticks are booked: here they are counted in the step that writes them down.
//   - GAP and UNKNOWN: the list of older ticks is always right, and the ledger is always there. The claimant would ask
//     again.
//   - DUE: it is FIRED here.
//   - What the one script that runs a request decides alone: what became of a cancel is told again, a cancel that finds
//     no run changes nothing, a rerun leaves the fate of its tick as it is. The tests of package lock see to that.
//   - How long a lock lingers: one without a run may go at any moment, so that it costs no tick here whether the next
//     claim knows it (`last` in the ledger) or waits for its end.
//   - The safety delay after a run that was cut short, backoff, and the rounds of refusals: what is due can be had at
//     once, except by the replica that refused it last.
//   - When a due member is worth firing no more, except in scenarios with Drops.
//   - That only the newest 100 refused ticks are kept.
//   - A failover that brings back a lease end which a watcher has seen.
//
// # Replay
//
// The model is a twin of the scripts, written by hand. A [Trace] is a random path through its states; the tests of
// package lock have the real scripts do each of its steps, and compare what they answer and what Redis knows. The tests
// also list what the model leaves out on purpose.
//
// # Mends
//
// A [Mend] is one thought of the protocol that can be left out. The search then finds a counterexample, for all but
// one: LateFinish breaks no promise when it is missing, it saves runs that at-least-once would repeat for nothing.
//
// # How to read a counterexample
//
// It is a shortest way to the violation, one step a line. A/T1 is what replica A does about the first tick, B/due is B
// with what it popped from the due set; a line without such a name happens to Redis or to a whole replica. "Redis runs
// its request" and "reads the answer" are two steps, between which anything may happen. The last line names the broken
// promise and says what Redis knows by then. Where a tick is lost, look for the last line that had it in hand: the
// claim, the refusal or the handover after which nobody was to come back for it.
//
//	go run ./internal/model/modelcheck -scale pairs -only forbid -without Pend
package model
