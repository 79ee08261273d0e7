// Package sidecar is the life of a tick: gocron wakes a job on the cluster clock, fire takes the tick through gate, lock
// and execution to one counted outcome, and a watcher deals with what other replicas left behind.
//
// For every wake of a replica there is exactly one fire or one counted skip, and over all replicas at most one fire per
// tick (a job with the guarantee every-replica aside). What is not promised: a run whose lock is lost is cancelled before
// its lease ends, but an HTTP handler may go on after its caller has gone; the fencing token is for that.
//
// To read it, follow a tick: series (which ticks there are), clock (when it is time), job.take (which tick a wake is
// for), fire (what happens to it), outcome (how it is counted).
package sidecar
