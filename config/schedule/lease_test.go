package schedule

import (
	"strings"
	"testing"
	"time"
)

func TestALeaseHasNoTicks(t *testing.T) {
	s, err := Parse(" @lease ", Options{})
	if err != nil || !s.IsLease() || s.String() != "@lease" || s.ByName() || s.Anchored() || s.MinGap() != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, at := range []time.Time{{}, time.Unix(0, 0), time.Now()} {
		if !s.Next(at).IsZero() || !s.Last(at).IsZero() {
			t.Errorf("ticks near %s", at)
		}
	}
	if e, err := Explain([]string{"@lease"}, Options{}); err != nil || e.Words != "whenever an app asks for it while no other has it" {
		t.Errorf("%+v, %v", e, err)
	}
	if s, err := Parse("@LEASE", Options{}); err != nil || !s.IsLease() || (*Schedule)(nil).IsLease() {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := Parse("@leas", Options{}); err == nil || !strings.Contains(err.Error(), "did you mean @lease?") {
		t.Error(err)
	}
	if _, err := ParseAll([]string{"@lease", "@daily"}, Options{}); err == nil {
		t.Error("a lease beside another schedule")
	}
	if s, _ := Parse("@daily", Options{}); s.IsLease() {
		t.Error("@daily is a lease")
	}
}
