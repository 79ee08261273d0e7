//go:build linux

package docs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
)

// patience is how long something that must come is waited for.
const patience = time.Minute

// table is what the commands of a page find as table.yaml, unless the page brings its own. The pages show a service in
// which no tick comes due, so near one of these hours the replicas have others (hours).
const table = `service: billing
redis: {url: "redis://127.0.0.1:6379/0"}
listen: "${LISTEN:-:9747}"
admin: "${ADMIN:-127.0.0.1:9748}"
ready: {url: "http://127.0.0.1:8080/readyz", interval: 200ms}
jobs:
  - name: send-invoices
    schedule: "0 ${MORNING:-9} * * MON-FRI"
    timeZone: Europe/Berlin
    http: {url: "http://127.0.0.1:8080/jobs/send-invoices"}
  - name: tidy-up
    schedule: "0 ${NIGHT:-3} * * *"
    http: {url: "http://127.0.0.1:8080/jobs/tidy-up"}
`

// longJob is a job that a page can add to the table. Its app accepts the run, and never reports.
const longJob = `  - name: rebuild-reports
    schedule: "0 3 1 * *"
    lock: {ttl: 4s}
    http: {url: "http://127.0.0.1:8080` + silent + `", async: {heartbeat: 1s}}
`

const silent = "/jobs/rebuild-reports"

// A world is a machine on which a page's commands work: Redis, an app, two replicas, and a directory with the files of
// the page. Redis and the app are there for all pages, the replicas and the directory for one.
type world struct {
	t     *testing.T
	bin   string // the directory with solotick
	root  string // of the repository
	redis *process
	data  string // where Redis saves
	app   *app
	hours []string // the environment of replicas, the same for all

	dir      string
	env      []string
	replicas []*process
	started  bool // the page's replicas, if it wants any
}

// app is the service that the jobs call.
type app struct {
	server  *http.Server
	unready atomic.Bool
	fails   atomic.Bool
	slow    atomic.Bool
	calls   atomic.Int64
}

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/readyz" && a.unready.Load():
		http.Error(w, "migrating the database", http.StatusServiceUnavailable)
	case r.URL.Path == "/readyz":
		fmt.Fprintln(w, "ok")
	case r.URL.Path == silent:
		w.WriteHeader(http.StatusAccepted)
	case a.fails.Load():
		http.Error(w, "authentication failed for user billing", http.StatusInternalServerError)
	default:
		a.calls.Add(1)
		if a.slow.Load() {
			<-r.Context().Done()
			return
		}
		fmt.Fprintln(w, "done")
	}
}

func (a *app) up() error {
	l, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		return err
	}
	a.server = &http.Server{Handler: a, ReadHeaderTimeout: patience}
	go func() { _ = a.server.Serve(l) }()
	return nil
}

func (a *app) down() error { return a.server.Close() }

// hours are variables by which no tick of the table comes due within an hour: none, if none does anyway.
func hours(t *testing.T) []string {
	t.Helper()
	parsed, err := config.Parse("table.yaml", []byte(table), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range parsed.Jobs {
		if now := time.Now(); j.Schedule.Next(now.Add(-time.Minute)).Before(now.Add(time.Hour)) {
			return []string{"MORNING=11", "NIGHT=5"}
		}
	}
	return nil
}

func newWorld(t *testing.T, bin, root string) *world {
	t.Helper()
	w := &world{t: t, bin: bin, root: root, app: &app{}, hours: hours(t)}
	if err := w.app.up(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.app.down() })
	w.startRedis()
	t.Cleanup(func() { w.redis.kill() })
	return w
}

func (w *world) startRedis() {
	w.t.Helper()
	if w.data == "" {
		w.data = w.t.TempDir()
	}
	redis, err := start(w.data, nil, "redis-server", "--port", "6379", "--bind", "127.0.0.1", "--save", "", "--maxmemory-policy", "noeviction")
	if err != nil {
		w.t.Fatal(err)
	}
	if !redis.says("Ready to accept connections") {
		w.t.Fatalf("redis-server:\n%s", redis.said())
	}
	w.redis = redis
}

