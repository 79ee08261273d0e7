package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const root = "../../.."

// list gives the packages that patterns name, as go list prints them.
func list(t *testing.T, dir string, patterns ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, patterns...)...)
	cmd.Dir = filepath.Join(root, dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %q in %s: %v", patterns, dir, err)
	}
	return strings.Fields(string(out))
}

// packages are those that a command of tests names.
func packages(t *testing.T, c command) []string {
	t.Helper()
	words := c.words[1:]
	for len(words) > 0 && !strings.HasPrefix(words[0], "./") {
		words = words[1:]
	}
	return list(t, c.dir, words...)
}

// A new package is tested by nothing before suites.go names it. The tests of ./sidecar and of ./cmd/solotick are in two commands
// each, which divide them: a command with -run has what another one leaves out.
func TestEachPackageIsInOneCommandOfMakeTest(t *testing.T) {
	in := map[string]int{}
	for _, l := range slices.Concat(suites["product"], suites["outside"]) {
		for _, c := range l {
			if c.tests() && c.only == "" && !slices.Contains(c.words, "-run") {
				for _, p := range packages(t, c) {
					in[p]++
				}
			}
		}
	}
	modules, err := filepath.Glob(root + "/*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, deeper := range []string{"*/*/go.mod", "*/*/*/go.mod"} {
		more, err := filepath.Glob(root + "/" + deeper)
		if err != nil {
			t.Fatal(err)
		}
		modules = append(modules, more...)
	}
	all := list(t, ".", "./...")
	for _, m := range modules {
		dir, err := filepath.Rel(root, filepath.Dir(m))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(dir, ".ci") || strings.Contains(dir, "node_modules") {
			continue // tools, without a package of ours
		}
		all = append(all, list(t, dir, "./...")...)
	}
	for _, p := range all {
		tests, err := filepath.Glob(filepath.Join(root, strings.TrimPrefix(p, "github.com/solotick/solotick"), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if len(tests) > 0 && in[p] != 1 {
			t.Errorf("%s is in %d commands, want 1: see suites.go", p, in[p])
		}
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

// events is what go test -json says of a package with a test that passes, one that fails, two that are skipped, one that was
// at work and one that waited when the package failed; then of one that was interrupted and one that does not build.
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
	w := lines(r.event)
	for _, part := range []string{events[:40], events[40:200], events[200:]} { // a line may come in parts
		_, _ = fmt.Fprint(w, part)
	}
	r.ran(command{dir: "proof", words: []string{"test", "./sim"}}, errors.New("exit status 1"))
	r.left = []string{"/run/solotick/x"}
	r.summary(90 * time.Second)
	want := `    x_test.go:1: bad
panic: test timed out
FAIL	p	2.5s
ok  	q	0.1s
r.go:1: no such thing
FAIL	r [build failed]
=== RUN   TestInterrupted

1 tests passed and 4 failed in 3 packages, in 1m30s. The slowest packages:
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
