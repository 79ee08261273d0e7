// Package convert turns crontabs and Kubernetes CronJobs into a Solotick table. A job keeps its meaning: when it runs,
// what it runs, that its runs may overlap, and that no limit ends a long one. If a setting has no place in a table, a
// comment stands at its job. If a job cannot be carried over at all, its block is commented out, with the reason.
// Package config accepts every table that Convert returns, and the same input always gives the same table.
//
// The limit: the package reads files, not the machine or the cluster that they come from. It does not know the
// machine's time zone, the contents of an image, or the value of a Secret, and never guesses them.
package convert
