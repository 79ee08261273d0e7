package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// Ticks requested under new keys differ from those requested without, and from those of an earlier request under new
// keys.
func TestABackfillHasNewKeysWhenItIsAskedForThem(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := lock.NewClient(redis.UniversalOptions{Addrs: []string{s.Addr()}}, patience)
	defer client.Close()
	store, err := service.New(client, "shop", lock.Options{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Locks.Register(context.Background(), "daily", ""); err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(t.TempDir(), "table.yaml")
	text := "service: shop\njobs:\n  - {name: daily, schedule: '@daily', exec: {command: ['true']}}\n"
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]string{nil, {"--new-keys"}, {"--new-keys"}} {
		args := append([]string{"backfill", "-c", table, "--redis", s.URL(), "daily",
			"--from", "2026-01-01T00:00:00Z", "--to", "2026-01-03T00:00:00Z"}, more...)
		if out, err := exec.Command("solotick", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	seen, err := store.Look(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]int{}
	for _, d := range seen.Due {
		if d.Kind != "backfill" || d.Key != "" && d.Key != d.Nonce[:8] {
			t.Errorf("due is %+v", d)
		}
		keys[d.Key]++
	}
	if len(keys) != 3 || keys[""] != 2 || len(seen.Due) != 6 {
		t.Errorf("the keys are %v, want three of two ticks each, and one of them none", keys)
	}
}
