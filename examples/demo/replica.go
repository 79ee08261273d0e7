package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// event is one line of a replica's log, or an action of the demo on the replica.
type event struct {
	Time                  time.Time
	Msg                   string
	Level                 string
	Job, Kind, Reason, By string
	Tick                  time.Time
	Outcome               string
	Duration, Wait        time.Duration `json:"-"`
	Attempt, Code         int
	Err, Addr             string
	Dead                  string `json:"replica"` // the replica whose run was cut off
	from                  string // the replica
}

// Messages that the demo itself adds to the logs.
const (
	killed = "killed"
	back   = "started again"
)

// replica is one process of `solotick run`.
type replica struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone and its log is read
}

// start starts a replica. It has a process group of its own, so that Ctrl-C in the terminal
// reaches only the demo. On Linux it never outlives the demo.
func start(program, name, table string, events chan<- event) (*replica, error) {
	r := &replica{name: name, done: make(chan struct{})}
	// At level debug, the log also names the other replica that fired a tick.
	r.cmd = exec.Command(program, "run", "-c", table, "--replica", name, "--log-format", "json", "--log-level", "debug")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SOLOTICK_") { // such variables may name another Redis or table
			r.cmd.Env = append(r.cmd.Env, v)
		}
	}
	r.cmd.Env = append(r.cmd.Env, "XDG_RUNTIME_DIR="+filepath.Dir(table)) // what a replica leaves goes with the table
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(r.cmd.SysProcAttr)
	log, err := r.cmd.StderrPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting replica %s: %w", name, err)
	}
	go func() {
		r.read(log, events)
		_ = r.cmd.Wait() // killed, or told to end
		close(r.done)
	}()
	return r, nil
}

func (r *replica) read(log io.Reader, events chan<- event) {
	in := bufio.NewScanner(log)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		e, err := parse(in.Bytes())
		if err != nil {
			e = event{Time: time.Now(), Level: "ERROR", Msg: in.Text()} // an error before the log begins
		}
		e.from = r.name
		events <- e
	}
	_, _ = io.Copy(io.Discard, log) // a huge line must not block the replica
}

// parse reads one line of a log.
func parse(line []byte) (event, error) {
	var e struct {
		event
		DurationSeconds, WaitSeconds float64
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return event{}, fmt.Errorf("reading a line of the log: %w", err)
	}
	e.Duration = time.Duration(e.DurationSeconds * float64(time.Second))
	e.Wait = time.Duration(e.WaitSeconds * float64(time.Second))
	return e.event, nil
}

// kill ends the process and everything that it has started, as a crash would.
func (r *replica) kill() {
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) // an error means that it has ended already
	<-r.done
}

// stop ends the replica in order, and kills it if that takes too long.
func (r *replica) stop(grace time.Duration) {
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.done:
	case <-time.After(grace):
		r.kill()
	}
}

func (r *replica) gone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
