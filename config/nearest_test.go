package config

import "testing"

func TestNearestFindsWhatWasMeant(t *testing.T) {
	words := []string{"name", "schedule", "timeZone", "timeout", "start", "end", "Forbid", "at-most-once"}
	for word, want := range map[string]string{
		"shedule": "schedule", "schedul": "schedule", "scheduel": "schedule", "scedul": "schedule", "TIMEOUT": "timeout",
		"tmieout": "timeout", "nmae": "name", "stat": "start", "enf": "end", "forbid": "Forbid", "atmostonce": "at-most-once",
		"": "", "x": "", "ed": "end", "retry": "", "at-least-once": "", "scdl": "", "naem2": "",
	} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%q is near to %q, want %q", word, got, want)
		}
	}
}

func TestKeysOfOtherToolsFindTheirs(t *testing.T) {
	for word, want := range map[string]string{
		"time_zone": "timeZone", "time-zone": "timeZone", "tz": "timeZone", "cron": "schedule",
		"startingDeadlineSeconds": "startingDeadline", "activeDeadlineSeconds": "timeout", "Suspend": "suspend", "backoffLimit": "retry",
		"handovers": "startRetries", "start_retries": "startRetries", "startAttempts": "startRetries", "retries": "retry",
		"reserve": "reserved", "limits": "resources", "healthchecks": "notify", "reservation": "",
	} {
		if got, _ := nearestKey(jobKeys(), word); got.name != want {
			t.Errorf("%q is near to %q, want %q", word, got.name, want)
		}
	}
}
