// Peer is one replica of what a team would build without Solotick. Each kind is one file: gocron with a redsync locker
// (redsync.go), redislock with a fencing token (redislock.go), SET NX with a delay (setnx.go), and a sorted set of due
// jobs (zset.go). Two are schedulers that people keep, and run with Solotick as well: gocron with the adapter or a
// locker by SET NX (gocron.go), and a cron that knows seconds (crontab.go). Those for Node.js, Python and Java are
// beside it.
//
// A replica names itself, the tick that it believes to fire, and its fencing token if it has one, in the headers that
// Solotick sends: the app can then tell doubled ticks from late ones. Without the adapter, that is all that these
// programs share with Solotick.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// lease is the time after which a lock ends by itself: above the longest run, and that of Solotick by default.
const lease = 15 * time.Second

// job is one row of the file that -jobs names.
type job struct {
	Name     string `json:"name"`
	Every    int    `json:"every"`    // seconds, a divisor of 60
	Offset   int    `json:"offset"`   // of its ticks, in seconds
	Schedule string `json:"schedule"` // a cron expression instead of Every, for gocron; "" = Every
	URL      string `json:"url"`      // "" calls nothing
}

func (j job) period() time.Duration { return time.Duration(j.Every) * time.Second }

// tick is the newest tick of the job by this machine's clock. A timer may fire a moment too soon.
func (j job) tick() time.Time {
	offset := time.Duration(j.Offset) * time.Second
	return time.Now().Add(10*time.Millisecond - offset).Truncate(j.period()).Add(offset)
}

// replica is what a kind is given.
type replica struct {
	redis *redis.Client
	api   string // host:port of the replica of Solotick beside the app
	jobs  []job
	// command is the line of the crontab. It is run with JOB, URL, TICK, and HALF of the period in ms.
	command string
	call    func(ctx context.Context, j job, tick time.Time, token int64) error // token 0 = none
}

// kinds start a replica; stop ends it when its runs have ended.
var kinds = map[string]func(*replica) (stop func() error, err error){
	"redsync":   func(r *replica) (func() error, error) { return r.gocron(plainLocker{newRedsync(r.redis)}) },
	"held":      func(r *replica) (func() error, error) { return r.gocron(heldLocker{newRedsync(r.redis)}) },
	"keyed":     func(r *replica) (func() error, error) { return r.gocron(newKeyedLocker(r)) },
	"redislock": (*replica).fenced,
	"setnx":     (*replica).setNX,
	"zset":      (*replica).sortedSet,
	"adapter":   (*replica).adapted,
	"half":      func(r *replica) (func() error, error) { return r.gocron(newHalfLocker(r)) },
	"crontab":   (*replica).crontab,
}

func main() {
	kind := flag.String("kind", "redsync", "redsync, held, keyed, redislock, setnx, zset, adapter, half or crontab")
	addr := flag.String("redis", "", "host:port")
	api := flag.String("api", "", "host:port of Solotick's API, for the adapter")
	file := flag.String("jobs", "", "file of jobs, as JSON")
	name := flag.String("name", "peer", "name of the replica")
	command := flag.String("command", "", "line of the crontab")
	replicas := flag.Int("replicas", 1, "replicas in this process, each with its own connections")
	flag.Parse()
	if err := run(*kind, *addr, *api, *file, *name, *command, *replicas); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(kind, addr, api, file, name, command string, replicas int) error {
	start, ok := kinds[kind]
	if !ok {
		return fmt.Errorf("there is no kind %q", kind)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var jobs []job
	if err := json.Unmarshal(text, &jobs); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	ctx, done := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer done()
	for range replicas {
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		stop, err := start(&replica{redis: client, api: api, jobs: jobs, command: command,
			call: caller(name, len(jobs))})
		if err != nil {
			return err
		}
		defer func() {
			if err := stop(); err != nil {
				fmt.Fprintln(os.Stderr, "stopping:", err)
			}
		}()
	}
	fmt.Println("ready")
	<-ctx.Done()
	return nil
}

// caller posts to the app, with connections enough for all jobs at once, as a program that has so many would keep.
func caller(name string, jobs int) func(context.Context, job, time.Time, int64) error {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = jobs, jobs
	client := &http.Client{Transport: transport}
	return func(ctx context.Context, j job, tick time.Time, token int64) error {
		if j.URL == "" {
			return nil
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, j.URL, strings.NewReader(""))
		if err != nil {
			return err
		}
		req.Header.Set("Solotick-Tick", tick.UTC().Format(time.RFC3339Nano))
		req.Header.Set("Solotick-Replica", name)
		if token != 0 {
			req.Header.Set("Solotick-Fencing-Token", strconv.FormatInt(token, 10))
		}
		answer, err := client.Do(req)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
}
