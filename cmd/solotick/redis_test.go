package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/embedded"
	"github.com/solotick/solotick/internal/testing/redistest"
)

// everySecond is a table with one job that tells what it finds in its environment; %s is the mapping under redis.
const everySecond = `
service: shop
redis: {timeout: 5s%s}
listen: "127.0.0.1:0"
admin: ""
jobs:
  - name: job
    schedule: "@every 1s"
    exec: {command: ["sh", "-c", "echo marker=$MARKER url=$SOLOTICK_REDIS_URL"]}
`

var unlogged = slog.New(slog.DiscardHandler)

// runsOnce starts a replica, waits for a run and stops it.
func runsOnce(t *testing.T, table string, env []string, args ...string) *replica {
	t.Helper()
	r := launch(t, table, env, args...)
	r.await("finished", "outcome", "succeeded")
	r.stop()
	return r
}

func TestARedisNamedByTheFlagIsUsed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	// The addresses in the table and in the variable do not exist.
	runsOnce(t, fmt.Sprintf(everySecond, ", url: redis://127.0.0.1:1/0"), []string{"SOLOTICK_REDIS_URL=redis://127.0.0.1:2/0"},
		"--redis", s.URL())
}

func TestARedisNamedByTheEnvironmentIsUsedAndNotToldToCommands(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--requirepass", "hunter2")
	url := fmt.Sprintf("redis://:hunter2@%s/3", s.Addr())
	r := runsOnce(t, fmt.Sprintf(everySecond, ""), []string{"SOLOTICK_REDIS_URL=" + url, "MARKER=mine"})
	r.await("marker=mine url=")

	c := redis.NewClient(&redis.Options{Addr: s.Addr(), Password: "hunter2", DB: 3})
	defer c.Close()
	if n, err := c.Exists(context.Background(), "solotick:{shop}:job:job").Result(); n != 1 || err != nil {
		t.Errorf("the job's ledger is not in database 3: %d, %v", n, err)
	}
}

func TestAPasswordFileAndAUserAreUsed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--user", "app", "on", ">hunter2", "~*", "&*", "+@all", "--user", "default", "off")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	runsOnce(t, fmt.Sprintf(everySecond, fmt.Sprintf(", url: %q, username: app, passwordFile: %q", s.URL(), file)), nil)
}

func TestAUnixSocketIsUsed(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "solotick-sock-") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	s := redistest.Start(t, "--unixsocket", socket)
	runsOnce(t, fmt.Sprintf(everySecond, fmt.Sprintf(`, url: "unix://%s?db=2"`, socket)), nil)

	c := redis.NewClient(&redis.Options{Addr: s.Addr(), DB: 2})
	defer c.Close()
	if n, err := c.Exists(context.Background(), "solotick:{shop}:job:job").Result(); n != 1 || err != nil {
		t.Errorf("the job's ledger is not in database 2: %d, %v", n, err)
	}
}

func TestTLSIsUsedWithACAAndAClientCertificateOfTheTable(t *testing.T) {
	t.Parallel()
	ca := redistest.NewCA(t)
	s := redistest.Start(t, ca.Server("redis.internal")...)
	clientCert, clientKey := ca.Issue("client")
	table := func(tls string) string {
		return fmt.Sprintf(everySecond, fmt.Sprintf(`, url: "rediss://%s/0", tls: {%s}`, s.TLSAddr(), tls))
	}
	whole := fmt.Sprintf("caFile: %q, certFile: %q, keyFile: %q, serverName: redis.internal", ca.File, clientCert, clientKey)
	runsOnce(t, table(whole), nil)

	for name, tls := range map[string]string{
		"without the CA":                 fmt.Sprintf("certFile: %q, keyFile: %q, serverName: redis.internal", clientCert, clientKey),
		"with another name":              fmt.Sprintf("caFile: %q, certFile: %q, keyFile: %q", ca.File, clientCert, clientKey),
		"without the client certificate": fmt.Sprintf("caFile: %q, serverName: redis.internal", ca.File),
	} {
		t.Run(name, func(t *testing.T) {
			r := launch(t, table(tls), nil)
			r.await("Redis and this process do not agree on TLS", "redis", s.TLSAddr())
			r.stop()
		})
	}
}

