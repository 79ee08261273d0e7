package config

import (
	"testing"

	"github.com/solotick/solotick/config/strict"
)

func TestKeysOfOtherToolsFindTheirs(t *testing.T) {
	for word, want := range map[string]string{
		"time_zone": "timeZone", "time-zone": "timeZone", "tz": "timeZone", "cron": "schedule",
		"startingDeadlineSeconds": "startingDeadline", "activeDeadlineSeconds": "timeout", "Suspend": "suspend", "backoffLimit": "retry",
		"handovers": "startRetries", "start_retries": "startRetries", "startAttempts": "startRetries", "retries": "retry",
		"reserve": "reserved", "healthchecks": "notify", "reservation": "",
	} {
		if got, _ := strict.NearestKey(keysOf("jobs"), word); got.Name != want {
			t.Errorf("%q is near to %q, want %q", word, got.Name, want)
		}
	}
}
