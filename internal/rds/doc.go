// Package rds is the one way to Redis, for the packages lock and service: the client and what it must not do, the keys of a
// service, its scripts, the batches in which requests travel, what an error says about a request's effect, and Redis' clock.
package rds
