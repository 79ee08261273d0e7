package strict

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
