package lock

import "github.com/google/uuid"

// nodeDigits is the length of the last part of a UUID, its node.
const nodeDigits = 12

// NewRun returns a random UUID for a run of the process that has this UUID; "" = of no process in particular. The node
// of the run is that of its process. So the run alone tells its process, and Redis keeps nothing more for it.
func NewRun(process string) string {
	run, node := uuid.NewString(), Node(process)
	return run[:len(run)-len(node)] + node
}

// Node returns the node of the UUID of a process or a run; "" if that is no UUID.
func Node(id string) string {
	if uuid.Validate(id) != nil {
		return ""
	}
	return id[len(id)-nodeDigits:]
}
