package config

import (
	"strings"
	"testing"
)

func TestTheURLThatIsPinged(t *testing.T) {
	for _, c := range []struct{ defaults, job, want string }{
		{"", "", ""},
		{"", "url: 'https://h/1?create=1'", "https://h/1?create=1"},
		{"", "url: 'https://h/${PORT}'", "https://h/8080"},
		{"url: http://h/1", "", "http://h/1"},
		{"url: http://h/1", "url: http://h/2", "http://h/2"},
		{"url: http://h/1", "url: ''", ""},
	} {
		text := "service: s\ndefaults: {notify: {DEFAULTS}}\njobs: [{name: a, schedule: \"@daily\", exec: {command: [a]}, notify: {JOB}}]\n"
		table := parsed(t, strings.NewReplacer("DEFAULTS", c.defaults, "JOB", c.job).Replace(text))
		equal(t, c.defaults+" / "+c.job, table.Jobs[0].Notify, c.want)
	}
}
