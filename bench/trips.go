package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/rds"
)

// trips counts what a tick costs in calls to Redis: at most one for each loser, one for the winner before the run and
// two after it. Scripts are counted, as MONITOR shows them and INFO commandstats adds them up. The once-a-second look
// at what runs and what is due sends none, and so is left out by itself.
func (b *bench) trips() (part, error) {
	const jobs = 5
	ticks := b.few(15)
	names, err := scripts(b.root)
	if err != nil {
		return part{}, err
	}
	w, err := b.open(solotick, setting{replicas: replicas, jobs: herd(jobs, 1)})
	if err != nil {
		return part{}, err
	}
	defer func() { _ = w.close() }()
	if err := b.sleep(half(3 * time.Second)); err != nil {
		return part{}, err
	}
	before, err := w.redis.CommandStats()
	if err != nil {
		return part{}, err
	}
	w.app.Forget()
	calls, err := monitor(w.redis.Addr(), names, time.Duration(ticks)*time.Second)
	if err != nil {
		return part{}, err
	}
	fires := float64(w.app.Count())
	after, err := w.redis.CommandStats()
	if err != nil {
		return part{}, err
	}
	if fires != float64(jobs*ticks) {
		return part{}, fmt.Errorf("the app was called %g times for %d ticks", fires, jobs*ticks)
	}
	total := float64(after["evalsha"].Calls + after["eval"].Calls - before["evalsha"].Calls - before["eval"].Calls)
	atMost := func(what string, got, limit float64, note string) row {
		return row{What: what, Ours: one(got), Targets: []target{oursAtMost(limit)}, Note: note}
	}
	return part{Rows: []row{
		atMost("calls per tick, loser", (float64(calls["acquire"])-fires)/fires/(replicas-1), 1,
			"acquire, less the winner's: most losers hear of the claim"),
		atMost("calls per tick, winner, after the run",
			float64(calls["settle"]+calls["release"]+calls["extend"])/fires, 2, "settle, release"),
		atMost("calls per tick, all replicas", total/fires, replicas+2,
			fmt.Sprintf("%d jobs, %d replicas, %d ticks", jobs, replicas, jobs*ticks)),
	}}, nil
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
		names[rds.NewScript(string(source), rds.Unconfirmed).SHA] = strings.TrimSuffix(filepath.Base(f), ".lua")
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
