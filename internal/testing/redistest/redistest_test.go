package redistest

import (
	"net"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask wants an answer.
func ask(t *testing.T, s *Server, command string) string {
	t.Helper()
	answer, err := s.Ask(command)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestServerAnswersAndForgetsWhenItCrashes(t *testing.T) {
	s := Start(t)
	if got := ask(t, s, "SET k v"); got != "+OK" {
		t.Fatalf("SET: %q", got)
	}
	s.Kill()
	if _, err := net.Dial("tcp", s.Addr()); err == nil {
		t.Fatal("a killed server accepted a connection")
	}
	s.Restart()
	if got := ask(t, s, "GET k"); got != "$-1" {
		t.Fatalf("GET after a crash without persistence: %q", got)
	}
}

func TestServerWithAppendOnlyFileRemembersOverACrash(t *testing.T) {
	s := Start(t, "--appendonly", "yes", "--appendfsync", "always")
	ask(t, s, "SET k v")
	pid := s.Pid()
	s.Restart()
	if got := ask(t, s, "EXISTS k"); got != ":1" {
		t.Fatalf("EXISTS after a crash with an append-only file: %q", got)
	}
	if s.Pid() == pid {
		t.Fatal("the process was not replaced")
	}
}

func TestOptionThatRedisRefusesIsReportedWithItsWords(t *testing.T) {
	s := newServer(t, "Ready to accept connections")
	s.args = []string{"--no-such-option", "1"}
	if err := s.launch(); err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Fatalf("launch: %v", err)
	}
}
