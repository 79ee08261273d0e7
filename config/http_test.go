package config

import "testing"

func TestAJobCallsTheToyAppByItsPlainAddressAlone(t *testing.T) {
	for _, c := range []struct {
		url    string
		remote bool
		want   bool
	}{
		{"http://embedded/jobs/hello?take=4s", false, true},
		{"http://embedded", false, true},
		{"http://embedded/jobs/hello", true, false}, // a host of that name
		{"http://embedded:8080/jobs/hello", false, false},
		{"https://embedded/jobs/hello", false, false},
		{"http://embedded.example.com/", false, false},
		{"http://user@embedded/", false, true},
		{"http://127.0.0.1/embedded", false, false},
		{"http://unix:/embedded:/", false, false},
	} {
		j := Job{AllowRemote: c.remote, HTTP: &HTTP{URL: c.url}}
		if got := j.CallsToy(); got != c.want {
			t.Errorf("%s, allowRemote %v: %v, want %v", c.url, c.remote, got, c.want)
		}
	}
	if (&Job{Exec: &Exec{}}).CallsToy() {
		t.Error("a command calls nothing")
	}
}

func TestADynamicJobCannotCallTheToyApp(t *testing.T) {
	if _, err := ParseJob("a", []byte(`{"schedule": "@daily", "http": {"url": "http://embedded/jobs/hello"}}`)); err == nil {
		t.Error("it can: what is in Redis would be for trials alone")
	}
}
