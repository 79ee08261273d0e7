// Bench measures Solotick beside what a team would build instead (./peer), in one run on one machine, and writes
// docs/benchmarks.md. Absolute figures are the machine's; what counts are the ratios, of rounds that take turns, with
// their spread. It starts every server that it needs on the loopback interface. It wants redis-server and
// redis-benchmark on the PATH, two cores, and nothing else at work. Some contenders need node, npm, curl, APScheduler
// 3, redis-py, a JDK, Quartz 2 and libfaketime.
//
//	go run .                     everything but the faults
//	go run . -only faults        a part, or several: -only delay,crowd
//	go run . -all -write         everything, and docs/benchmarks.* anew
//	go run . -all -quick         a short look at each part: see that it works
//	go run . -gate               a few steady ratios: the exit code is 1 if one is worse than the committed one
//
// Each row is compared with the committed one in docs/benchmarks.json. The exit code is 1 when a target is missed.
package main

import (
	"cmp"
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

	"github.com/solotick/solotick/internal/testing/rig"
)

// bench is one run.
type bench struct {
	ctx    context.Context
	dir    string // for binaries, tables and logs
	root   string // of the product's module
	rounds int
	quick  bool
	only   []string // faults; none = all
	among  []string // keys of contenders under faults; none = all
	// Programs: as released, and with a clock that can be wrong.
	ours, oursSkewed, peer, peerSkewed, crowdProgram string
}

// measurements are the parts of the document, in its order.
var measurements []measurement

type measurement struct {
	name string
	run  func(*bench) (part, error)
}

func init() { // a variable's initializer must not refer to what refers to it
	measurements = []measurement{
		{"delay", (*bench).delay},
		{"others", (*bench).others},
		{"trips", (*bench).trips},
		{"capacity", (*bench).capacity},
		{"crowd", (*bench).crowd},
		{"timers", (*bench).timers},
		{"size", (*bench).size},
		{"faults", (*bench).faults},
		{"gate", (*bench).gate},
	}
}

func main() {
	b := &bench{}
	names := make([]string, len(measurements))
	for i, m := range measurements {
		names[i] = m.name
	}
	only := flag.String("only", "", "parts to run, separated by commas: "+strings.Join(names, ", "))
	everything := flag.Bool("all", false, "run the faults, too")
	write := flag.Bool("write", false, "write docs/benchmarks.json, docs/benchmarks.md and the charts")
	render := flag.Bool("render", false,
		"measure nothing: write docs/benchmarks.md and the charts from docs/benchmarks.json")
	faults := flag.String("faults", "", "faults of the part of that name, separated by commas; all if empty")
	among := flag.String("contenders", "", "contenders of that part, separated by commas; all if empty")
	gate := flag.Bool("gate", false,
		"run the part gate alone, and exit with 1 if a ratio is worse than the committed one by more than its noise")
	flag.IntVar(&b.rounds, "rounds", 3, "how often the sides take turns")
	flag.BoolVar(&b.quick, "quick", false, "one round, and few of everything: to see that it works")
	flag.Parse()
	list := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }
	wanted := list(*only)
	b.only, b.among = list(*faults), list(*among)
	for _, w := range wanted {
		if !slices.Contains(names, w) {
			fmt.Fprintf(os.Stderr, "error: there is no part %q\n", w)
			os.Exit(2)
		}
	}
	if len(wanted) == 0 {
		wanted = slices.DeleteFunc(names, func(n string) bool { return n == "faults" && !*everything })
	}
	for _, key := range b.only {
		if _, ok := faultOf(key); !ok || *write {
			fmt.Fprintf(os.Stderr, "error: there is no fault %q, or it was to be written without the others\n", key)
			os.Exit(2)
		}
	}
	for _, key := range b.among {
		if contenderOf(key).key == "" || *write {
			fmt.Fprintf(os.Stderr, "error: there is no contender %q, or it was to be written without the others\n", key)
			os.Exit(2)
		}
	}
	if b.quick && *write {
		fmt.Fprintln(os.Stderr, "error: figures of a quick look are not written")
		os.Exit(2)
	}
	if *gate && (*only != "" || *everything || *write || *render) {
		fmt.Fprintln(os.Stderr, "error: -gate runs its own part, and writes nothing")
		os.Exit(2)
	}
	if *render {
		wanted, *write = nil, true
	}
	if b.quick {
		b.rounds = 1
	}
	var stop func()
	b.ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var missed bool
	var err error
	if *gate {
		missed, err = b.runGate()
	} else {
		missed, err = b.run(wanted, *write)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(3)
	}
	if missed {
		os.Exit(1)
	}
}

