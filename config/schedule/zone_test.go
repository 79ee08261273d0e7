package schedule

import (
	"testing"
	"time"
)

func TestAWallClockTimeIsReadByTheClocksOfItsZone(t *testing.T) {
	for _, c := range []struct{ zone, shown, first, last, skipped string }{
		{"UTC", "2026-10-25 02:30", "2026-10-25 02:30", "2026-10-25 02:30", ""},
		{"Europe/Berlin", "2026-10-25 01:59", "2026-10-24 23:59", "2026-10-24 23:59", ""},
		{"Europe/Berlin", "2026-10-25 02:00", "2026-10-25 00:00", "2026-10-25 01:00", ""}, // twice: CEST, CET
		{"Europe/Berlin", "2026-10-25 02:59", "2026-10-25 00:59", "2026-10-25 01:59", ""},
		{"Europe/Berlin", "2026-10-25 03:00", "2026-10-25 02:00", "2026-10-25 02:00", ""},
		{"America/New_York", "2026-11-01 01:30", "2026-11-01 05:30", "2026-11-01 06:30", ""},
		{"Australia/Lord_Howe", "2026-04-05 01:45", "2026-04-04 14:45", "2026-04-04 15:15", ""}, // half an hour
		{"America/Havana", "2026-11-01 00:00", "2026-11-01 04:00", "2026-11-01 05:00", ""},
		{"Europe/Berlin", "2026-03-29 02:00", "2026-03-29 01:00", "2026-03-29 01:00", "2026-03-29 01:00"},
		{"Europe/Berlin", "2026-03-29 02:30", "2026-03-29 01:30", "2026-03-29 01:30", "2026-03-29 01:00"},
		{"America/Santiago", "2026-09-06 00:00", "2026-09-06 04:00", "2026-09-06 04:00", "2026-09-06 04:00"},
		{"America/Santiago", "2026-09-05 23:59", "2026-09-06 03:59", "2026-09-06 03:59", ""},
		{"America/Toronto", "1919-03-31 00:00", "1919-03-31 05:00", "1919-03-31 05:00", "1919-03-31 04:30"}, // from 23:30 to 00:30
	} {
		want := Reading{First: utc(t, c.first), Last: utc(t, c.last)}
		if c.skipped != "" {
			want.Skipped = utc(t, c.skipped)
		}
		if got := Clocks(mustZone(t, c.zone), utc(t, c.shown)); got != want {
			t.Errorf("%s in %s is %+v, want %+v", c.shown, c.zone, got, want)
		}
	}
	odd := time.FixedZone("odd", 5400) // no zone of the database
	if got := Clocks(odd, utc(t, "2026-10-25 02:30")); !got.First.Equal(utc(t, "2026-10-25 01:00")) || got.Last != got.First {
		t.Errorf("in a fixed zone it is %+v", got)
	}
}
