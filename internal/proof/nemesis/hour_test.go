package nemesis

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/proof/rig"
)

// TestScriptedHour plays an hour in which everything happens that can become of a tick, and accounts for each tick. By default
// the hour takes a minute; with -for 60m it takes its time.
func TestScriptedHour(t *testing.T) {
	if testing.Short() {
		t.Skip("the scripted hour takes a minute: not with -short")
	}
	redis.SetLogger(quiet{})
	t.Logf("go test ./internal/proof/nemesis -v -run TestScriptedHour -for %s -timeout %s", *length, *length+30*time.Minute)
	root, err := rig.Root()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "solotick")
	if err := rig.Build(root, rig.Package, binary); err != nil {
		t.Fatal(err)
	}
	h := newHour(t, binary, *length)
	h.account(h.play())
}
