package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
	"unicode/utf8"

	"github.com/solotick/solotick/config"
)

// maxFirstLine bounds the line that FirstLine returns.
const maxFirstLine = 64 << 10

// FirstLine runs a command to its end, and returns the first line of its standard output. The command has that
// environment, no input, and until ctx ends: then it is killed with its process group. The line may be a secret:
// neither the log nor an error repeats anything that the command prints.
func FirstLine(ctx context.Context, args, env []string) (string, error) {
	e := New(config.Exec{Command: args}, Options{Env: env}).(*command)
	path, err := e.find()
	if err != nil {
		return "", fmt.Errorf("starting the command: %w", err)
	}
	out := &firstLine{}
	cmd := &exec.Cmd{Path: path, Args: args, Env: e.env, Stdout: out, WaitDelay: outputGrace,
		SysProcAttr: GroupLeader()}
	killed, err := Run(ctx, cmd, func() time.Duration { return 0 })
	if err != nil {
		return "", fmt.Errorf("starting the command: %w", e.explain(path, err))
	}
	res := exited(cmd.ProcessState)
	switch {
	case killed:
		return "", fmt.Errorf("the command was killed: %w", context.Cause(ctx))
	case res.Err != nil:
		return "", res.Err
	}
	return out.line()
}

// firstLine keeps the first line that is written to it.
type firstLine struct {
	text  []byte
	whole bool // its end has come
}

// Write never fails: a command that prints more than one line must not die of it.
func (f *firstLine) Write(p []byte) (int, error) {
	if !f.whole {
		line, _, ended := bytes.Cut(p, []byte("\n"))
		f.text = append(f.text, line[:min(len(line), maxFirstLine+1-len(f.text))]...)
		f.whole = ended
	}
	return len(p), nil
}

func (f *firstLine) line() (string, error) {
	text := bytes.TrimSuffix(f.text, []byte("\r"))
	switch {
	case len(text) > maxFirstLine:
		return "", fmt.Errorf("the first line that the command printed is longer than %d KiB", maxFirstLine>>10)
	case len(text) == 0:
		return "", errors.New("the command printed nothing on its first line")
	case bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }):
		return "", errors.New("the first line that the command printed is no text")
	}
	return string(text), nil
}
