package view

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/text"
)

// WholeJob is a job in JSON, with what it calls or runs and its settings, in words.
type WholeJob struct {
	Job
	Target   string `json:"target,omitempty"`
	Settings string `json:"settings"`
}

// Target returns what a job calls or runs, without what may hold a secret: paths, arguments, headers and bodies. It is
// "" if that is not known.
func Target(j config.Job) string {
	switch {
	case j.Claim != nil:
		return "is run by its app, which asks first"
	case j.HTTP != nil:
		if u, err := url.Parse(j.HTTP.URL); err == nil {
			return fmt.Sprintf("calls %s %s", j.HTTP.Method, u.Host)
		}
	case j.Exec != nil && len(j.Exec.Command) > 0:
		said := "runs " + j.Exec.Command[0]
		if n := len(j.Exec.Command) - 1; n > 0 {
			said += ", with " + text.Plural(n, "argument")
		}
		return said
	}
	return ""
}

// Settings returns the settings of a job that decide what becomes of its ticks, as the table names them.
func Settings(j config.Job) string {
	all := []string{"guarantee " + string(j.Guarantee), "missed " + string(j.Missed),
		"concurrencyPolicy " + string(j.ConcurrencyPolicy), "timeout " + j.Timeout.String()}
	switch r := j.Reports(); {
	case j.Claim != nil: // its timeout is that of the job
		all = append(all, "claim heartbeat "+r.Heartbeat.String())
	case r != nil:
		all = append(all, fmt.Sprintf("async timeout %s, heartbeat %s", r.Timeout, r.Heartbeat))
	}
	also := func(is bool, said string) {
		if is {
			all = append(all, said)
		}
	}
	also(j.ConcurrencyPolicy == config.Allow && j.Concurrency > 0, fmt.Sprintf("concurrency %d", j.Concurrency))
	also(j.StartingDeadline > 0, "startingDeadline "+j.StartingDeadline.String())
	also(j.Retry.Limit > 0, fmt.Sprintf("retry limit %d, backoff %s", j.Retry.Limit, j.Retry.Backoff))
	also(j.Jitter > 0, "jitter "+j.Jitter.String())
	also(j.Reserved, "reserved")
	also(j.Priority > 0, fmt.Sprintf("priority %d", j.Priority))
	also(j.Suspend, "suspend")
	also(j.Observe, "observe")
	return strings.Join(all, "; ")
}
