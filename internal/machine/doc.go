// Package machine reads how busy this machine is, and the container that this process runs in.
package machine

import "errors"

// Load is how much is in use, from 0 to 1: of the machine, or of the container's limit if that is more.
type Load struct{ CPU, Memory float64 }

// ErrUnknown says that the load cannot be read on this system.
var ErrUnknown = errors.New("the load of this machine cannot be read: that works on Linux alone")
