// Package rds is the one way to Redis, for the packages lock and service. It has the client and the limits on it, the
// keys of a service, its scripts, the batches in which requests travel, and Redis' clock. It also tells what an error
// means for a request's effect.
package rds
