// Bench compares Solotick with what a Go team would write instead (gocron and a redsync locker, in ./peer), and with
// redis-benchmark, in one run on one machine. Absolute figures are the machine's; what counts are the ratios, of rounds
// that take turns, with their spread. It starts every server that it needs on the loopback interface, wants redis-server
// and redis-benchmark on the PATH and nothing else at work, and takes about eight minutes.
//
//	go run .                        everything
//	go run . -only capacity,trips   a part: delay, trips, capacity, size
//
// The exit code is 1 when a target is missed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/solotick/solotick/internal/proof/rig"
)

// row is one figure of the result.
type row struct {
	what, ours, theirs, ratio, target string
	missed                            bool
	note                              string
}

// bench is one run.
type bench struct {
	ctx    context.Context
	dir    string // for binaries, tables and logs
	root   string // of the product's module
	rounds int
	ours   string // binary as it is released
	peer   string
}

var parts = []struct {
	name string
	run  func(*bench) ([]row, error)
}{
	{"delay", (*bench).delay},
	{"trips", (*bench).trips},
	{"capacity", (*bench).capacity},
	{"size", (*bench).size},
}

func main() {
	b := &bench{}
	only := flag.String("only", "", "parts to run, separated by commas: delay, trips, capacity, size; all if empty")
	flag.IntVar(&b.rounds, "rounds", 3, "how often the sides take turns")
	flag.Parse()
	wanted := strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	for _, w := range wanted {
		if !slices.ContainsFunc(parts, func(p struct {
			name string
			run  func(*bench) ([]row, error)
		}) bool {
			return p.name == w
		}) {
			fmt.Fprintf(os.Stderr, "error: there is no part %q\n", w)
			os.Exit(2)
		}
	}
	var stop func()
	b.ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	missed, err := b.run(wanted)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(3)
	}
	if missed {
		os.Exit(1)
	}
}

// run does the parts, and writes what came of each as soon as it is known.
func (b *bench) run(wanted []string) (missed bool, err error) {
	if b.dir, err = os.MkdirTemp("", "solotick-bench-"); err != nil {
		return false, err
	}
	defer os.RemoveAll(b.dir)
	b.ours, b.peer = filepath.Join(b.dir, "solotick"), filepath.Join(b.dir, "peer")
	if b.root, err = rig.Root(); err != nil {
		return false, err
	}
	if err := release(b.root, b.ours); err != nil {
		return false, err
	}
	if err := rig.Build("", "./peer", b.peer, "-ldflags", "-s -w"); err != nil {
		return false, err
	}
	for _, p := range parts {
		if len(wanted) > 0 && !slices.Contains(wanted, p.name) {
			continue
		}
		began := time.Now()
		rows, err := p.run(b)
		if err != nil {
			return false, fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Printf("\n%s (%s)\n", p.name, time.Since(began).Round(time.Second))
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "what\tours\ttheirs\tratio\ttarget\tverdict\tnote")
		for _, r := range rows {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.what, r.ours, r.theirs, r.ratio, r.target, r.verdict(), r.note)
			missed = missed || r.missed
		}
		w.Flush()
	}
	return missed, nil
}

func (r row) verdict() string {
	switch {
	case r.target == "":
		return ""
	case r.missed:
		return "MISSED"
	}
	return "met"
}

// release makes the binary that is shipped, by the flags of the Makefile, and copies it to the file out: a build beside
// this run must not change what is measured. It is written as the layers of an image are unpacked, 32 KiB at a time: the
// page cache keeps what is written at once as one folio of up to 2 MiB, of which Linux (from 6.18 on) maps the whole when
// a byte is touched, and counts it as resident.
func release(root, out string) error {
	cmd := exec.Command("make", "--silent", "build")
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("making the release: %w\n%s", err, text)
	}
	binary, err := os.ReadFile(filepath.Join(root, "bin", "solotick"))
	if err != nil {
		return fmt.Errorf("making the release: %w", err)
	}
	f, err := os.OpenFile(out, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return fmt.Errorf("making the release: %w", err)
	}
	for piece := range slices.Chunk(binary, 32<<10) {
		if _, err := f.Write(piece); err != nil {
			f.Close()
			return fmt.Errorf("making the release: %w", err)
		}
	}
	return f.Close()
}

// sleep waits until t; false when the run was interrupted.
func (b *bench) sleep(t time.Time) error {
	select {
	case <-time.After(time.Until(t)):
		return nil
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
}

// half is the next instant halfway between two seconds, at least d from now: nothing is on its way then.
func half(d time.Duration) time.Time {
	t := time.Now().Add(d).Truncate(time.Second).Add(500 * time.Millisecond)
	if t.Before(time.Now().Add(d)) {
		t = t.Add(time.Second)
	}
	return t
}
