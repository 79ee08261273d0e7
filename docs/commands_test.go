//go:build linux

package docs_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/internal/testing/needs"
)

// The test runs itself again in a network namespace of its own, where the ports of the pages are free: Redis on 6379,
// an app on 8080, Solotick on 9747 and 9748. These variables are for the inner one.
const (
	binVariable   = "DOCS_BIN"
	rootVariable  = "DOCS_ROOT"
	pagesVariable = "DOCS_PAGES"
)

// TestTheCommandsOfThePagesWork runs every command line of the pages that a test can run, against a service of two
// replicas, and compares its exit code and what it prints with what the page shows. A command line that cannot be run
// is checked by the rule of its program.
func TestTheCommandsOfThePagesWork(t *testing.T) {
	bin := os.Getenv(binVariable)
	if bin == "" {
		again(t)
		return
	}
	bringUpLoopback(t) // which only works in a network that is the test's own
	w := newWorld(t, bin, os.Getenv(rootVariable))
	count := map[string]int{}
	for _, page := range strings.Fields(os.Getenv(pagesVariable)) {
		t.Run(page, func(t *testing.T) { w.page(t, page, count) })
	}
	fmt.Printf(counted, count["run"], count["checked"], count["shown"])
}

// counted is what the inner test tells the outer one.
const counted = "command lines run: %d, checked: %d, with output: %d\n"

// slow pages wait for heartbeats, and have a machine of their own beside that of the other pages.
var slow = []string{"docs/operating.md"}

// again builds Solotick, and runs the test that calls it in a network of its own.
func again(t *testing.T) {
	t.Helper()
	for _, program := range []string{"redis-server", "redis-cli", "curl"} {
		needs.Program(t, program)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-ldflags", "-X main.version=v0.1.0", "-o", bin, "./cmd/...")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	var rest []string
	for _, page := range pages(t, root) {
		if !slices.Contains(slow, page) {
			rest = append(rest, page)
		}
	}
	var wait sync.WaitGroup
	outputs := make([]string, 2)
	for i, these := range [][]string{slow, rest} {
		wait.Go(func() {
			outputs[i] = inside(t, binVariable+"="+bin, rootVariable+"="+root, pagesVariable+"="+strings.Join(these, " "))
		})
	}
	wait.Wait()
	if slices.Contains(outputs, none) {
		needs.That(t, "a network namespace", errors.New(none))
	}
	var run, checked, shown int
	for _, out := range outputs {
		var r, c, s int
		if i := strings.Index(out, "command lines run:"); i >= 0 {
			_, _ = fmt.Sscanf(out[i:], counted, &r, &c, &s)
		}
		run, checked, shown = run+r, checked+c, shown+s
	}
	t.Logf(counted, run, checked, shown)
	if run < 30 || checked < 25 || shown < 20 {
		t.Errorf("so few command lines have been looked at: %d run, %d checked, %d with output", run, checked, shown)
	}
}

// inside runs the calling test again, in a network of its own.
func inside(t *testing.T, env ...string) string {
	uid, gid := os.Getuid(), os.Getgid()
	networks := []*syscall.SysProcAttr{
		{Cloneflags: syscall.CLONE_NEWNET},
		{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: uid, Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: gid, Size: 1}}},
	}
	for _, network := range networks {
		cmd := exec.Command(os.Args[0], append(os.Args[1:], "-test.run", "^"+t.Name()+"$", "-test.v")...)
		cmd.Env = append(os.Environ(), env...)
		cmd.SysProcAttr = network
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			continue // this kind of network may not be made here
		}
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		} else if testing.Verbose() {
			t.Logf("%s", out)
		}
		return string(out)
	}
	return none
}

// none is what inside returns where no network namespace may be made, neither as root nor for a user.
const none = "no network namespace may be made here"

func bringUpLoopback(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatalf("bringing up the loopback interface: %v", err)
	}
}

// elsewhere are pages whose commands another test runs.
var elsewhere = map[string]string{
	"docs/install.md": "packaging/install_test.go", // which installs and removes packages, in a root of its own
}

// pages are those whose commands are run: at the root, in docs, and the examples' own.
func pages(t *testing.T, root string) (all []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md", "examples/*/*.md", "examples/*/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			page, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			if test, ok := elsewhere[page]; ok {
				if text, err := os.ReadFile(filepath.Join(root, test)); err != nil || !strings.Contains(string(text), page) {
					t.Errorf("%s does not run the commands of %s: %v", test, page, err)
				}
				continue
			}
			all = append(all, filepath.ToSlash(page))
		}
	}
	return all
}

// page runs the commands of one page, in the order in which they stand.
func (w *world) page(t *testing.T, page string, count map[string]int) {
	file := filepath.Join(w.root, page)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := blocks(page, string(text))
	if err != nil {
		t.Fatal(err)
	}
	w.open(t)
	defer w.close()
	anew := map[string][]string{} // by place: what the page ought to show
	for _, b := range all {
		if b.file != "" {
			w.write(b.file, strings.Join(b.lines, "\n")+"\n")
		}
		for _, state := range b.given {
			bring, ok := states[state]
			if !ok {
				t.Fatalf("%s:%d: no world can be brought into the state %q", page, b.line, state)
			}
			bring(w)
		}
		if b.file != "" {
			continue
		}
		for _, c := range b.commands() {
			got, err := w.try(c, count)
			if err != nil {
				t.Errorf("%s: %v", c, err)
			}
			if got != nil {
				anew[c.String()] = got
			}
		}
	}
	if *update && len(anew) > 0 {
		if err := rewrite(file, string(text), all, anew); err != nil {
			t.Error(err)
		}
	}
}

