package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestDurationsHaveDays(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "2h": 2 * time.Hour, "1h30m": 90 * time.Minute, "250ms": 250 * time.Millisecond,
		"2d": 48 * time.Hour, "1d12h": 36 * time.Hour, "1.5d": 36 * time.Hour, "0.5d1h": 13 * time.Hour, "36500d": 36500 * 24 * time.Hour,
	} {
		var l length
		if err := l.Set(text); err != nil || l.Duration != want {
			t.Errorf("%s is %s, %v; want %s", text, l.Duration, err, want)
		}
	}
	for _, text := range strings.Split("60|5min|2 days|1 day|1w|3 Hours|1h 30m|-2h|-1d|10sec|0s|0|-|soon|d|"+
		"1h2d|1d-2h|1d+2h|40000d|9999999h|2dd|", "|") {
		var l length
		var bad *badValue
		if err := l.Set(text); !errors.As(err, &bad) {
			t.Errorf("%q is %s, %v; want it refused", text, l.Duration, err)
		}
	}
}

func TestADurationIsWrittenAsPeopleWriteIt(t *testing.T) {
	for text, want := range map[string]string{"48h": "48h", "2d": "48h", "90m": "1h30m", "60s": "1m", "90s": "1m30s", "10s": "10s", "1h0m5s": "1h0m5s"} {
		var l length
		if err := l.Set(text); err != nil || l.String() != want {
			t.Errorf("%s is written %q, %v; want %q", text, l.String(), err, want)
		}
	}
	if s := (&length{}).String(); s != "" {
		t.Errorf("none is written %q", s)
	}
}

// The clock of these tests: in Berlin it is 00:30 on the day on which the clock is set forward, from 02:00 to 03:00.
const momentNow = "2027-03-27T23:30:00Z"

func TestTimesAreReadAsPeopleWriteThem(t *testing.T) {
	now, err := time.Parse(time.RFC3339, momentNow)
	if err != nil {
		t.Fatal(err)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text              string
		behind, ahead, in string // in: behind, in Berlin; "" = as behind
	}{
		{"2027-03-28T06:00:00Z", "2027-03-28T06:00:00Z", "2027-03-28T06:00:00Z", ""},
		{"2027-03-28T06:00:00.25Z", "2027-03-28T06:00:00.25Z", "2027-03-28T06:00:00.25Z", ""},
		{"2027-03-28T08:00:00+02:00", "2027-03-28T06:00:00Z", "2027-03-28T06:00:00Z", ""},
		{"2027-03-28 06:00:00z", "2027-03-28T06:00:00Z", "2027-03-28T06:00:00Z", ""},
		{"2027-03-28", "2027-03-28T00:00:00Z", "2027-03-28T00:00:00Z", "2027-03-27T23:00:00Z"},
		{"2027-03-28T06:00", "2027-03-28T06:00:00Z", "2027-03-28T06:00:00Z", "2027-03-28T04:00:00Z"},
		{"2027-03-28 06:00:05", "2027-03-28T06:00:05Z", "2027-03-28T06:00:05Z", "2027-03-28T04:00:05Z"},
		{"2027-03-28 02:30", "2027-03-28T02:30:00Z", "2027-03-28T02:30:00Z", "2027-03-28T01:30:00Z"}, // 03:30: 02:30 is skipped
		{"18:00", "2027-03-27T18:00:00Z", "2027-03-28T18:00:00Z", "2027-03-27T17:00:00Z"},
		{"0:15", "2027-03-27T00:15:00Z", "2027-03-28T00:15:00Z", "2027-03-27T23:15:00Z"},
		{"23:30", "2027-03-27T23:30:00Z", "2027-03-28T23:30:00Z", "2027-03-27T22:30:00Z"}, // now is behind
		{"23:45:10", "2027-03-26T23:45:10Z", "2027-03-27T23:45:10Z", "2027-03-27T22:45:10Z"},
		{"now", momentNow, momentNow, ""},
		{"today", "2027-03-27T00:00:00Z", "2027-03-27T00:00:00Z", "2027-03-27T23:00:00Z"},
		{"Yesterday", "2027-03-26T00:00:00Z", "2027-03-26T00:00:00Z", "2027-03-26T23:00:00Z"},
		{"tomorrow", "2027-03-28T00:00:00Z", "2027-03-28T00:00:00Z", "2027-03-28T22:00:00Z"}, // a day of 23 hours
		{"-1h", "2027-03-27T22:30:00Z", "2027-03-27T22:30:00Z", ""},
		{"+2d", "2027-03-29T23:30:00Z", "2027-03-29T23:30:00Z", ""},
		{"-1d12h", "2027-03-26T11:30:00Z", "2027-03-26T11:30:00Z", ""},
		{"90m", "2027-03-27T22:00:00Z", "2027-03-28T01:00:00Z", ""},
	} {
		if c.in == "" {
			c.in = c.behind
		}
		for _, way := range []struct {
			ahead bool
			zone  *time.Location
			want  string
		}{{false, time.UTC, c.behind}, {true, time.UTC, c.ahead}, {false, berlin, c.in}} {
			m := moment{ahead: way.ahead}
			if err := m.Set(c.text); err != nil {
				t.Errorf("%q: %v", c.text, err)
			} else if got := m.read(now, way.zone).First.UTC().Format(time.RFC3339Nano); got != way.want || m.String() != c.text {
				t.Errorf("%q (ahead %t, zone %s) is %s, want %s", c.text, way.ahead, way.zone, got, way.want)
			}
		}
	}
}

func TestATimeThatIsNoneIsRefused(t *testing.T) {
	for _, text := range strings.Split("noon|6pm|12:30 pm|1806127200|2027-3-8|2027/03/08|20270308|2 hours ago|"+
		"in 90 minutes|-2 days|60|soon|25:00|2027-13-01|2027-02-30|03/04/2027|0s|--1h||99999d2000000h", "|") { // which would be less than none if it were added up
		var m moment
		var bad *badValue
		if err := m.Set(text); !errors.As(err, &bad) || m.given() {
			t.Errorf("%q is taken for a time: %v", text, err)
		}
	}
}
