package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

const (
	boundJobs = 100     // of the table
	forKernel = 8 << 10 // kB of the container's memory that the buffers of 64 connections, and what else the kernel keeps, may take
)

// bounds fills what a service keeps in Redis up to the bounds of SECURITY.md.
type bounds struct {
	*testing.T
	rdb *redis.Client
	app string // where jobs lead
}

func (b *bounds) write(n int, command func(i int) []any) {
	b.Helper()
	for i := 0; i < n; {
		pipe := b.rdb.Pipeline()
		for range min(500, n-i) {
			pipe.Do(b.Context(), command(i)...)
			i++
		}
		if _, err := pipe.Exec(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

const boundKeys = "solotick:{shop}:"

func boundJob(i int) string { return fmt.Sprint("job", i%boundJobs) }

// longestEntry is the entry of a run with the longest detail, whose answer has six times the size.
func longestEntry(i int) string {
	return fmt.Sprintf(`{"job":%q,"run":"%s","replica":"shop-6d5f7c9b8-abcde","kind":"schedule","attempt":1,"outcome":"failed","detail":%q,`+
		`"failed":true,"tick":%d,"ended":%[4]d,"ms":120}`, boundJob(i), uuid.NewString(), strings.Repeat("<", 512), 1764000000000+i)
}

func (b *bounds) history() {
	for stream, entries := range map[string]int{"history:": 10_000, "failures:": 2500} {
		b.write(entries, func(i int) []any { return []any{"xadd", boundKeys + stream + boundJob(i), "*", "run", longestEntry(i)} })
	}
	for _, field := range []string{"done", "scheduled", "lastMissed"} {
		b.write(boundJobs, func(i int) []any { return []any{"hset", boundKeys + "job:" + boundJob(i), field, longestEntry(i)} })
	}
}

func (b *bounds) replicas() {
	now := time.Now().UnixMilli()
	b.write(service.MaxReplicas-1, func(i int) []any {
		beat := fmt.Sprintf(`{"seen":%d,"version":"v0.1.0","table":"0123456789ab","ready":"`, now)
		return []any{"hset", boundKeys + "replicas", fmt.Sprint("shop-", i), beat + strings.Repeat("x", 1<<20/service.MaxReplicas-len(beat)-2) + `"}`}
	})
	b.write(service.MaxReplicas-1, func(i int) []any {
		var skips []string
		for n := range boundJobs {
			skips = append(skips, fmt.Sprintf(`%q:{"tick":1764000000000,"reason":"not_ready","at":1764000000123}`, boundJob(n)))
		}
		return []any{"hset", boundKeys + "reports", fmt.Sprint("shop-", i), `{"skips":{` + strings.Join(skips, ",") + `}}`}
	})
}

func (b *bounds) due() {
	client := lock.NewClient(redis.UniversalOptions{Addrs: []string{b.rdb.Options().Addr}}, patience)
	defer client.Close()
	s, err := service.New(client, "shop", lock.Options{Timeout: patience})
	for i := 0; i < boundJobs && err == nil; i++ {
		_, err = s.Locks.Register(b.Context(), boundJob(i), "")
	}
	for i := 0; i < 1000 && err == nil; i++ {
		_, err = s.Trigger(b.Context(), boundJob(i), uuid.NewString())
	}
	for i := 0; i < 4 && err == nil; i++ {
		var ticks []time.Time
		for n := range service.MaxBackfill {
			ticks = append(ticks, time.UnixMilli(1764000000000).Add(time.Duration(n)*time.Minute))
		}
		_, err = s.Backfill(b.Context(), boundJob(i), ticks, uuid.NewString(), false)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// A single reader of a full history took a replica to 86 MiB, and one of 3,000 replicas that report skips to 183 MiB.
func TestAReplicaAtItsBoundsStaysWithinTheManifestsMemory(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}, boundJobs), make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case begun <- struct{}{}:
		default:
		}
		<-end
	}))
	defer app.Close()
	defer close(end)
	s := redistest.Start(t)
	b := &bounds{T: t, app: app.URL, rdb: redis.NewClient(&redis.Options{Addr: s.Addr(), ReadTimeout: patience, WriteTimeout: patience})}
	defer b.rdb.Close()
	b.history()
	b.replicas()
	b.due()
	var table strings.Builder
	fmt.Fprintf(&table, "service: shop\nredis: {url: %q, timeout: 5s}\nlisten: \"127.0.0.1:0\"\nadmin: \"127.0.0.1:0\"\njobs:\n", s.URL())
	for i := range boundJobs {
		fmt.Fprintf(&table, "  - {name: %s, schedule: \"0 3 1 1 *\", timeout: 1h, http: {url: %q}}\n", boundJob(i), app.URL)
	}
	path := filepath.Join(t.TempDir(), "table.yaml")
	if err := os.WriteFile(path, []byte(table.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(release(t, runtime.GOARCH), "run", "-c", path, "--log-format", "json")
	cmd.Env = bareEnv("GOMEMLIMIT=48MiB") // as the manifest's limit sets it
	r := start(t, cmd)
	for range boundJobs {
		select {
		case <-begun:
		case <-time.After(patience):
			t.Fatal("a run has not begun")
		}
	}
	api, health := r.await("serving "+servesAdmin).text("addr"), r.await("serving "+servesHealth).text("addr")
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(addr, path string) (code int, text string) {
		a, err := client.Get("http://" + addr + path)
		if err != nil {
			return 0, err.Error()
		}
		defer a.Body.Close()
		all, _ := io.ReadAll(a.Body)
		return a.StatusCode, string(all)
	}
	reads := []string{"/v1/status", "/v1/runs?each=1000", "/v1/runs?limit=1000", "/v1/replicas", "/v1/jobs/job1/ticks/now", "/v1/events?limit=1000"}
	for _, path := range reads {
		if code, text := get(api, path); code != http.StatusOK || len(text) > 5<<20 {
			t.Errorf("%s: %d, %d bytes: %.100s", path, code, len(text), text)
		}
	}
	var answered atomic.Int32
	var readers sync.WaitGroup
	for i := range 64 { // as many as there are connections
		readers.Go(func() {
			if code, _ := get(api, reads[i%len(reads)]); code == http.StatusOK {
				answered.Add(1)
			}
		})
		readers.Go(func() {
			if code, _ := get(health, "/metrics"); code == http.StatusOK {
				answered.Add(1)
			}
		})
	}
	readers.Wait()
	for addr, path := range map[string]string{api: "/v1/status", health: "/metrics"} { // with a reader that does not go on
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, addr)
		if _, err := io.ReadFull(conn, make([]byte, len("HTTP/1.1 200 OK"))); err != nil {
			t.Error(err)
		}
	}
	pid := r.cmd.Process.Pid
	all, program := statusKB(t, pid, "VmHWM:"), statusKB(t, pid, "RssFile:")
	if all-program > manifestMemory-forKernel { // the kernel takes the pages of the program back
		t.Errorf("the replica took %d kB, %d of them the program's: the manifest allows %d", all, program, manifestMemory)
	}
	t.Logf("%d kB, %d of them the program's; %d of 128 answers", all, program, answered.Load())
	select {
	case <-r.done:
		t.Error("the replica has ended")
	default:
	}
}
