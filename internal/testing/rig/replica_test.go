package rig

import (
	"maps"
	"testing"
)

func TestASampleIsReadWithItsLabels(t *testing.T) {
	for line, want := range map[string]Sample{
		`solotick_redis_up 1`: {Name: "solotick_redis_up", Value: 1},
		`solotick_skips_total{job="a.b-c",reason="overlap"} 12`: {Name: "solotick_skips_total", Value: 12,
			Labels: map[string]string{"job": "a.b-c", "reason": "overlap"}},
		`go_memstats_sys_bytes 1.2e+07`: {Name: "go_memstats_sys_bytes", Value: 12e6},
	} {
		got, err := parseSample(line)
		if err != nil || got.Name != want.Name || got.Value != want.Value || !maps.Equal(got.Labels, want.Labels) {
			t.Errorf("%q: got %+v, %v", line, got, err)
		}
	}
}

func TestALineWithoutANumberIsNoSample(t *testing.T) {
	for _, line := range []string{"", "solotick_redis_up", "solotick_redis_up one"} {
		if got, err := parseSample(line); err == nil {
			t.Errorf("%q: got %+v", line, got)
		}
	}
}
