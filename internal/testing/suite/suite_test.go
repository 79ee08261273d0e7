package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const root = "../../.."

// tested lists the packages with tests, by their directories from the root, with the directory of their module. It
// reads the tree itself, so that go test knows when its last result is out of date.
func tested(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	module := func(dir string) string {
		for ; dir != "."; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
				break
			}
		}
		return dir
	}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return fs.SkipDir
		case strings.HasSuffix(name, "_test.go"):
			all[filepath.Dir(name)] = module(filepath.Dir(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// matches reports whether a pattern as that of go means the package in dir.
func matches(pattern, dir string) bool {
	above, all := strings.CutSuffix(pattern, "...")
	return pattern == dir || all && strings.HasPrefix(dir+"/", above)
}

// names reports whether a command tests the package in dir, of that module.
func (c command) names(dir, module string) bool {
	return c.tests() && c.dir == module && slices.ContainsFunc(c.words, func(word string) bool {
		pattern, named := strings.CutPrefix(word, "./")
		return named && matches(strings.TrimPrefix(module+"/"+pattern, "./"), dir)
	})
}

// in counts the commands of suites that test a package. The tests of ./sidecar and of ./cmd/solotick are in two
// commands each, which divide them: a command with -run has what another one leaves out.
func in(dir, module string, suites ...[]lane) (n int) {
	for _, l := range slices.Concat(suites...) {
		for _, c := range l {
			if c.only == "" && !slices.Contains(c.words, "-run") && c.names(dir, module) {
				n++
			}
		}
	}
	return n
}

// A new package is tested by nothing before suites.go names it.
func TestEachPackageIsInOneCommandOfMakeTest(t *testing.T) {
	all := tested(t)
	if all["lock"] != "." || all["proof/sim"] != "proof" || all["sidecar/admin/browser"] == "." {
		t.Fatalf("the packages with tests, and their modules: %v", all)
	}
	for dir, module := range all {
		if n := in(dir, module, suites["product"], suites["outside"]); n != 1 {
			t.Errorf("%s is in %d commands of make test, want 1: see suites.go", dir, n)
		}
	}
}

// Why make check leaves out packages. It has all others.
var unchecked = map[string]string{
	"bench":                 "it measures, and has a module of its own",
	"examples/adapters":     "schedulers of four languages, for a minute and a half",
	"examples/check/...":    "the manifests need the libraries of Kubernetes",
	"examples/handlers":     "servers of six languages, for a minute",
	"examples/prometheus":   "alerts take a minute and a half",
	"internal/model":        "a long proof",
	"internal/model/series": "a long proof",
	"packaging/...":         "the files of a release",
	"proof/sim":             "a long proof",
	"proof/skew":            "it builds the standard library anew",
	"sidecar/admin/browser": "a browser",
}

func TestEachPackageIsInMakeCheckOrLeftOutForAReason(t *testing.T) {
	used := map[string]bool{}
	for dir, module := range tested(t) {
		n, why := in(dir, module, suites["check"]), ""
		for left, reason := range unchecked {
			if matches(left, dir) {
				why, used[left] = reason, true
			}
		}
		if (n == 1) == (why != "") || n > 1 {
			t.Errorf("%s is in %d commands of make check, and left out because %q", dir, n, why)
		}
	}
	for left := range unchecked {
		if !used[left] {
			t.Errorf("%s is left out, and there is no such package", left)
		}
	}
}

func TestTheDirectoryOfASuiteThatWasKilledIsUsedAgain(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	open := func() (string, *os.File) {
		dir, held, err := directory()
		if err != nil {
			t.Fatal(err)
		}
		return dir, held
	}
	first, killed := open()
	if err := os.WriteFile(filepath.Join(first, "left"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second, alive := open()
	defer alive.Close()
	if first == second {
		t.Fatal("two suites have one directory")
	}
	_ = killed.Close()
	third, held := open()
	defer held.Close()
	if left, err := os.ReadDir(third); third != first || err != nil || len(left) > 0 {
		t.Errorf("%s after %s, with %v in it, %v", third, first, left, err)
	}
}

func TestOnlyTheTestsThatCallAFunctionAreChosen(t *testing.T) {
	dir := t.TempDir()
	source := `package x
func TestLong(t *testing.T)  { long(t); f() }
func TestShort(t *testing.T) { f() }
func long(t *testing.T)      { t.Helper() }
`
	if err := os.WriteFile(filepath.Join(dir, "x_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := calling(dir, "long"); err != nil || !slices.Equal(got, []string{"TestLong"}) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := calling(dir, "short"); err == nil {
		t.Error("no test was found, and that is no error")
	}
}

// events is what go test -json says of a package with a test that passes, one that fails, two that are skipped, one
// that was at work and one that waited when the package failed; then of one that was interrupted and one that does not
// build.
const events = `{"Action":"output","Package":"p","Output":"=== RUN\n","Test":"TestGood"}
{"Action":"pass","Package":"p","Test":"TestGood","Elapsed":1}
{"Action":"output","Package":"p","Test":"TestBad","Output":"    x_test.go:1: bad\n"}
{"Action":"fail","Package":"p","Test":"TestBad"}
{"Action":"output","Package":"p","Test":"TestPage","Output":"    x_test.go:2: not run: needs chromium\n"}
{"Action":"skip","Package":"p","Test":"TestPage"}
{"Action":"output","Package":"p","Test":"TestLong","Output":"    x_test.go:3: not with -short\n"}
{"Action":"skip","Package":"p","Test":"TestLong"}
{"Action":"output","Package":"p","Test":"TestHanging","Output":"panic: test timed out\n"}
{"Action":"output","Package":"p","Test":"TestPaused","Output":"=== PAUSE TestPaused\n"}
{"Action":"pause","Package":"p","Test":"TestPaused"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t2.5s\n"}
{"Action":"fail","Package":"p","Elapsed":2.5}
{"Action":"output","Package":"q","Output":"ok  \tq\t0.1s\n"}
{"Action":"pass","Package":"q","Elapsed":0.1}
{"Action":"output","Package":"o","Test":"TestInterrupted","Output":"=== RUN   TestInterrupted\n"}
{"Action":"build-output","ImportPath":"r","Output":"r.go:1: no such thing\n"}
{"Action":"output","Package":"r","Output":"FAIL\tr [build failed]\n"}
{"Action":"fail","Package":"r"}
`

func TestTheSummarySaysWhatRanWhatDidNotAndHowLongItTook(t *testing.T) {
	var out bytes.Buffer
	r := &report{out: &out}
	w := lines(func(line string) { r.event("go test", line) })
	for _, part := range []string{events[:40], events[40:200], events[200:]} { // a line may come in parts
		_, _ = fmt.Fprint(w, part)
	}
	r.ran(command{dir: "proof", words: []string{"test", "./sim"}}, errors.New("exit status 1"))
	r.spent(50 * time.Second)
	r.spent(75 * time.Second)
	r.left = []string{"/run/solotick/x"}
	r.summary(90 * time.Second)
	want := `    x_test.go:1: bad
panic: test timed out
FAIL	p	2.5s
ok  	q	0.1s
r.go:1: no such thing
FAIL	r [build failed]
=== RUN   TestInterrupted

1 tests passed and 4 failed in 3 packages, in 1m30s (2m5s of processor time). The slowest packages:
       2 s  p
       0 s  q
       0 s  r
Not run, since they need chromium:
  TestPage (p)
Failed:
  TestBad (p)
  TestHanging (p)
  the package itself (r)
  TestInterrupted (o)
These commands failed:
  go -C proof test ./sim: exit status 1
The tests left this behind:
  /run/solotick/x
`
	if out.String() != want {
		t.Errorf("it says\n%s\nwant\n%s", out.String(), want)
	}
	if r.green() {
		t.Error("it is green")
	}
}

// The tests of ./sidecar are in two commands, which may be at work at the same time.
func TestAPackageThatFailsInOneCommandSaysNothingOfItsTestsInAnother(t *testing.T) {
	var out bytes.Buffer
	r := &report{out: &out}
	for _, e := range []struct{ command, line string }{
		{"go test", `{"Action":"output","Package":"p","Test":"TestHanging","Output":"panic: test timed out\n"}`},
		{"go test -race", `{"Action":"output","Package":"p","Test":"TestAtWork","Output":"=== RUN   TestAtWork\n"}`},
		{"go test -race", `{"Action":"output","Package":"p","Test":"TestHanging","Output":"=== PAUSE TestHanging\n"}`},
		{"go test -race", `{"Action":"pause","Package":"p","Test":"TestHanging"}`},
		{"go test", `{"Action":"fail","Package":"p","Elapsed":2.5}`},
		{"go test -race", `{"Action":"pass","Package":"p","Test":"TestAtWork","Elapsed":1}`},
		{"go test -race", `{"Action":"pass","Package":"p","Test":"TestHanging","Elapsed":1}`},
	} {
		r.event(e.command, e.line)
	}
	r.summary(time.Second)
	if want := []string{"TestHanging (p)"}; !slices.Equal(r.failed, want) || strings.Contains(out.String(), "=== RUN") {
		t.Errorf("failed are %q, want %q\n%s", r.failed, want, out.String())
	}
}

// go test -json takes the stacks of a panic for what the test said that spoke last, be it one that is over or waits.
func TestThePanicOfAPackageIsPrintedWhicheverTestItIsToldOf(t *testing.T) {
	var out bytes.Buffer
	r := &report{out: &out}
	for _, line := range []string{
		`{"Action":"output","Package":"p","Test":"TestWaits","Output":"=== PAUSE TestWaits\n"}`,
		`{"Action":"pause","Package":"p","Test":"TestWaits"}`,
		`{"Action":"output","Package":"p","Test":"TestToldOf","Output":"=== PAUSE TestToldOf\n"}`,
		`{"Action":"pause","Package":"p","Test":"TestToldOf"}`,
		`{"Action":"output","Package":"p","Test":"TestToldOf","Output":"panic: test timed out\n"}`,
		`{"Action":"fail","Package":"p","Elapsed":2.5}`,
	} {
		r.event("go test", line)
	}
	if !strings.Contains(out.String(), "panic: test timed out") || strings.Contains(out.String(), "TestWaits") {
		t.Errorf("it says %s", out.String())
	}
}