// run does the parts, shows what came of each as soon as it is known, and compares it with what is committed.
func (b *bench) run(wanted []string, write bool) (missed bool, err error) {
	began := time.Now()
	if err := b.prepare(slices.Contains(wanted, "faults")); err != nil {
		return false, err
	}
	defer os.RemoveAll(b.dir)
	file := filepath.Join(b.root, "docs", "benchmarks.json")
	committed, err := load(file)
	if err != nil {
		return false, err
	}
	now := committed
	env := b.environment()
	for _, m := range measurements {
		if !slices.Contains(wanted, m.name) {
			continue
		}
		partBegan := time.Now()
		p, err := m.run(b)
		if err != nil {
			return false, fmt.Errorf("%s: %w", m.name, err)
		}
		p.Name, p.Taken = m.name, env
		fmt.Printf("\n%s (%s)\n", p.Name, time.Since(partBegan).Round(time.Second))
		missed = show(p, committed.part(p.Name)) || missed
		now = now.with(p)
	}
	fmt.Printf("\nall: %s\n", time.Since(began).Round(time.Second))
	if write {
		return missed, publish(b.root, now)
	}
	return missed, nil
}

// show prints a part, and how far it is from the committed one.
func show(p, committed part) (missed bool) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	if len(p.Rows) > 0 {
		fmt.Fprintln(w, "what\tours\ttheirs\tratio\trounds\ttarget\tverdict\tsince the committed one\tnote")
	}
	for _, r := range p.Rows {
		deviation := ""
		if was, ok := committed.row(r.What); ok {
			text, beyond := r.deviation(was)
			if deviation = text; beyond {
				deviation += " !"
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", strings.TrimSpace(r.What+" "+paren(r.Unit)), r.Ours,
			r.Theirs, r.Ratio, r.judged().spread(), r.target(), r.verdict(), deviation, r.Note)
		missed = missed || r.missed()
	}
	w.Flush()
	return showFaults(p.Faults, committed.Faults) || missed
}

func paren(unit string) string {
	if unit == "" {
		return ""
	}
	return "(" + unit + ")"
}

// prepare builds the programs. Those with a clock that can be wrong take a while, and only faults need them.
func (b *bench) prepare(skewed bool) (err error) {
	if b.dir, err = os.MkdirTemp("", "solotick-bench-"); err != nil {
		return err
	}
	if b.root, err = rig.Root(); err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(b.dir, name) }
	b.ours, b.oursSkewed = at("solotick"), at("solotick-skewed")
	b.peer, b.peerSkewed, b.crowdProgram = at("peer"), at("peer-skewed"), at("crowd")
	if err := release(b.root, b.ours); err != nil {
		return err
	}
	here := filepath.Join(b.root, "bench")
	for _, program := range []struct{ pkg, out string }{{"./peer", b.peer}, {"./crowd", b.crowdProgram}} {
		if err := rig.Build(here, program.pkg, program.out, "-ldflags", "-s -w"); err != nil {
			return err
		}
	}
	if !skewed {
		return nil
	}
	for _, program := range []struct{ dir, pkg, out string }{
		{b.root, rig.Package, b.oursSkewed},
		{here, "./peer", b.peerSkewed},
	} {
		scratch := program.out + ".source"
		if err := os.Mkdir(scratch, 0o700); err != nil {
			return err
		}
		if err := rig.BuildSkewed(program.dir, program.pkg, program.out, scratch); err != nil {
			return err
		}
	}
	return nil
}

// release makes the binary that is shipped, by the flags of the Makefile, and copies it to the file out: a build beside
// this run must not change what is measured. It is written as the layers of an image are unpacked, 32 KiB at a time:
// the page cache keeps what is written at once as one folio of up to 2 MiB, of which Linux (from 6.18 on) maps the
// whole when a byte is touched, and counts it as resident.
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

// environment says where this run is measured.
func (b *bench) environment() environment {
	said := func(name string, args ...string) string {
		out, err := exec.Command(name, args...).Output()
		return cmp.Or(strings.TrimSpace(string(out)), strings.TrimSpace(fmt.Sprint(name, " is missing: ", err)))
	}
	field := func(file, key string) string {
		text, _ := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
				return strings.TrimSpace(v)
			}
		}
		return "unknown"
	}
	redis := said("redis-server", "--version")
	if _, after, ok := strings.Cut(redis, "v="); ok {
		redis, _, _ = strings.Cut(after, " ")
	}
	return environment{Date: time.Now().UTC().Truncate(time.Second),
		Version: said("git", "-C", b.root, "describe", "--tags", "--always", "--dirty"),
		CPU:     field("/proc/cpuinfo", "model name"), Cores: cores(), Memory: field("/proc/meminfo", "MemTotal"),
		Kernel: said("uname", "-r"), Go: strings.TrimPrefix(said("go", "env", "GOVERSION"), "go"), Redis: redis,
		Node: strings.TrimPrefix(said("node", "--version"), "v")}
}

// few is n, or less in a quick look.
func (b *bench) few(n int) int {
	if b.quick {
		return min(n, 3)
	}
	return n
}

// sleep waits until t; the error is that the run was interrupted.
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
