package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/solotick/solotick/config"
)

// TestMain makes this test binary the program, too.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"solotick-import": main})
}

func TestTranscripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/transcripts",
		WorkdirRoot:         t.TempDir(), // it leaves a directory of its own behind if -run takes only some of the scripts
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_TRANSCRIPTS") != "", // then read the difference
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "valid": valid},
	})
}

// exits is `exits CODE COMMAND…`: the command ends with exactly that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	got := "0"
	err := ts.Exec(args[1], args[2:]...) // which also keeps the output for stdout and stderr
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = fmt.Sprint(exit.ExitCode())
	} else {
		ts.Check(err)
	}
	if neg || got != args[0] {
		ts.Fatalf("%v ended with exit code %s, want %s", args[1:], got, args[0])
	}
}

// valid is `valid SERVICE JOB…`: the output is a table with these jobs.
func valid(ts *testscript.TestScript, neg bool, args []string) {
	table, err := config.Parse("stdout", []byte(ts.ReadFile("stdout")), os.LookupEnv)
	ts.Check(err)
	got := []string{table.Service}
	for _, j := range table.Jobs {
		got = append(got, j.Name)
	}
	if neg || fmt.Sprint(got) != fmt.Sprint(args) {
		ts.Fatalf("the table has %v, want %v", got, args)
	}
}

// full is a disk that is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestAnOutputThatCannotBeWritten(t *testing.T) {
	table := filepath.Join(t.TempDir(), "table.yaml")
	if err := os.WriteFile(table, []byte("service: shop\njobs: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-"}, {"diff", "-", table}} {
		var said strings.Builder
		code := run(args, strings.NewReader("0 9 * * * run\n"), full{}, &said)
		const want = "error: the output could not be written: no space left on device\n"
		if code != exitCannot || !strings.HasSuffix(said.String(), want) {
			t.Errorf("%v: exit code %d and %q, want %d and %q", args, code, said.String(), exitCannot, want)
		}
	}
}

func TestTheDocumentedJSONIsWhatIsPrinted(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli-json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## solotick-import diff\n")
	shown := regexp.MustCompile("(?s)^\n`solotick-import (.*?)`\n\n```json\n(.*?)```").FindStringSubmatch(section)
	if shown == nil {
		t.Fatal("the page shows no command line with its output")
	}
	t.Chdir(t.TempDir())
	for name, schedule := range map[string]string{"table.yaml": "0 9 * * *", "new.yaml": "0 10,20 * * *"} {
		table := fmt.Sprintf("service: billing\njobs:\n  - {name: send-invoices, schedule: %q, timeZone: Europe/Berlin, "+
			"exec: {command: [\"true\"]}}\n", schedule)
		if err := os.WriteFile(name, []byte(table), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, said strings.Builder
	if code := run(strings.Fields(shown[1]), nil, &out, &said); code != exitProblem || said.Len() > 0 {
		t.Errorf("exit code %d: %s", code, said.String())
	}
	if out.String() != shown[2] {
		t.Errorf("it prints\n%s\nand the page shows\n%s", out.String(), shown[2])
	}
	for _, field := range regexp.MustCompile(`"(\w+)":`).FindAllStringSubmatch(out.String(), -1) {
		if !strings.Contains(section, "| `"+field[1]+"` |") {
			t.Errorf("the page has no row for %s", field[1])
		}
	}
}
