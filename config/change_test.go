package config

import (
	"strings"
	"testing"
	"time"
)

func TestChangesAreToldToTheJobsOwnReceiver(t *testing.T) {
	all := []Event{Failed, Recovered, TicksMissed}
	for _, c := range []struct {
		defaults, job string
		want          Change
	}{
		{"", "", Change{}},
		{"after: 3", "", Change{}},
		{"after: 3", "url: https://h/1", Change{URL: "https://h/1", On: all, After: 3, Format: JSON}},
		{"url: https://h/1", "", Change{URL: "https://h/1", On: all, After: 1, Format: JSON}},
		{"url: https://h/1", "url: ''", Change{}},
		{"url: https://h/1, secretFile: /s, on: [failed]", "urlFile: /f, on: [], late: 5m, long: 1h",
			Change{URLFile: "/f", On: []Event{}, After: 1, Late: 5 * time.Minute, Long: time.Hour, Format: JSON, SecretFile: "/s"}},
		{"urlFile: /f, format: slack, after: 5", "url: 'https://h/${PORT}', format: json, after: 1",
			Change{URL: "https://h/8080", On: all, After: 1, Format: JSON}},
	} {
		text := "service: s\ndefaults: {notify: {change: {DEFAULTS}}}\njobs: [{name: a, schedule: \"@daily\", exec: {command: [a]}, notify: {change: {JOB}}}]\n"
		if c.job == "" {
			text = strings.Replace(text, ", notify: {change: {JOB}}}]", "}]", 1)
		}
		table := parsed(t, strings.NewReplacer("DEFAULTS", c.defaults, "JOB", c.job).Replace(text))
		equal(t, c.defaults+" / "+c.job, table.Jobs[0].Change, c.want)
	}
}

func TestARowOfFailuresIsToldOfAtItsBeginningAndItsEnd(t *testing.T) {
	told := func(c Change, rows ...int) (out string) {
		for i := range rows[1:] {
			if e := c.OfStreak(rows[i], rows[i+1]); e != "" {
				out += string(e[0])
			} else {
				out += "-"
			}
		}
		return out
	}
	all := []Event{Failed, Recovered}
	for _, c := range []struct {
		change Change
		rows   []int
		want   string
	}{
		{Change{On: all, After: 1}, []int{0, 0, 1, 2, 3, 3, 0, 0}, "-f---r-"},
		{Change{On: all, After: 3}, []int{0, 1, 2, 0, 1, 2, 3, 4, 0}, "-----f-r"},
		{Change{On: all, After: 2}, []int{0, 1, 2, 3, 4, 4, 0, 1}, "-f---r-"},
		{Change{On: []Event{Failed}, After: 1}, []int{0, 1, 0}, "f-"},
		{Change{On: []Event{Recovered}, After: 1}, []int{0, 1, 2, 0}, "--r"},
		{Change{}, []int{0, 1, 0}, "--"},
	} {
		if got := told(c.change, c.rows...); got != c.want {
			t.Errorf("%+v, %v: %s, want %s", c.change, c.rows, got, c.want)
		}
	}
}
