package redistest

import (
	"slices"
	"strings"
	"testing"
)

func TestSentinelsPutAReplicaInThePlaceOfADeadMaster(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t, 1, 3)
	old := s.Servers[0]
	ask(t, old, "SET k v")
	if got := ask(t, old, "WAIT 1 5000"); got != ":1" {
		t.Fatalf("WAIT: %s", got)
	}
	old.Kill()
	m := s.AwaitMaster(old)
	if m != s.Servers[1] {
		t.Fatal("not the replica")
	}
	if got := ask(t, m, "GET k"); got != "v" {
		t.Fatalf("GET on the new master: %q", got)
	}
}

func TestClusterServesEverySlotAndMovesOne(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3)
	owner := c.Owner("k")
	i := slices.Index(c.Masters, owner)
	other := c.Masters[(i+1)%3]
	if got := ask(t, owner, "SET k v"); got != "+OK" {
		t.Fatalf("SET: %s", got)
	}
	if got := ask(t, other, "GET k"); !strings.HasPrefix(got, "-MOVED") {
		t.Fatalf("GET elsewhere: %s", got)
	}
	ask(t, owner, "DEL k")
	c.Move("k", owner, other)
	if got := ask(t, owner, "GET k"); !strings.HasPrefix(got, "-MOVED") {
		t.Fatalf("GET where it was: %s", got)
	}
	if got := ask(t, other, "SET k v"); got != "+OK" {
		t.Fatalf("SET where it went: %s", got)
	}
}
