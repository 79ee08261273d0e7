package rig

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Redis is a redis-server of one's own, without persistence if it is not started otherwise.
type Redis struct {
	*Process
	Port int

	dir  string
	args []string
}

// StartRedis starts a redis-server on a free port; dir takes its log and its working files.
func StartRedis(dir string, args ...string) (*Redis, error) {
	port, err := FreePort()
	if err != nil {
		return nil, fmt.Errorf("starting redis-server: %w", err)
	}
	r := &Redis{Port: port, dir: dir, args: args}
	if err := r.Restart(); err != nil {
		return nil, err
	}
	return r, nil
}

// Restart starts the server again on its port, with what it has written down, after it was killed.
func (r *Redis) Restart() error {
	argv := append([]string{"redis-server", "--port", strconv.Itoa(r.Port), "--bind", "127.0.0.1", "--dir", r.dir,
		"--save", "", "--appendonly", "no"}, r.args...)
	p, err := Launch("redis-server", filepath.Join(r.dir, fmt.Sprintf("redis-%d.log", r.Port)), nil, argv...)
	if err != nil {
		return err
	}
	r.Process = p
	if err := Until(time.Minute, "redis-server", func() bool {
		_, err := r.Ask("PING")
		return err == nil && !p.Ended()
	}); err != nil {
		_ = p.Stop(time.Second)
		return err
	}
	return nil
}

// Addr is host:port.
func (r *Redis) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port)) }

// URL names the first database.
func (r *Redis) URL() string { return "redis://" + r.Addr() + "/0" }

// Ask sends one inline command on a connection of its own and returns the lines of a simple or bulk answer.
func (r *Redis) Ask(command string) (string, error) {
	conn, err := net.DialTimeout("tcp", r.Addr(), 5*time.Second)
	if err != nil {
		return "", fmt.Errorf("asking Redis %q: %w", command, err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		return "", fmt.Errorf("asking Redis %q: %w", command, err)
	}
	in := bufio.NewReader(conn)
	head, err := in.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("asking Redis %q: %w", command, err)
	}
	head = strings.TrimRight(head, "\r\n")
	switch {
	case strings.HasPrefix(head, "+"), strings.HasPrefix(head, ":"):
		return head[1:], nil
	case strings.HasPrefix(head, "$"):
		n, err := strconv.Atoi(head[1:])
		if err != nil || n < 0 {
			return "", fmt.Errorf("asking Redis %q: unexpected answer %q", command, head)
		}
		body := make([]byte, n)
		for at := 0; at < n; {
			k, err := in.Read(body[at:])
			if err != nil {
				return "", fmt.Errorf("asking Redis %q: %w", command, err)
			}
			at += k
		}
		return string(body), nil
	}
	return "", fmt.Errorf("asking Redis %q: unexpected answer %q", command, head)
}

// Info reads the fields of one section of INFO.
func (r *Redis) Info(section string) (map[string]string, error) {
	text, err := r.Ask("INFO " + section)
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for _, line := range strings.Split(text, "\r\n") {
		if k, v, ok := strings.Cut(line, ":"); ok {
			fields[k] = v
		}
	}
	return fields, nil
}

// CommandStat is one line of INFO commandstats.
type CommandStat struct {
	Calls int64
	Usec  float64 // of Redis' time, all calls together
}

// CommandStats reads how often Redis ran each command so far, and how long that took. Commands that a script runs are
// counted beside the script, and their time is part of its time.
func (r *Redis) CommandStats() (map[string]CommandStat, error) {
	text, err := r.Ask("INFO commandstats")
	if err != nil {
		return nil, err
	}
	stats := map[string]CommandStat{}
	for _, line := range strings.Split(text, "\r\n") {
		// cmdstat_evalsha:calls=30,usec=1207,usec_per_call=40.23,rejected_calls=0,failed_calls=0
		name, fields, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		if !ok || !strings.HasPrefix(line, "cmdstat_") {
			continue
		}
		var s CommandStat
		for _, f := range strings.Split(fields, ",") {
			k, v, _ := strings.Cut(f, "=")
			switch k {
			case "calls":
				s.Calls, err = strconv.ParseInt(v, 10, 64)
			case "usec":
				s.Usec, err = strconv.ParseFloat(v, 64)
			}
			if err != nil {
				return nil, fmt.Errorf("reading INFO commandstats: %q: %w", line, err)
			}
		}
		stats[name] = s
	}
	return stats, nil
}
