package main

import (
	"bufio"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/proof/rig"
)

// trips counts what a tick costs in calls to Redis: at most one for each loser, one for the winner before the run and two
// after it. Scripts are counted, as MONITOR shows them and INFO commandstats adds them up. The once-a-second look at what
// runs and what is due sends none, and so is left out by itself.
func (b *bench) trips() ([]row, error) {
	const jobs, ticks = 5, 20
	names, err := scripts(b.root)
	if err != nil {
		return nil, err
	}
	redis, err := rig.StartRedis(b.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = redis.Stop(grace) }()
	app, err := rig.StartApp()
	if err != nil {
		return nil, err
	}
	defer app.Close()
	_, stop, err := b.solotick(redis, func(listen string) string {
		return table(jobs, "* * * * * *", listen, func(job string) string { return app.URL(job, take) })
	}, replicas)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stop() }()

	if err := b.sleep(half(4 * time.Second)); err != nil {
		return nil, err
	}
	before, err := redis.CommandStats()
	if err != nil {
		return nil, err
	}
	app.Forget()
	calls, err := monitor(redis.Addr(), names, ticks*time.Second)
	if err != nil {
		return nil, err
	}
	fires := float64(app.Count())
	after, err := redis.CommandStats()
	if err != nil {
		return nil, err
	}
	total := float64(after["evalsha"].Calls + after["eval"].Calls - before["evalsha"].Calls - before["eval"].Calls)
	if fires != jobs*ticks {
		return nil, fmt.Errorf("the app was called %g times for %d ticks", fires, jobs*ticks)
	}
	losers := (float64(calls["acquire"]+calls["claimed"]) - fires) / fires / (replicas - 1)
	exactly := func(what string, got, want float64, note string) row {
		return row{what: what, ours: fmt.Sprintf("%.2f", got), target: fmt.Sprintf("%g", want), missed: got != want, note: note}
	}
	return []row{
		{what: "calls per tick, loser", ours: fmt.Sprintf("%.2f", losers), target: "≤ 1", missed: losers > 1,
			note: "a look at all ledgers of the group, or acquire, less the winner's"},
		exactly("calls per tick, winner, after the run", float64(calls["settle"]+calls["release"]+calls["extend"])/fires, 2, "settle, release"),
		{what: "calls per tick, all", ours: fmt.Sprintf("%.2f", total/fires), target: fmt.Sprintf("≤ %d", replicas+2), missed: total/fires > replicas+2,
			note: fmt.Sprintf("INFO commandstats, %d ticks; MONITOR: %v", jobs*ticks, calls)},
	}, nil
}

// scripts are the names of the protocol's scripts by the hash that Redis knows them by.
func scripts(root string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(root, "lock", "*.lua"))
	if err != nil {
		return nil, fmt.Errorf("finding the scripts: %w", err)
	}
	names := map[string]string{}
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("reading the scripts: %w", err)
		}
		sum := sha1.Sum(source)
		names[hex.EncodeToString(sum[:])] = strings.TrimSuffix(filepath.Base(f), ".lua")
	}
	return names, nil
}

// monitor counts the scripts that Redis runs within d, by name.
func monitor(addr string, names map[string]string, d time.Duration) (map[string]int, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("watching Redis: %w", err)
	}
	defer conn.Close()
	end := time.Now().Add(d)
	_ = conn.SetReadDeadline(end)
	if _, err := fmt.Fprint(conn, "MONITOR\r\n"); err != nil {
		return nil, fmt.Errorf("watching Redis: %w", err)
	}
	calls := map[string]int{}
	for in := bufio.NewScanner(conn); in.Scan(); {
		// +1795212345.123456 [0 127.0.0.1:50000] "evalsha" "<sha>" "4" …
		f := strings.Fields(in.Text())
		if len(f) < 5 || strings.Trim(f[3], `"`) != "evalsha" {
			continue
		}
		name, ok := names[strings.Trim(f[4], `"`)]
		if !ok {
			name = "unknown"
		}
		calls[name]++
	}
	if time.Now().Before(end) {
		return nil, fmt.Errorf("watching Redis: the connection was closed")
	}
	return calls, nil
}
