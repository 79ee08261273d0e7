// Package service is what a service keeps in Redis besides the locks of package lock, and the rules for requests about it.
//
// A [Store] reads and writes: the history of runs, the state of each job, the heartbeats of replicas, requests by operators
// (pause, resume, trigger, backfill), dynamic jobs, and timers. [Store.Look] reads, in one or two round trips, what a
// replica needs once a second.
//
// An [Operator] holds the rules: which jobs there are, and which of them can be paused, resumed, triggered, backfilled,
// changed or deleted. It has such rules for timers too. The command line and the API both ask an Operator, so that they
// grant and refuse the same. The error of a request is a [Refusal]. Its Kind says why: the command line turns it into an
// exit code, and the API into a status. The package knows neither flags nor HTTP: a [Field] carries the name by which the
// caller knows a part of a request, such as --until.
//
// # Timers
//
// A timer ([Store.SetTimer]) consists of a due member and an entry. The score of the member is the timer's time; the
// members of timers have a set of their own. The entry has a key of its own and contains the timer's source.
//
// Two things authorize a run: a newer tick of the table, and a due member that its claim removes. A timer only has the
// second. So it is fired once, and is handed on, extended, settled and taken over as any tick is. All timers of a service
// share one ledger, under the policy Allow. It keeps a record of each run and ignores the newest tick.
//
// One script sets, replaces or deletes an entry together with its member. The timer waits while that member is in the due
// set. Once it is not, a replica is running the timer, has handed it on or taken it over under another member, or has
// died. In each of these cases the timer can be neither set nor deleted. So a replica that claims the member it saw has
// read the source that belongs to it, and the replica that runs it next still finds that source. The script that settles
// the last run turns the entry into a mark; while the mark stands, for a day, the id is not taken again. If that script
// was a takeover, the memo of the run keeps the entry: evidence that the run never started brings both back.
//
// A late request to set or delete would undo what was done since. Ticks protect claims from that, and requests by
// operators are few enough for Redis to remember. An app, however, may set a thousand timers a second. So each copy says
// until when it may have an effect. The store sends the next copy only after that moment, and a call that got no answer
// returns only after it. If a request is repeated, Redis knows it by its id: from the entry, or from the mark that the
// timer's end or deletion left in its place.
package service
