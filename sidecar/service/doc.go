// Package service is what a service keeps in Redis besides locks (package lock), and the rules for requests about it.
//
// A [Store] reads and writes: the history of runs, the state of each job, the heartbeats of replicas, requests by
// operators (pause, resume, trigger, backfill), and timers. [Store.Look] reads, in one or two round
// trips, what a replica needs.
//
// An [Operator] holds the rules: which jobs there are, and which of them can be paused, resumed, triggered or
// backfilled. It has such rules for timers too. The command line and the API both ask an Operator, so that they
// grant and refuse the same. The error of a request is a [Refusal]. Its Kind says why: the command line turns it into
// an exit code, and the API into a status. The package knows neither flags nor HTTP: a [Field] carries the name by
// which the caller knows a part of a request, such as --until.
//
// # Timers
//
// A timer ([Store.SetTimer]) is a due member, whose score is the timer's time, and an entry with the timer's source.
// One script sets, replaces or deletes both. Once the member is gone, a replica runs the timer or has handed it on, and
// it can be neither set nor deleted: so a replica that claims the member has read the right source. docs/protocol.md
// tells the rest: how a timer ends, and why no request to set or delete one has an effect when it comes late.
package service
