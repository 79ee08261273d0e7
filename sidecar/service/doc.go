// Package service is what a service keeps in Redis besides the locks of package lock, and the rules of what may be asked of it.
//
// A [Store] reads and writes: the history of runs, the state of each job, the heartbeats of replicas, requests by operators
// (pause, resume, trigger, backfill), dynamic jobs, and timers. Look reads what a replica has to see at each look, in one
// round trip.
//
// An [Operator] holds the rules: which jobs there are, and which of them can be paused, resumed, triggered, backfilled,
// changed or deleted; and the same for timers. The command line and the API both ask an Operator, so that they grant and
// refuse the same. The error of a request is a [Refusal]. Its Kind says why; the command line makes an exit code of it, and
// the API a status. The package knows neither flags nor HTTP: a Field carries the name by which its caller knows a part of a
// request, such as --until.
//
// # Timers
//
// A timer ([Store.SetTimer]) is a due member whose score is its time, in a set beside that of all jobs, and an entry with its
// source, under a key of its own. To fire it needs no argument of its own. Two authorities let a run begin, a newer tick of
// the table and a due member that is popped by its claim; a timer has the second alone, so it is fired once, and handed on,
// extended, settled and taken over as any tick is. All timers of a service share one ledger, under the policy Allow, which
// keeps the record of each run by a slot and has no use for the newest tick.
//
// What is new is the entry. It comes, is replaced and is deleted together with its member, in one script. While that
// member is due the timer waits; when it is not, somebody deals with it: runs it, has handed it on or taken it over
// under other members' names, or has died. In none of these can it be set or deleted, so who claims what he saw due has
// read the source that belongs to it, and who runs it next still finds it. The step that settles its last run turns the
// entry into a mark, under which its id is not taken again for a day. When that step is a takeover, the memo of the run
// keeps the entry: evidence that it never started brings both back.
//
// A request to set or delete must not come late either: it would undo what was done since. Claims are kept from that
// by their ticks, and operators' requests are few enough to be remembered. An app may set a thousand timers a second. So
// each copy says until when it may have an effect, the next one is sent when that is over, and not before then does a call
// return without an answer. Asked again, Redis knows the request by its id: from the entry, or from the mark that the
// timer's end, or its deletion, has left in its place.
package service