// try runs one command line or checks it. If it prints something else than the page shows, it returns what it printed.
func (w *world) try(c command, count map[string]int) (printed []string, err error) {
	simple := parts(c.text)
	if !runs(simple) {
		count["checked"]++
		for _, words := range simple {
			if err := check(w, words); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	count["run"]++
	first := simple[0]
	if first[0] == "export" {
		w.env = append(w.env, first[1:]...)
		return nil, nil
	}
	if first[0] == "solotick" && len(first) > 1 && first[1] == "run" {
		return nil, w.background(c, count)
	}
	if slices.ContainsFunc(simple, asksTheService) {
		w.run()
	}
	out, code, err := w.sh(c.text)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	if code != c.exit {
		return nil, fmt.Errorf("exit code %d, want %d\n%s", code, c.exit, out)
	}
	if !c.shows {
		return nil, nil
	}
	count["shown"]++
	got := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if alike(c.text, c.shown, got) {
		return nil, nil
	}
	return presentable(got), fmt.Errorf("it printed\n%s\nand the page shows\n%s", strings.Join(got, "\n"), strings.Join(c.shown, "\n"))
}

// asksTheService reports whether a command needs the service to be there.
func asksTheService(words []string) bool {
	switch words[0] {
	case "curl", "redis-cli":
		return true
	case "solotick":
		return len(words) > 1 && !slices.Contains([]string{"validate", "next", "schema", "version", "completion", "try"}, words[1])
	}
	return false
}

// background starts a command that runs until Ctrl-C, and waits until it has said what the page shows, with other lines
// between. It ends with the page.
func (w *world) background(c command, count map[string]int) error {
	p, err := start(w.dir, slices.Concat(w.env, w.hours), "sh", "-c", "exec "+c.text)
	if err != nil {
		return err
	}
	w.started = true // what follows is asked of this one
	w.replicas = append(w.replicas, p)
	want := c.shown
	if !c.shows {
		want = []string{`msg="taking ticks"`}
	}
	if c.shows {
		count["shown"]++
	}
	rest := 0
	if !p.satisfies(func(said string) bool {
		lines := strings.Split(said, "\n")
		rest = 0
		for _, line := range lines {
			if rest < len(want) && (normal(line) == normal(want[rest]) || !c.shows && strings.Contains(line, want[rest])) {
				rest++
			}
		}
		return rest == len(want)
	}) {
		return fmt.Errorf("it did not print %q\n%s", want[rest], p.said())
	}
	return nil
}

// steady are commands that print the same at all times.
var steady = regexp.MustCompile(`solotick(-import| validate| schema| next .*--from| [a-z]+ --help)`)

// alike reports whether the page shows what was printed. A line `…` stands for any lines. Times, durations, ids and the
// like may differ, except where they cannot.
func alike(line string, shown, got []string) bool {
	same := func(a, b string) bool { return strings.TrimRight(a, " ") == strings.TrimRight(b, " ") }
	if !steady.MatchString(line) {
		same = func(a, b string) bool { return normal(a) == normal(b) }
	}
	if len(shown) == 0 {
		return len(got) == 1 && got[0] == ""
	}
	var match func(shown, got []string) bool
	match = func(shown, got []string) bool {
		switch {
		case len(shown) == 0:
			return len(got) == 0
		case shown[0] == "…":
			return match(shown[1:], got) || len(got) > 0 && match(shown, got[1:])
		default:
			return len(got) > 0 && same(shown[0], got[0]) && match(shown[1:], got[1:])
		}
	}
	return match(shown, got)
}

// variable is what differs from run to run, in the order in which it is replaced.
var variable = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "RUN"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d| UTC| CES?T)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d+)?( UTC| CES?T)?`), "TIME"},
	{regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) `), ""},
	{regexp.MustCompile(`-?\b(\d+(\.\d+)?e[+-]\d+|0\.\d{3,})\b`), "NUMBER"},
	{regexp.MustCompile(`\b[0-9a-f]{12}\b`), "HASH"},
	{regexp.MustCompile(`\b[0-9a-f]{8}\b`), "RUN"},
	{regexp.MustCompile(`\b1\d{12,18}\b`), "TOKEN"},
	{regexp.MustCompile(`[-+]?\b(\d+(\.\d+)? ?(ms|µs|days?|d|h|m|s) ?)+\b`), "DURATION "},
	{regexp.MustCompile(`\b[a-z][-a-z0-9]*@[-A-Za-z0-9.]+`), "WHO"},
	{regexp.MustCompile(`\bbilling-[1-3]\b`), "REPLICA"}, // any of them may have run the job
	{regexp.MustCompile(`^[1-9]\d*$`), "COUNT"},
	{regexp.MustCompile(`\s+`), " "},
}

// normal is a line without what differs from run to run.
func normal(line string) string {
	for _, v := range variable {
		line = v.what.ReplaceAllString(line, v.by)
	}
	return strings.TrimSpace(line)
}

// presentable is what was printed, as a page may show it.
func presentable(lines []string) []string {
	who := regexp.MustCompile(`\b[a-z][-a-z0-9]*@[-A-Za-z0-9.]+`)
	for i := range lines {
		lines[i] = who.ReplaceAllString(strings.TrimRight(lines[i], " "), "anna@ops")
	}
	return lines
}

// rewrite puts what was printed into a page.
func rewrite(file, text string, all []fence, anew map[string][]string) error {
	lines := strings.Split(text, "\n")
	slices.Reverse(all) // from the end, so that the places above stay
	for _, b := range all {
		commands := b.commands()
		slices.Reverse(commands)
		for _, c := range commands {
			if got, ok := anew[c.String()]; ok {
				for i := range got {
					got[i] = strings.TrimRight(b.indent+got[i], " ")
				}
				from := b.line + c.after
				lines = slices.Replace(lines, from, from+len(c.shown), got...)
			}
		}
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644)
}
