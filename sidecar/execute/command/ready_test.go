package command

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
)

// wantReady checks an answer: says is a part of why the app is not ready, "" when it is.
func wantReady(t *testing.T, err error, says string) {
	t.Helper()
	switch {
	case says == "" && err != nil:
		t.Errorf("not ready: %v", err)
	case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
		t.Errorf("error %v, want %q", err, says)
	case err != nil && (len(err.Error()) > 256 || strings.ContainsAny(err.Error(), "\n\r\x1b")):
		t.Errorf("unsafe for a log line: %q", err)
	}
}

func TestACommandSaysWhetherTheAppIsReady(t *testing.T) {
	for script, says := range map[string]string{
		"echo fine":                                  "",
		"exit 3":                                     "the command exited with code 3",
		"echo one >&2; echo two >&2; exit 1":         "the command exited with code 1: two",
		`printf 'a\033[2Jb'; exit 1`:                 "code 1: a␛[2Jb",
		"yes long | head -c 3000; exit 1":            "code 1: long",
		"yes ü | tr -d '\\n' | head -c 3001; exit 1": "code 1: ",
		"kill -9 $$":                                 "killed by SIGKILL",
		// A probe is no run, and what looks like one's environment is not somebody else's.
		`env | grep -c SOLOTICK; exit 1`: "code 1: 0",
	} {
		c := config.Ready{Exec: []string{"sh", "-c", script}, Timeout: patience}
		env := []string{"PATH=" + os.Getenv("PATH"), "SOLOTICK_RUN=7"}
		wantReady(t, NewReady(c, env).Probe(t.Context()), says)
	}
	c := config.Ready{Exec: []string{"no-such-program"}}
	wantReady(t, NewReady(c, nil).Probe(t.Context()), `starting the command: "no-such-program" is in no directory of PATH`)
}

func TestACommandThatDoesNotAnswerIsKilledWhole(t *testing.T) {
	l := newLifelines(t)
	c := config.Ready{Exec: []string{"sh", "-c", `ROLE=deaf NAME=child "$self" & ROLE=deaf NAME=main exec "$self"`}, Timeout: patience}
	r := NewReady(c, []string{"PATH=" + os.Getenv("PATH"), "LIFELINE=" + l.path, "self=" + os.Args[0], noRaceExit})
	ctx, cancel := context.WithCancelCause(t.Context())
	result := make(chan error)
	go func() { result <- r.Probe(ctx) }()
	var both []*lifeline
	for range 2 { // in any order
		l.listener.SetDeadline(time.Now().Add(patience))
		nc, err := l.listener.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		line := &lifeline{nc, bufio.NewReader(nc)}
		if _, err := line.r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		both = append(both, line)
	}
	ended, began := errors.New("the replica ends"), time.Now()
	cancel(ended)
	if err := <-result; !errors.Is(err, ended) {
		t.Errorf("error %v", err)
	}
	for _, line := range both {
		line.gone(t)
	}
	if took := time.Since(began); took >= defaultKillGrace {
		t.Errorf("it had a grace: %s", took)
	}
}

func TestACommandThatDoesNotAnswerInTimeIsNotReady(t *testing.T) {
	c := config.Ready{Exec: []string{"sleep", "1000"}, Timeout: 20 * time.Millisecond}
	wantReady(t, NewReady(c, []string{"PATH=" + os.Getenv("PATH")}).Probe(t.Context()), "no answer within 20ms")
}
