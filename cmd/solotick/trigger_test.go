package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

func TestATriggerBringsTheDataOfItsFlag(t *testing.T) {
	mini := miniredis.RunT(t)
	rdb := lock.NewClient(redis.UniversalOptions{Addrs: []string{mini.Addr()}}, 10*time.Second)
	defer rdb.Close()
	s, err := service.New(rdb, "billing", lock.Options{Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	table := write("table.yaml", `service: billing
jobs:
  - {name: takes, schedule: "@daily", exec: {command: ["true"]}, trigger: {data: true}}
  - {name: plain, schedule: "@daily", exec: {command: ["true"]}}
`)
	for _, job := range []string{"takes", "plain"} {
		if _, err := s.Locks.Register(t.Context(), job, ""); err != nil {
			t.Fatal(err)
		}
	}
	file := write("data.json", "{\"from\": \"a file\"}\n")
	for _, c := range []struct {
		args string
		code int
		said string // by the error; without one, these are the data
	}{
		{"takes|--data|{\"a\": 1}", 0, `{"a": 1}`},
		{"takes|--data|@" + file, 0, `{"from": "a file"}`},
		{"takes", 0, ""},
		{"plain|--data|{}", exitUsage, `job "plain" takes no data`},
		{"takes|--data|", exitUsage, "--data is not valid JSON in UTF-8"},
		{"takes|--data|s3cret", exitUsage, "--data is not valid JSON in UTF-8"},
		{"takes|--data|@" + filepath.Join(dir, "none"), exitCannot, "none"},
		{"takes|--data|@" + write("large", strings.Repeat(" ", 64<<10)+"1"), exitProblem, "larger than 64 KiB"},
	} {
		mini.Del(`solotick:{billing}:due`)
		var out, errOut bytes.Buffer
		args := append([]string{"trigger", "-c", table, "--redis", "redis://" + mini.Addr() + "/0"}, strings.Split(c.args, "|")...)
		if code := commandLine(args, &out, &errOut); code != c.code || code != 0 && !strings.Contains(errOut.String(), c.said) {
			t.Errorf("%s: exit code %d, %s", c.args, code, errOut.String())
		}
		if strings.Contains(out.String()+errOut.String(), "s3cret") {
			t.Errorf("%s shows the data: %s", c.args, errOut.String())
		}
		seen, err := s.Look(t.Context(), 10)
		if err != nil || (len(seen.Due) == 1) != (c.code == 0) {
			t.Fatalf("%s: due is %+v, %v", c.args, seen.Due, err)
		}
		if c.code != 0 {
			continue
		}
		if id := seen.Due[0].Data; id == "" {
			if c.said != "" {
				t.Errorf("%s: due without data", c.args)
			}
		} else if data, err := s.Data(t.Context(), id); string(data) != c.said || err != nil {
			t.Errorf("%s: the data are %q, %v, want %q", c.args, data, err, c.said)
		}
	}
}
