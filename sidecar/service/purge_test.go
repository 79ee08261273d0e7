package service_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

func TestAPurgeRemovesTheKeysOfItsServiceAlone(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		theirs := []string{"other", "solotick:{svc2}:job:a", "solotick:{sv}:job:a", "x:solotick:{svc}:job:a", "solotick:{svc}"}
		for _, key := range theirs {
			w.Must(w.Admin.Set(w.Context(), key, "1", 0).Err())
		}
		const many = 2500 // more than one step of the scan
		var timers []any
		for i := range many {
			timers = append(timers, fmt.Sprintf("solotick:{svc}:timer:%d", i), "{}")
		}
		w.Must(w.Admin.MSet(w.Context(), timers...).Err())
		if n, err := a.Service.CountKeys(w.Context()); err != nil || n != many {
			w.Errorf("%d keys, %v", n, err)
		}
		if n, err := a.Service.Purge(w.Context()); err != nil || n != many {
			w.Errorf("%d were removed, %v", n, err)
		}
		left := w.Admin.Keys(w.Context(), "*").Val()
		slices.Sort(left)
		slices.Sort(theirs)
		if !slices.Equal(left, theirs) {
			w.Errorf("left are %d keys: %.200s", len(left), strings.Join(left, " "))
		}
		if n, err := a.Service.Purge(w.Context()); err != nil || n != 0 {
			w.Errorf("once more: %d were removed, %v", n, err)
		}
	})
}

func TestAPurgeIsRefusedWhileAReplicaLives(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		a := w.Replica("a")
		op := &service.Operator{Store: a.Service, Limit: time.Second}
		w.Must(a.Service.Beat(w.Context(), service.Replica{Name: "app-1"}))
		w.Must(a.Service.Beat(w.Context(), service.Replica{Name: "app-2"}))
		var refused *service.Refusal
		if n, err := op.Purgeable(w.Context(), false); !errors.As(err, &refused) || refused.Kind != service.Alive ||
			!strings.Contains(refused.Message, "app-1, app-2") {
			w.Errorf("while they live: %d, %v", n, err)
		}
		if n, err := op.Purgeable(w.Context(), true); err != nil || n == 0 {
			w.Errorf("by force: %d, %v", n, err)
		}
		time.Sleep(service.HeartbeatTimeout + time.Second)
		if n, err := op.Purgeable(w.Context(), false); err != nil || n == 0 {
			w.Errorf("once they are silent: %d, %v", n, err)
		}
		w.Must(a.Service.Beat(w.Context(), service.Replica{Name: "app-1"}))
		w.Must(a.Service.Leave(w.Context(), "app-1"))
		if _, err := op.Purgeable(w.Context(), false); err != nil {
			w.Errorf("once it has left: %v", err)
		}
		if removed, left, err := op.Purge(w.Context()); err != nil || removed == 0 || left != 0 {
			w.Errorf("%d removed, %d left, %v", removed, left, err)
		}
	})
}

// purger is a client with a Store of the service svc.
func purger(t *testing.T, o redis.UniversalOptions) *service.Store {
	t.Helper()
	c := lock.NewClient(o, 2*time.Second)
	t.Cleanup(func() { _ = c.Close() })
	s, err := service.New(c, "svc", lock.Options{Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAPurgeScansTheMasterOfTheSlot(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	defer cluster.Close()
	for _, key := range []string{"solotick:{svc}:job:a", "solotick:{svc}:runs", "solotick:{other}:job:a"} {
		if err := cluster.Set(t.Context(), key, "1", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	s := purger(t, redis.UniversalOptions{Addrs: c.Addrs()})
	if n, err := s.Purge(t.Context()); err != nil || n != 2 {
		t.Errorf("%d were removed, %v", n, err)
	}
	if n, err := cluster.Exists(t.Context(), "solotick:{other}:job:a").Result(); err != nil || n != 1 {
		t.Errorf("the key of another service: %d, %v", n, err)
	}
	owner := c.Owner("{svc}")
	for _, m := range c.Masters {
		answer, err := m.Ask("INFO commandstats")
		if scans := strings.Contains(answer, "cmdstat_scan:"); err != nil || scans != (m == owner) {
			t.Errorf("%s was scanned: %v, %v", m.Addr(), scans, err)
		}
	}
}

// Redis' match is a pattern, and package config is not the only way to name a service.
func TestAPurgeTakesNoNameForAPattern(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	c := lock.NewClient(redis.UniversalOptions{Addrs: []string{mini.Addr()}}, 2*time.Second)
	defer c.Close()
	s, err := service.New(c, "s*c", lock.Options{Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"solotick:{svc}:runs", "solotick:{s*c}:runs"} {
		if err := mini.Set(key, "1"); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Purge(t.Context()); err != nil || n != 1 || !mini.Exists("solotick:{svc}:runs") {
		t.Errorf("%d were removed, %v", n, err)
	}
}

// A user who may do what a replica does needs two commands more.
func TestAPurgeNeedsScanAndUnlink(t *testing.T) {
	t.Parallel()
	const rights = "on >p ~solotick:{svc}:* -@all +ping +time +hgetall "
	users := map[string]bool{"+scan +unlink": true, "+scan": false, "+unlink": false}
	args := []string{}
	for add := range users {
		args = append(args, append([]string{"--user", "u" + strings.ReplaceAll(add, " ", "")}, strings.Fields(rights+add)...)...)
	}
	server := redistest.Start(t, args...)
	for add, enough := range users {
		admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer admin.Close()
		if err := admin.Set(context.Background(), "solotick:{svc}:runs", "1", 0).Err(); err != nil {
			t.Fatal(err)
		}
		s := purger(t, redis.UniversalOptions{Addrs: []string{server.Addr()}, Username: "u" + strings.ReplaceAll(add, " ", ""), Password: "p"})
		if n, err := s.Purge(t.Context()); (err == nil) != enough || enough != (n == 1) {
			t.Errorf("with %s: %d were removed, %v", add, n, err)
		}
	}
}
