package main

import (
	"fmt"
	"os"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// crontab starts the command of a line of a crontab at each tick of each job, as cron does at each minute: cron itself
// knows no seconds. The commands are killed with it, as with a container.
func (r *replica) crontab() (func() error, error) {
	return r.schedule(func(j job) error {
		env := []string{"JOB=" + j.Name, "URL=" + j.URL, "TICK=" + j.tick().UTC().Format(time.RFC3339),
			fmt.Sprintf("HALF=%d", j.period().Milliseconds()/2)}
		_, err := rig.Launch(j.Name, os.DevNull, env, "sh", "-c", r.command)
		return err
	})
}
