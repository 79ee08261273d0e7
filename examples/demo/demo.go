package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/solotick/solotick/internal/embedded"
)

// Options are the choices of the user.
type Options struct {
	Program string // solotick; "" = built from the source around this program
	Out     io.Writer
	Colour  bool
	Kill    bool             // replicas are killed now and then
	Opened  func(url string) // called with the address of the status page
}

// replicas has the names of the replicas. The first one serves the status page, and is never killed.
var replicas = []string{"one", "two", "three"}

const (
	startLimit = 30 * time.Second
	stopLimit  = 5 * time.Second
	rest       = 4500 * time.Millisecond // between a kill and the next start: others have taken over by then
	killEvery  = 9 * time.Second         // at least
	// Redis must know a new job for a second before its first tick. So the demo counts ticks from then on, and until as
	// long before the end.
	settling = 2 * time.Second
)

// demo is a running demo.
type demo struct {
	Options
	app    *app
	table  string // path
	events chan event
	stream *stream
	cut    map[tickOf]bool
	all    map[string]*replica
	kills  int
}

// Run runs until ctx ends. The end of hard cuts short an orderly end that takes too long. The error says what kept the
// demo from running.
func Run(ctx, hard context.Context, o Options) (t Tally, err error) {
	d := &demo{Options: o, events: make(chan event, 100), stream: newStream(o.Out, o.Colour), cut: map[tickOf]bool{},
		all: map[string]*replica{}}
	if d.app, err = serveApp(); err != nil {
		return t, err
	}
	defer d.app.close()
	store, err := embedded.Open("127.0.0.1:0")
	if err != nil {
		return t, err
	}
	serving, end := context.WithCancel(context.Background())
	var stored sync.WaitGroup
	stored.Go(func() { store.Run(serving, func() {}) })
	defer stored.Wait()
	defer end()
	dir, err := scratch()
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(dir)
	if d.Program == "" {
		if d.Program, err = build(ctx, dir); err != nil {
			return t, err
		}
	}
	d.table = filepath.Join(dir, "table.yaml")
	if err := os.WriteFile(d.table, []byte(table(d.app.addr, store.At())), 0o600); err != nil {
		return t, fmt.Errorf("writing the demo's table: %w", err)
	}

	defer d.stop(hard) // on every way out
	page, err := d.begin(ctx)
	if err != nil {
		return t, err
	}
	d.greet(page)
	from := time.Now().Add(settling)
	d.stream.from = from
	err = d.play(ctx)
	// All replicas stop now, so ticks due at this moment may stay unfired. A busy machine is late as well.
	to := time.Now().Add(-settling)
	d.stop(hard)
	if err != nil {
		return t, err
	}
	t, err = count(d.app.receipts(), d.stream.unmet, d.cut, from, to)
	t.Kills = d.kills
	if err == nil {
		d.conclude(t)
	}
	return t, err
}

// prefix begins the name of the demo's directory, before the demo's process id.
const prefix = "solotick-demo-"

// scratch makes a directory for the table, and removes the directories of killed demos.
func scratch() (string, error) {
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, dir := range old {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), prefix))
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir) // it may belong to another user
		}
	}
	dir := filepath.Join(os.TempDir(), prefix+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("making a directory for the demo's table: %w", err)
	}
	return dir, nil
}

// build builds solotick in the directory. The first time takes a minute.
func build(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "solotick")
	fmt.Fprintln(os.Stderr, "building solotick …")
	command := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/solotick/solotick/cmd/solotick")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building solotick: %w\n%s", err, out)
	}
	return program, nil
}

// begin starts all replicas and waits until they take ticks. It returns the address of the first one's status page.
func (d *demo) begin(ctx context.Context) (page string, err error) {
	for _, name := range replicas {
		if err := d.start(name); err != nil {
			return "", err
		}
	}
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	for taking := 0; taking < len(replicas) || page == ""; {
		select {
		case e := <-d.events:
			switch {
			case e.Msg == "taking ticks":
				taking++
			case e.Msg == "serving the status page and the API" && e.from == replicas[0]:
				page = "http://" + e.Addr + "/"
			case e.Level == "ERROR" && e.Msg != "Redis does not answer": // it is late, on a busy machine
				return "", fmt.Errorf("starting replica %s: %s %s", e.from, e.Msg, e.Err)
			}
		case <-limit.C:
			return "", fmt.Errorf("starting the replicas: they do not take ticks within %s", startLimit)
		case <-ctx.Done():
			return page, nil
		}
	}
	return page, nil
}

