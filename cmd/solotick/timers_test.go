package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/sidecar/service"
)

// TestAnImportGoesOnToTheEndUnlessRedisIsOfNoUse: the counts tell how far it came.
func TestAnImportGoesOnToTheEndUnlessRedisIsOfNoUse(t *testing.T) {
	s, err := seed("")
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	store := s.at("07:20:00")
	s.must(store.Sync(t.Context()))
	table, err := config.NoTable("billing")
	s.must(err)
	if s.err != nil {
		t.Fatal(s.err)
	}
	op := &operator{Operator: &service.Operator{Store: store, Table: func() *config.Table { return table }, Limit: operateLimit}}
	const keys = `"after": "1h", "http": {"url": "http://127.0.0.1:8080/", "body": "%s"}}` + "\n"
	line := func(i int, body string) string { return fmt.Sprintf(`{"id": "t%d", `+keys, i, body) }
	var many strings.Builder
	for i := range 2*service.MaxTimerBatch + 1 {
		many.WriteString(line(i, ""))
	}
	many.WriteString("no\n" + line(1, "new"))
	large := line(0, strings.Repeat("x", config.MaxSource-1000))
	for i, c := range []struct {
		in                   string
		counts, errors, says string
		code                 int
	}{
		{many.String(), "2001 set, 1 replaced, 0 unchanged, 1 refused", ":2002: it is no JSON object with an id\n", "not all timers of", exitProblem},
		{large[:len(large)-1], "0 set, 1 replaced, 0 unchanged, 0 refused", "", "", 0},
		{"", "0 set, 0 replaced, 0 unchanged, 0 refused", "", "", 0},
		{line(7, "other") + strings.Repeat("x", config.MaxSource+1025), "0 set, 1 replaced, 0 unchanged, 0 refused", "", ":2: bufio.Scanner: token too long", exitCannot},
		// There is no room, and the rest of the file is not tried.
		{strings.Repeat(line(9, "newest"), 3*service.MaxTimerBatch), "0 set, 0 replaced, 0 unchanged, 1000 refused", ":1000: setting timer \"t9\": there are too many", "too many", exitCannot},
	} {
		if c.says == "too many" {
			s.mini.HSet("solotick:{billing}:job:@timers", "bytes", fmt.Sprint(service.MaxTimerSources))
		}
		file := filepath.Join(t.TempDir(), "timers.jsonl")
		if err := os.WriteFile(file, []byte(c.in), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs strings.Builder
		err := (&app{out: &out, err: &errs}).importTimers(t.Context(), op, file)
		f := &failure{}
		errors.As(err, &f)
		if out.String() != c.counts+"\n" || !strings.Contains(errs.String(), c.errors) || c.errors == "" && errs.Len() > 0 ||
			f.code != c.code || !strings.Contains(f.Error(), c.says) {
			t.Errorf("%d: %.200q %.200q %d %v\nwant %q %q %d", i, &out, &errs, f.code, err, c.counts, c.errors, c.code)
		}
	}
	for file, words := range map[string]string{"nowhere": "no such file", t.TempDir(): "is a directory"} {
		var f *failure
		if err := (&app{out: io.Discard, err: io.Discard}).importTimers(t.Context(), op, file); !errors.As(err, &f) || f.code != exitCannot || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestAnExportNeedsTheRightToScan, which docs/redis.md does not give to replicas.
func TestAnExportNeedsTheRightToScan(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, aclUser(t, "")...)
	export := func() (code int, said string) {
		var out, errs strings.Builder
		url := fmt.Sprintf("redis://solotick:canary@%s/0", server.Addr())
		code = commandLine([]string{"timer", "export", "--service", "billing", "--redis", url}, &out, &errs)
		return code, errs.String()
	}
	if code, said := export(); code != exitCannot || !strings.Contains(said, "'scan'") {
		t.Errorf("without it: exit %d\n%s", code, said)
	}
	if answer, err := server.Ask("ACL SETUSER solotick +scan"); err != nil || answer != "+OK" {
		t.Fatal(answer, err)
	}
	if code, said := export(); code != 0 {
		t.Errorf("with it: exit %d\n%s", code, said)
	}
}
