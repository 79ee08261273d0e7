package lock

import (
	"testing"
	"time"
)

func TestTheEndOfARunCountsOnlyWithinItsLease(t *testing.T) {
	s, err := New(miniClient(t), "svc", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := &Claim{TTL: time.Hour}
	now, _ := s.Now()
	if got := s.endedAgo(c, now.Add(-time.Minute)); got < time.Minute || got > c.TTL {
		t.Errorf("a minute ago was %s ago", got)
	}
	for _, ago := range []time.Duration{2 * time.Hour, 24 * time.Hour, -time.Hour} { // by a clock that is not Redis'
		if got := s.endedAgo(c, now.Add(-ago)); got != 0 {
			t.Errorf("%s ago, beyond the lease, counts as %s ago", ago, got)
		}
	}
}