func (d *demo) start(name string) error {
	r, err := start(d.Program, name, d.table, d.events)
	if err == nil {
		d.all[name] = r
	}
	return err
}

func (d *demo) greet(page string) {
	s := d.stream
	s.print(bold("Three replicas of one service") + ", " +
		s.name("one") + ", " + s.name("two") + " and " + s.name("three") + ", share one table.")
	s.print("Each tick is fired by exactly one of them" + ", whatever happens to the others.")
	s.print("")
	for _, j := range jobs() {
		s.print(fmt.Sprintf("  %-*s  %-12s  %s", s.jobs, j.name, j.schedule, dim(j.about)))
	}
	s.print("")
	s.print("  status page  " + page)
	s.print("  table        " + d.table)
	s.print(dim("  Ctrl-C ends it, and counts."))
	s.print("")
	if d.Opened != nil {
		d.Opened(page)
	}
}

// play prints the stream, and kills and starts replicas, until ctx ends.
func (d *demo) play(ctx context.Context) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	dead, again := "", time.Time{}
	// By then no run of an earlier tick is left: the stream would not show its takeover.
	next := d.stream.from.Add(reporting + time.Second)
	for d.stream.err == nil { // until the output fails
		select {
		case <-ctx.Done():
			return nil
		case e := <-d.events:
			d.take(e)
		case now := <-ticker.C:
			d.stream.flushDue(now)
			for name, r := range d.all {
				if name != dead && r.gone() {
					return fmt.Errorf("replica %s has ended by itself", name)
				}
			}
			switch {
			case dead != "" && now.After(again):
				if err := d.start(dead); err != nil {
					return err
				}
				d.stream.take(event{Time: now, Msg: back, from: dead})
				dead, next = "", now.Add(killEvery-rest)
			case dead == "" && d.Kill && now.After(next):
				if dead = d.victim(now); dead != "" {
					d.kill(dead)
					again = now.Add(rest)
				}
			}
		}
	}
	return nil
}

// victim returns the replica to kill now: one that runs the job that another replica will take over. It waits for the
// middle of a second, when no replica has a claimed tick that it has not begun. Such a tick would be lost, see
// docs/guarantees.md.
func (d *demo) victim(now time.Time) string {
	name := d.app.runner(reported)
	if middle := now.Nanosecond() / 1e8; name == "" || name == replicas[0] || middle < 3 || middle > 6 {
		return ""
	}
	return name
}

func (d *demo) kill(name string) {
	d.kills++
	drained := make(chan struct{})
	go func() { // the last lines of its log
		d.all[name].kill()
		close(drained)
	}()
	for {
		select {
		case e := <-d.events:
			d.take(e)
			continue
		case <-drained:
		}
		break
	}
	d.stream.take(event{Time: time.Now(), Msg: killed, Job: reported, from: name})
}

func (d *demo) take(e event) {
	if e.Outcome == "interrupted" {
		d.cut[tickOf{e.Job, e.Tick.UnixMilli()}] = true
	}
	d.stream.take(e)
}

// stop ends all replicas and reads the rest of their logs. It may be called twice.
func (d *demo) stop(hard context.Context) {
	over := make(chan struct{})
	var stopping sync.WaitGroup
	for _, r := range d.all {
		stopping.Go(func() {
			defer context.AfterFunc(hard, r.kill)()
			r.stop(stopLimit)
		})
	}
	go func() {
		stopping.Wait()
		close(over)
	}()
	for {
		select {
		case e := <-d.events:
			if e.Outcome == "interrupted" {
				d.cut[tickOf{e.Job, e.Tick.UnixMilli()}] = true
			}
		case <-over:
			return
		}
	}
}

func (d *demo) conclude(t Tally) {
	s := d.stream
	s.print("")
	for _, line := range t.lines() {
		s.print(line)
	}
}
