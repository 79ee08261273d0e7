package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestTranscripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/transcripts",
		WorkdirRoot:         t.TempDir(), // it leaves a directory of its own behind if -run takes only some of the scripts
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_TRANSCRIPTS") != "", // then read the difference
		Setup: func(e *testscript.Env) error {
			// The transcripts must not depend on this process' environment.
			e.Vars = append(e.Vars, "SOLOTICK_CONFIG=", "SOLOTICK_REDIS_URL=", "SOLOTICK_REPLICA=", "POD_NAME=", "TZ=UTC",
				"XDG_RUNTIME_DIR="+os.DevNull, stillVariable+"=1")
			docs, err := filepath.Abs("../../docs")
			e.Vars = append(e.Vars, "DOCS="+docs)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "seeded-redis": seedCommand},
	})
}

// exits is `exits CODE COMMAND…`: the command ends with exactly that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...) // which also keeps the output for stdout and stderr
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("running %v: %v", args[1:], err)
	}
	if got != want {
		ts.Fatalf("%v ended with exit code %d, want %d", args[1:], got, want)
	}
}