func TestTheMasterThatSentinelsNameIsUsed(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1, 1)
	if answer, err := s.Watch[0].Ask("ACL SETUSER default resetpass >hunter2"); err != nil || answer != "+OK" {
		t.Fatal(answer, err)
	}
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := fmt.Sprintf(", sentinel: {master: %s, addrs: [%q], passwordFile: %q}, waitReplicas: %%d", redistest.MasterName, s.Addrs()[0], file)
	runsOnce(t, fmt.Sprintf(everySecond, fmt.Sprintf(sentinel, 1)), nil)

	table := strings.NewReplacer("timeout: 5s", "timeout: 500ms", "schedule:", "lock: {ttl: 2s}\n    schedule:").Replace(everySecond)
	r := launch(t, fmt.Sprintf(table, fmt.Sprintf(sentinel, 2)), nil) // and it has one replica
	r.await("skipped", "reason", "redis_error")
	r.stop()
}

func TestAClusterIsUsed(t *testing.T) {
	t.Parallel()
	s := redistest.StartCluster(t, 3)
	const ledger = "solotick:{shop}:job:job"
	owner := s.Owner(ledger)
	other := s.Masters[0]
	if other == owner {
		other = s.Masters[1]
	}
	runsOnce(t, fmt.Sprintf(everySecond, fmt.Sprintf(", cluster: {addrs: [%q]}", other.Addr())), nil)
	if answer, err := owner.Ask("EXISTS " + ledger); err != nil || answer != ":1" {
		t.Errorf("the job's ledger: %s, %v", answer, err)
	}
}

func TestTLSIsForSentinelsAndTheMasterThatTheyName(t *testing.T) {
	t.Parallel()
	ca := redistest.NewCA(t)
	cert, key := ca.Issue("client")
	s := redistest.StartSentinel(t, 1, 1, ca.Server("127.0.0.1")...)
	table := fmt.Sprintf(everySecond, fmt.Sprintf(", sentinel: {master: %s, addrs: [%q]}, tls: {caFile: %q, certFile: %q, keyFile: %q}",
		redistest.MasterName, s.Watch[0].TLSAddr(), ca.File, cert, key))
	r := launch(t, table, nil)
	r.await("finished", "outcome", "succeeded")
	old := s.Servers[0]
	old.Kill()
	s.AwaitMaster(old)
	promoted := time.Now()
	r.awaitLine("a tick of the new master's time", func(l line) bool {
		tick, err := time.Parse(time.RFC3339, l.text("tick"))
		return err == nil && tick.After(promoted) && l.is("finished", "outcome", "succeeded")
	})
	r.stop()
}

func TestTLSIsForAllNodesOfACluster(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ certificate, tls string }{
		"by their addresses": {"127.0.0.1", ""},
		"by one name":        {"redis.internal", ", serverName: redis.internal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ca := redistest.NewCA(t)
			cert, key := ca.Issue("client")
			s := redistest.StartCluster(t, 3, ca.Server(c.certificate)...)
			owner := s.Owner("solotick:{shop}:job:job")
			other := s.Masters[0] // so that the owner is only known by what this one says
			if other == owner {
				other = s.Masters[1]
			}
			runsOnce(t, fmt.Sprintf(everySecond, fmt.Sprintf(", cluster: {addrs: [%q]}, tls: {caFile: %q, certFile: %q, keyFile: %q%s}",
				other.TLSAddr(), ca.File, cert, key, c.tls)), nil)
		})
	}
}

