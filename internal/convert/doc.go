// Package convert turns crontabs and Kubernetes CronJobs into a Solotick table. What a job meant is kept: when it runs,
// what it runs, that runs may overlap, that nothing ends a long one. What cannot be kept stands as a comment at the job
// that it belongs to; a job that cannot be carried over at all is a commented-out block with the reason. A table that
// comes out is one that package config accepts, and the same input always gives the same table.
//
// The limit: it reads files, not the machine or the cluster that they come from. It does not know the machine's time
// zone, what is in an image, or the value of a Secret, and never guesses them.
package convert
