package strict

import "testing"

func TestOnlyURLsWithoutSecretsAreShown(t *testing.T) {
	for url, want := range map[string]bool{
		"":                                 true,
		"${URL}":                           true,
		"embedded":                         true,
		"redis://redis:6379/0":             true,
		"unix:///run/redis.sock?db=2":      true,
		"http://[::1]:8080/x":              true,
		"http://${HOST}:${PORT}/x":         true,
		"http://unix:/run/app.sock:/x":     true,
		"redis://:pw@redis:6379/0":         false,
		"redis://u:p@ss@redis:6379/0":      false,
		"redis://u:p/w@redis":              false,
		"redis://:pw":                      false,
		"redis://u:pwredis:6379":           false,
		"redis://u:${PW}@redis":            false,
		"redis://u:${PW:-pw}":              false,
		"unix:///run/redis.sock?pw=2":      false,
		"unix://u:pw@/run/redis.sock":      false,
		"http://127.0.0.1:8080/x?token=a":  false,
		"http://127.0.0.1:8080/x#token":    false,
		"http://127.0.0.1/x@y":             false,
		"http://127.0.0.1/${A:-b}":         false,
		"http://u:pw@127.0.0.1/x?mail=a@b": false,
		"http://unix:/run/app.sock:/x?t=1": false,
		"u:pw@redis":                       false,
		"u:pw":                             false,
	} {
		if got := OpenURL.MatchString(url); got != want {
			t.Errorf("%q is shown: %v, want %v", url, got, want)
		}
	}
}