// open makes the world of one page.
func (w *world) open(t *testing.T) {
	t.Helper()
	w.t, w.dir, w.started, w.replicas = t, t.TempDir(), false, nil
	w.env = append(os.Environ(), "PATH="+w.dir+"/.bin:"+w.bin+":"+os.Getenv("PATH"), "SOLOTICK_CONFIG=table.yaml", "NO_COLOR=1", "HOME="+w.dir,
		"XDG_RUNTIME_DIR="+w.dir+"/.run") // where replicas leave files
	w.write("table.yaml", table)
	// Stand-ins for what no test machine has. They print what the page says that they print.
	w.write(".bin/crontab", "#!/bin/sh\nexec cat crontab\n")
	w.write(".bin/kubectl", "#!/bin/sh\nexec cat cronjobs.yaml\n")
	w.write("crontab", "# tidy up\n0 3 * * * /usr/local/bin/tidy --older-than 30d\n")
	w.write("cronjobs.yaml", cronJobs)
	for _, name := range []string{"examples", "docs"} {
		if err := os.Symlink(filepath.Join(w.root, name), filepath.Join(w.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

const cronJobs = `apiVersion: batch/v1
kind: CronJob
metadata: {name: tidy-up}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
            - {name: tidy, image: tidy, command: [/usr/local/bin/tidy, --older-than, 30d]}
`

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		w.t.Fatal(err)
	}
}

// run starts the page's replicas if they do not run yet.
func (w *world) run() {
	w.t.Helper()
	if w.started {
		return
	}
	w.started = true
	for i, name := range []string{"billing-1", "billing-2"} {
		env := append(slices.Concat(w.env, w.hours), fmt.Sprintf("LISTEN=127.0.0.1:%d", 9747+10*i), fmt.Sprintf("ADMIN=127.0.0.1:%d", 9748+10*i))
		r, err := start(w.dir, env, filepath.Join(w.bin, "solotick"), "run", "--replica", name)
		if err != nil {
			w.t.Fatal(err)
		}
		w.replicas = append(w.replicas, r)
	}
	for _, r := range w.replicas {
		if !r.says("the app is ready") {
			w.t.Fatalf("a replica:\n%s", r.said())
		}
	}
	w.await("the heartbeats of both replicas", func() bool { return strings.Contains(w.ask("status", "--check"), "2/2 replicas ready") })
}

// ask is the output of a verb.
func (w *world) ask(args ...string) string {
	cmd := exec.Command(filepath.Join(w.bin, "solotick"), args...)
	cmd.Dir, cmd.Env = w.dir, w.env
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// await waits for what must come.
func (w *world) await(what string, so func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("%s did not come", what)
		}
	}
}

// close ends the replicas of a page, and forgets what they left in Redis.
func (w *world) close() {
	w.end()
	w.app.unready.Store(false)
	w.app.fails.Store(false)
	w.app.slow.Store(false)
	if out, err := exec.Command("redis-cli", "FLUSHALL").CombinedOutput(); err != nil {
		w.t.Errorf("redis-cli FLUSHALL: %v: %s", err, out)
	}
}

// end ends the replicas of a page.
func (w *world) end() {
	for _, r := range w.replicas {
		if err := r.interrupt(); err != nil {
			w.t.Errorf("%v\n%s", err, r.said())
		}
	}
	w.replicas = nil
}

// states are what a page can ask for with `<!-- given STATE -->`.
var states = map[string]func(w *world){
	"no replica":    func(w *world) { w.started = true }, // the page starts its own
	"a replica":     func(w *world) { w.run() },
	"app fails":     func(w *world) { w.run(); w.app.fails.Store(true) },
	"app works":     func(w *world) { w.run(); w.app.fails.Store(false); w.app.unready.Store(false); w.app.slow.Store(false) },
	"app hangs":     func(w *world) { w.run(); w.app.slow.Store(true) },
	"app not ready": func(w *world) { w.run(); w.app.unready.Store(true); w.awaitStatus("0/2 replicas ready") },
	"app ready":     func(w *world) { w.app.unready.Store(false) },
	"all ready": func(w *world) {
		all := fmt.Sprintf("%d/%[1]d replicas ready", len(w.replicas))
		w.await("a heartbeat of each replica", func() bool { return strings.Contains(w.ask("status"), all) })
	},
	"four runs": func(w *world) {
		w.await("four runs on their ticks", func() bool { return len(onTick.FindAllString(w.ask("history", "-n", "4"), -1)) == 4 })
	},
	"a live run": func(w *world) {
		w.run()
		before := w.app.calls.Load()
		w.app.slow.Store(true)
		w.ask("trigger", "send-invoices")
		w.await("the call of the app", func() bool { return w.app.calls.Load() > before })
	},
	"Redis down": func(w *world) {
		w.run()
		if out, err := exec.Command("redis-cli", "SAVE").CombinedOutput(); err != nil {
			w.t.Fatalf("redis-cli SAVE: %v: %s", err, out)
		}
		w.redis.kill()
		w.await("a replica that misses Redis", func() bool { return strings.Contains(fetch("http://127.0.0.1:9747/metrics"), "solotick_redis_up 0") })
	},
	"ended": func(w *world) {
		w.run()
		w.end()
	},
	"Redis up": func(w *world) {
		w.startRedis()
		w.awaitStatus("2/2 replicas ready")
	},
	"a broken table": func(w *world) {
		w.run()
		w.reload(strings.Replace(table, "0 ${NIGHT:-3} * * *", "0 25 * * *", 1))
		w.await("two replicas that keep the previous table", func() bool {
			return strings.Count(w.ask("status"), "refuses the new table") == 2
		})
	},
	"a silent long job": func(w *world) {
		w.run()
		w.reload(table + longJob)
		for _, r := range w.replicas {
			if !r.says("added=[rebuild-reports]") {
				w.t.Fatalf("a replica:\n%s", r.said())
			}
		}
	},
	"the table mended": func(w *world) { w.write("table.yaml", table) },
}

// reload changes the table, and tells the replicas. They would see it by themselves, two seconds later.
func (w *world) reload(table string) {
	w.t.Helper()
	w.write("table.yaml", table)
	for _, r := range w.replicas {
		if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			w.t.Fatal(err)
		}
	}
}

