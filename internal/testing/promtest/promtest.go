// Package promtest runs a real Prometheus for a test: on a free loopback port, with its data in the test's directory,
// and gone when the test is over. It says nothing about other versions than the one that is installed.
package promtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/needs"
	"github.com/solotick/solotick/internal/testing/rig"
)

// Server is a Prometheus at work.
type Server struct {
	url string
}

// Start runs a Prometheus with this configuration until the end of the test. Files that it names are best named by
// absolute paths.
func Start(t testing.TB, config []byte) *Server {
	t.Helper()
	needs.Program(t, "prometheus")
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := rig.FreePort()
	if err != nil {
		t.Fatalf("starting prometheus: %v", err)
	}
	addr := "127.0.0.1:" + strconv.Itoa(port)
	p, err := rig.Launch("prometheus", filepath.Join(dir, "prometheus.log"), nil, "prometheus", "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if log, err := os.ReadFile(p.Log); t.Failed() && err == nil {
			t.Logf("prometheus:\n%s", log)
		}
	})
	s := &Server{url: "http://" + addr}
	if err := rig.Until(30*time.Second, "prometheus", func() bool {
		answer, err := http.Get(s.url + "/-/ready")
		if err != nil {
			return p.Ended()
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}); err != nil || p.Ended() {
		t.Fatalf("prometheus did not start: %v", err)
	}
	return s
}

// Tool runs promtool in the directory dir, and returns what it said. That it does not like what it was given is an
// error.
func Tool(t testing.TB, dir string, args ...string) (string, error) {
	t.Helper()
	needs.Program(t, "promtool")
	cmd := exec.Command("promtool", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Series is one series of an instant query.
type Series struct {
	Labels map[string]string
	Value  float64
}

// Query evaluates an expression that gives a vector or a scalar, now.
func (s *Server) Query(expr string) ([]Series, error) {
	var data struct {
		ResultType string
		Result     json.RawMessage
	}
	if err := s.Get("query?query="+url.QueryEscape(expr), &data); err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, err)
	}
	var vector []struct {
		Metric map[string]string
		Value  [2]any
	}
	if data.ResultType == "scalar" {
		vector = make([]struct {
			Metric map[string]string
			Value  [2]any
		}, 1)
		if err := json.Unmarshal(data.Result, &vector[0].Value); err != nil {
			return nil, fmt.Errorf("query %s: %w", expr, err)
		}
	} else if err := json.Unmarshal(data.Result, &vector); err != nil {
		return nil, fmt.Errorf("query %s gives a %s: %w", expr, data.ResultType, err)
	}
	all := make([]Series, len(vector))
	for i, v := range vector {
		value, err := strconv.ParseFloat(fmt.Sprint(v.Value[1]), 64)
		if err != nil {
			return nil, fmt.Errorf("query %s: %w", expr, err)
		}
		all[i] = Series{Labels: v.Metric, Value: value}
	}
	return all, nil
}

// Get asks the API: path is what follows /api/v1/, and into takes the answer's `data`.
func (s *Server) Get(path string, into any) error {
	answer, err := http.Get(s.url + "/api/v1/" + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var body struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return fmt.Errorf("%s: %w", answer.Status, err)
	}
	if body.Status != "success" {
		return fmt.Errorf("%s: %s", answer.Status, body.Error)
	}
	return json.Unmarshal(body.Data, into)
}
