package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOutputThatCannotBeWrittenIsNotWrongUsage(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	s, err := seed("0123456789ab")
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	table := file("table.yaml", `
service: billing
redis: {url: "redis://`+s.mini.Addr()+`/0"}
jobs:
  - {name: send-invoices, schedule: "@hourly", exec: {command: ["true"]}}
`)
	t.Setenv(configVariable, table)
	bad := file("bad.yaml", "service: billing\n")
	for _, line := range []string{
		"", "--help", "--version", "help run", "run --help", "timer", "version", "version -o json", "schema",
		"completion bash", "completion zsh", "completion fish", "completion powershell",
		"next", "next -o json", "validate", "validate -o json", "validate -o json -c " + bad,
		"status", "history", "timer list", "pause send-invoices --reason disk", "resume send-invoices",
		"trigger send-invoices", "timer set one --after 1h --url http://127.0.0.1/",
	} {
		var errOut bytes.Buffer
		code := commandLine(strings.Fields(line), full, &errOut)
		const want = "error: the output could not be written: write /dev/full: no space left on device\n"
		if code != exitCannot || !strings.HasSuffix(errOut.String(), want) || strings.Count(errOut.String(), "error: ") != 1 {
			t.Errorf("solotick %s: %d, %s", line, code, errOut.String())
		}
	}
}

func TestATerminalIsStillOneBehindTheOutlet(t *testing.T) {
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	if _, ok := terminal(&stickyWriter{Writer: screen}); !ok {
		t.Error("taken for none")
	}
}
