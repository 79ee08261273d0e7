// Package redisworld is one Redis and the replicas that share it, for a test to play a case over: a World is miniredis
// in a testing/synctest bubble, where hours take milliseconds and Redis' clock can be set, or a redis-server in real
// time. A Replica is one process: a lock.Store and a service.Store over a client, a lossy proxy and clocks of its own.
// Its methods are sentences of a case (a Wins, b Loses), and end the test when they are not true.
//
// It says nothing about what a replica does of itself: nobody keeps, settles or takes over what the case does not.
package redisworld
