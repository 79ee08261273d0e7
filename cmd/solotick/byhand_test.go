package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// A script that triggers or backfills in a loop gets an error once too many requests wait, and adds no more.
func TestManualRequestsHaveABoundAndAnErrorSaysSo(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	rdb := lock.NewClient(redis.UniversalOptions{Addrs: []string{mini.Addr()}}, 10*time.Second)
	defer rdb.Close()
	store, err := service.New(rdb, "shop", lock.Options{Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range []string{"one", "two"} {
		if _, err := store.Locks.Register(t.Context(), job, ""); err != nil {
			t.Fatal(err)
		}
	}
	table := filepath.Join(t.TempDir(), "table.yaml")
	text := "service: shop\njobs:\n  - {name: one, schedule: '@hourly', exec: {command: ['true']}}\n" +
		"  - {name: two, schedule: '@hourly', exec: {command: ['true']}}\n"
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	waits := func() int {
		n, err := rdb.ZCard(t.Context(), "solotick:{shop}:due").Result()
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
	asks := func(verb, job string, more ...string) (code int, said string) {
		var out, errOut bytes.Buffer
		code = commandLine(append([]string{verb, "-c", table, "--redis", "redis://" + mini.Addr() + "/0", job}, more...), &out, &errOut)
		return code, errOut.String()
	}

	for range 99 {
		if _, err := store.Trigger(t.Context(), "one", uuid.NewString()); err != nil {
			t.Fatal(err)
		}
	}
	const full = "error: triggering job \"one\": there are too many: 100 requests wait, which is the limit"
	for _, want := range []int{0, exitCannot, exitCannot} {
		code, said := asks("trigger", "one")
		if code != want || want != 0 && !strings.Contains(said, full) {
			t.Errorf("exit code %d, want %d: %s", code, want, said)
		}
	}
	if n := waits(); n != 100 {
		t.Errorf("%d triggers wait", n)
	}

	year := []string{"--from", "2025-01-01T00:00:00Z", "--to", "2025-02-11T00:00:00Z", "--yes"} // 984 ticks
	const tooMany = "error: backfilling job \"two\": there are too many: 5000 requests wait, which is the limit"
	added := 0
	for asked := 1; ; asked++ {
		code, said := asks("backfill", "two", year...)
		if code != 0 {
			if code != exitCannot || !strings.Contains(said, tooMany) {
				t.Errorf("exit code %d: %s", code, said)
			}
			break
		}
		if added += 984; added > 5000 {
			t.Fatalf("%d ticks wait, and there is no end", added)
		}
	}
	if n := waits(); n != 100+added || added+984+100 <= 5000 {
		t.Errorf("%d wait, and %d ticks were added", n, added)
	}
	if code, said := asks("trigger", "two"); code != 0 {
		t.Errorf("a trigger waits for the room of backfills: exit code %d: %s", code, said)
	}
}