var onTick = regexp.MustCompile(`schedule +succeeded`)

func (w *world) awaitStatus(text string) {
	w.t.Helper()
	w.await("a status with "+text, func() bool { return strings.Contains(w.ask("status"), text) })
}

func fetch(url string) string {
	answer, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

// A process runs until Ctrl-C.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // of its end

	mu  sync.Mutex
	out bytes.Buffer
}

func start(dir string, env []string, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = dir, env, p, p
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.err = p.cmd.Wait(); close(p.ended) }()
	return p, nil
}

func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(text)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// says waits until the process has said something.
func (p *process) says(text string) bool {
	return p.satisfies(func(said string) bool { return strings.Contains(said, text) })
}

func (p *process) satisfies(so func(said string) bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if so(p.said()) {
			return true
		}
		select {
		case <-p.ended:
			return so(p.said())
		default:
		}
	}
	return false
}

// interrupt is Ctrl-C, which ends with exit code 0.
func (p *process) interrupt() error {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT) // which is no error when it has ended
	select {
	case <-p.ended:
		return p.err
	case <-time.After(patience):
		p.kill()
		return errors.New("Ctrl-C did not end it")
	}
}

func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
}

// sh runs a command line to its end, and returns all that a terminal would show.
func (w *world) sh(line string) (string, int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = w.dir, w.env
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return string(out), exit.ExitCode(), nil
	}
	return string(out), 0, err
}
