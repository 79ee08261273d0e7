// Package service holds the rules of what an operator may ask of a service: which jobs there are, and which of them
// can be paused, resumed, triggered, backfilled, changed or deleted; and the same for timers. The command line and
// the API both ask an Operator, so that they grant and refuse the same. The error of a request is a Refusal. Its
// Kind says why; the command line makes an exit code of it, and the API a status. The package knows neither flags
// nor HTTP: a Field carries the name by which its caller knows a part of a request, such as --until.
package service
