package config

import (
	"strings"
	"testing"
)

func TestNotifyURLsFollowFromTheBase(t *testing.T) {
	for _, c := range []struct {
		defaults, job string
		want          Notify
	}{
		{"", "", Notify{}},
		{"", "url: https://h/1", Notify{"https://h/1/start", "https://h/1", "https://h/1/fail"}},
		{"", "url: https://h/1/", Notify{"https://h/1/start", "https://h/1/", "https://h/1/fail"}},
		{"", "url: 'https://h/1?create=1'", Notify{"https://h/1/start?create=1", "https://h/1?create=1", "https://h/1/fail?create=1"}},
		{"", "url: http://u:p@h:8000", Notify{"http://u:p@h:8000/start", "http://u:p@h:8000", "http://u:p@h:8000/fail"}},
		{"", "failure: http://h/f", Notify{"", "", "http://h/f"}},
		{"", "success: http://h/s, url: http://h/1, start: ''", Notify{"", "http://h/s", "http://h/1/fail"}},
		{"url: http://h/1", "", Notify{"http://h/1/start", "http://h/1", "http://h/1/fail"}},
		{"url: http://h/1", "start: http://h/s", Notify{"http://h/s", "http://h/1", "http://h/1/fail"}},
		{"failure: http://h/f", "success: http://h/s", Notify{"", "http://h/s", "http://h/f"}},
		{"url: http://h/1, start: http://h/s", "url: http://h/2", Notify{"http://h/2/start", "http://h/2", "http://h/2/fail"}},
		{"url: http://h/1, start: http://h/s", "url: ''", Notify{}},
		{"url: http://h/1", "url: '', failure: http://h/f", Notify{"", "", "http://h/f"}},
		{"", "url: 'https://h/${PORT}'", Notify{"https://h/8080/start", "https://h/8080", "https://h/8080/fail"}},
	} {
		text := "service: s\ndefaults: {notify: {DEFAULTS}}\njobs: [{name: a, schedule: \"@daily\", exec: {command: [a]}, notify: {JOB}}]\n"
		table := parsed(t, strings.NewReplacer("DEFAULTS", c.defaults, "JOB", c.job).Replace(text))
		equal(t, c.defaults+" / "+c.job, table.Jobs[0].Notify, c.want)
	}
}