func TestWhatCannotBeConnectedToIsToldBeforeAnythingIsSent(t *testing.T) {
	sentinel := &config.Sentinel{Master: "m", Addrs: []string{"a:1"}, PasswordFile: "/no/such/file"}
	for name, connecting := range map[string]func() (redis.UniversalClient, error){
		"no replicas": func() (redis.UniversalClient, error) {
			return connect(t.Context(), config.Redis{WaitReplicas: 1}, config.Embedded, 0, unlogged)
		},
		"no password": func() (redis.UniversalClient, error) {
			return connect(t.Context(), config.Redis{Sentinel: sentinel}, "", 0, unlogged)
		},
		"no TLS": func() (redis.UniversalClient, error) {
			return connect(t.Context(), config.Redis{TLS: &config.TLS{}}, "redis://a:1", 0, unlogged)
		},
		"no CA's file": func() (redis.UniversalClient, error) {
			return connect(t.Context(), config.Redis{TLS: &config.TLS{CAFile: "/no"}}, "rediss://a:1", 0, unlogged)
		},
	} {
		var f *failure
		if client, err := connecting(); !errors.As(err, &f) || f.code != exitCannot {
			t.Errorf("%s: %v, %v", name, client, err)
		}
	}
}

func TestTheFlagTakesNoAddressThatTheTableRefuses(t *testing.T) {
	for _, address := range []string{
		"redis://", "redis:///0", "redis://:hunter2@", "redis://:hunter2@:6379/0", "rediss://:6379", "redis://u:hunter2:6379/0",
		"redis://h:99999", "redis://h:0", "redis://h/-1", "redis://h/hunter2", "redis://h/0/1", "redis://h:1/0#hunter2",
		"redis://h:1:2/0", "redis://::1/0", "redis://[::1/0", "h:6379", "hunter2", "Embedded", "/run/redis.sock",
		"unix://run/redis.sock", "unix:///", "unix:///run/redis.sock?db=-1", "unix:///run/redis.sock?password=hunter2",
	} {
		var f *failure
		client, err := connect(t.Context(), config.Redis{}, address, 0, unlogged)
		switch {
		case !errors.As(err, &f) || f.code != exitCannot:
			t.Errorf("%s: %v, %v", address, client, err)
		case !strings.Contains(f.Error(), "--redis") || f.hint == "" || strings.Contains(f.Error()+f.hint, "hunter2"):
			t.Errorf("%s: %v, hint %s", address, err, f.hint)
		}
	}
	for address, want := range map[string]string{
		config.Embedded:                        embedded.Find(embeddedAddrs...), // another program may use the first one
		"redis://h":                            "h:6379",
		"rediss://u:p%3Aw@h.example:6380/2":    "h.example:6380",
		"redis://[::1]/0":                      "[::1]:6379",
		"redis://[fe80::1%25eth0]:6380":        "[fe80::1%eth0]:6380",
		"unix:///run/redis.sock":               "/run/redis.sock",
		"unix://:hunter2@/run/redis.sock?db=2": "/run/redis.sock",
	} {
		client, err := connect(t.Context(), config.Redis{}, address, 0, unlogged)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		defer client.Close()
		if c, ok := client.(*redis.Client); !ok || c.Options().Addr != want {
			t.Errorf("%s: %v", address, client)
		}
	}
}

func TestTheFlagTakesThePlaceOfSentinelAndCluster(t *testing.T) {
	table := &config.Table{Redis: config.Redis{Cluster: &config.Cluster{Addrs: []string{"a:1"}}}}
	for flag, want := range map[string]string{"": "", "redis://b:1/2": "redis://b:1/2"} {
		if got, err := (&app{redis: flag}).redisURL(table); err != nil || got != want {
			t.Errorf("--redis %q: %q, %v", flag, got, err)
		}
	}
	client, err := connect(t.Context(), table.Redis, "redis://b:1/2", 0, unlogged)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if c, ok := client.(*redis.Client); !ok || c.Options().Addr != "b:1" || c.Options().DB != 2 {
		t.Errorf("%T", client)
	}
}
