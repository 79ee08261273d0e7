package config

import "testing"

func TestAHeaderHasNoControlCharacters(t *testing.T) {
	for value, want := range map[string]bool{"": true, "a b\tc": true, "ä": true, "a\nb": false, "a\rb": false, "a\x00": false, "a\x1f": false, "a\x7fb": false} {
		if got := IsHeaderValue(value); got != want {
			t.Errorf("IsHeaderValue(%q) is %t", value, got)
		}
	}
}
