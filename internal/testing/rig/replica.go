package rig

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Replica is one `solotick run`.
type Replica struct {
	*Process
	Listen string // address of metrics and health
}

// ReplicaOptions say what is run.
type ReplicaOptions struct {
	Binary string
	Name   string
	Redis  string        // URL; "" = the table names it
	Dir    string        // takes table and log
	Skew   time.Duration // of the wall clock; other than 0 it takes a binary by BuildSkewed
	Level  string        // of the log; "" = info
	Log    string        // name of the log's file in Dir; "" = Name.log
	Under  []string      // command line that the replica is started by, as ip netns exec
	Host   string        // IP address for metrics and health; "" = 127.0.0.1
	State  string        // its state directory, in which restarts are noticed; "" = they are not
}

// StartReplica starts one. The table is handed in as a function of the address to listen on, which each replica needs
// for itself on one machine.
func StartReplica(o ReplicaOptions, table func(listen string) string) (*Replica, error) {
	port, err := FreePort()
	if err != nil {
		return nil, fmt.Errorf("starting replica %s: %w", o.Name, err)
	}
	listen := net.JoinHostPort(cmp.Or(o.Host, "127.0.0.1"), strconv.Itoa(port))
	path, text := filepath.Join(o.Dir, o.Name+".yaml"), table(listen)
	if !strings.Contains(text, "admin:") {
		return nil, fmt.Errorf("starting replica %s: its table has no admin, "+
			"and there is one default address on the machine", o.Name)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("starting replica %s: %w", o.Name, err)
	}
	var env []string
	if o.Skew != 0 {
		env = append(env, SkewVariable+"="+o.Skew.String())
	}
	argv := append(slices.Clone(o.Under), o.Binary, "run", "-c", path, "--replica", o.Name, "--log-format", "json",
		"--log-level", cmp.Or(o.Level, "info"))
	if o.State != "" {
		argv = append(argv, "--state-dir", o.State)
	}
	if o.Redis != "" {
		argv = append(argv, "--redis", o.Redis)
	}
	p, err := Launch(o.Name, filepath.Join(o.Dir, cmp.Or(o.Log, o.Name+".log")), env, argv...)
	if err != nil {
		return nil, err
	}
	return &Replica{Process: p, Listen: listen}, nil
}

// Ready waits until the replica says that it is.
func (r *Replica) Ready(limit time.Duration) error {
	err := Until(limit, r.Name+" to be ready", func() bool {
		answer, err := http.Get("http://" + r.Listen + "/readyz")
		if err != nil {
			return r.Ended()
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	if err == nil && r.Ended() {
		err = fmt.Errorf("%s ended at once, see %s", r.Name, r.Log)
	}
	return err
}

// ClockError is by how much the clock that stands in the replica's first log line was ahead of this process' clock, to
// within the time that the start took.
func (r *Replica) ClockError(started time.Time) (time.Duration, error) {
	f, err := os.Open(r.Log)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadBytes('\n')
	if err != nil {
		return 0, fmt.Errorf("reading the first line of %s: %w", r.Log, err)
	}
	var first struct{ Time time.Time }
	if err := json.Unmarshal(line, &first); err != nil {
		return 0, fmt.Errorf("reading the first line of %s: %w", r.Log, err)
	}
	if first.Time.IsZero() {
		return 0, errors.New("the first line of " + r.Log + " has no time")
	}
	return first.Time.Sub(started), nil
}

// Sample is one line of an exposition.
type Sample struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// Metrics scrapes the replica.
func (r *Replica) Metrics() ([]Sample, error) {
	answer, err := http.Get("http://" + r.Listen + "/metrics")
	if err != nil {
		return nil, fmt.Errorf("scraping %s: %w", r.Name, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("scraping %s: %s", r.Name, answer.Status)
	}
	var all []Sample
	in := bufio.NewScanner(answer.Body)
	for in.Scan() {
		if line := in.Text(); line != "" && line[0] != '#' {
			s, err := parseSample(line)
			if err != nil {
				return nil, fmt.Errorf("scraping %s: %w", r.Name, err)
			}
			all = append(all, s)
		}
	}
	return all, in.Err()
}

// parseSample reads name{label="value",…} value. Values with quotes or commas in them are not what this needs to read.
func parseSample(line string) (Sample, error) {
	at := strings.LastIndexByte(line, ' ')
	if at < 0 {
		return Sample{}, fmt.Errorf("line %q has no value", line)
	}
	v, err := strconv.ParseFloat(line[at+1:], 64)
	if err != nil {
		return Sample{}, fmt.Errorf("line %q: %w", line, err)
	}
	name, labels, _ := strings.Cut(strings.TrimSuffix(line[:at], "}"), "{")
	s := Sample{Name: name, Value: v, Labels: map[string]string{}}
	for _, l := range strings.Split(labels, ",") {
		if k, v, ok := strings.Cut(l, "="); ok {
			s.Labels[k] = strings.Trim(v, `"`)
		}
	}
	return s, nil
}
