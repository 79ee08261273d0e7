package service

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/lock"
)

// fitness asks the Redis at an address.
func fitness(t *testing.T, addr string, wait int) []string {
	t.Helper()
	c := lock.NewClient(redis.UniversalOptions{Addrs: []string{addr}}, 2*time.Second)
	t.Cleanup(func() { _ = c.Close() })
	s, err := New(c, "svc", lock.Options{Timeout: 2 * time.Second, WaitReplicas: wait})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := s.CheckServer(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return problems
}

// demand wants one problem for each word, in order, that holds it.
func demand(t *testing.T, problems []string, words ...string) {
	t.Helper()
	if !slices.EqualFunc(problems, words, strings.Contains) {
		t.Errorf("problems %q, want %q", problems, words)
	}
}

func TestFitRedisHasNoProblem(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	demand(t, fitness(t, s.Addr(), 0))
	demand(t, fitness(t, s.Addr(), 1), "has 0 of the 1 replicas")
}

func TestUnfitRedisIsToldSo(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, "--maxmemory-policy", "volatile-lru", "--repl-diskless-sync-delay", "0")
	demand(t, fitness(t, master.Addr(), 0), "maxmemory-policy is volatile-lru")
	replica := redistest.Start(t, "--replicaof", "127.0.0.1", strconv.Itoa(master.Port()))
	replica.AwaitCopy(master)
	demand(t, fitness(t, replica.Addr(), 0), "its role is slave")
	demand(t, fitness(t, master.Addr(), 1), "maxmemory-policy is volatile-lru")
	demand(t, fitness(t, master.Addr(), 2), "maxmemory-policy is volatile-lru", "has 1 of the 2 replicas")
}

func TestFitnessOfTheSlotsMasterIsAskedFor(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	for _, m := range c.Masters {
		if m != c.Owner("{svc}") {
			if answer, err := m.Ask("CONFIG SET maxmemory-policy allkeys-lru"); err != nil || answer != "+OK" {
				t.Fatal(answer, err)
			}
		}
	}
	cluster := lock.NewClient(redis.UniversalOptions{Addrs: c.Addrs()}, 2*time.Second)
	t.Cleanup(func() { _ = cluster.Close() })
	s, err := New(cluster, "svc", lock.Options{Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		problems, err := s.CheckServer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		demand(t, problems)
	}
}

func TestWhatRedisLeavesOutIsNotJudged(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	demand(t, fitness(t, mini.Addr(), 0))
}

func TestSnapshotsWithoutALogOfChangesForgetClaims(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		aof, saves, loaded string
		fits               bool
	}{
		{"0", "0", "0", true}, {"0", "", "", true}, {"1", "3", "20", true}, {"", "3", "20", true},
		{"0", "1", "0", false}, {"0", "0", "20", false},
	} {
		info := map[string]string{"aof_enabled": c.aof, "rdb_saves": c.saves, "rdb_last_load_keys_loaded": c.loaded}
		if got := len(unfit(info, 0)) == 0; got != c.fits {
			t.Errorf("%v: fits %v", c, got)
		}
	}
}

func TestServerThatDoesNotSayWhatItIsIsAnError(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--rename-command", "INFO", "''")
	c := lock.NewClient(redis.UniversalOptions{Addrs: []string{server.Addr()}}, 2*time.Second)
	t.Cleanup(func() { _ = c.Close() })
	s, err := New(c, "svc", lock.Options{Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := s.CheckServer(t.Context()); err == nil {
		t.Errorf("problems %q and no error", problems)
	}
}

func TestVersionsAreComparedByNumber(t *testing.T) {
	t.Parallel()
	for version, fits := range map[string]bool{
		"6.2.0": true, "6.2": true, "6.10.1": true, "7.0.15": true, "10.0.0": true, "7.2.4": true, "255.255.255": true, "unstable": true,
		"6.0.16": false, "5.0.7": false, "2.8.24": false,
	} {
		if got := len(unfit(map[string]string{"redis_version": version}, 0)) == 0; got != fits {
			t.Errorf("%s: fits %v", version, got)
		}
	}
}
