package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
)

// A command is one call of go. The tests of a suite are each in one command of it.
type command struct {
	dir   string // of the module, from the root
	env   []string
	words []string // arguments of go; of "test" without -json
	only  string   // the packages' tests that call this function, and no others; "" = all
}

func (c command) tests() bool { return c.words[0] == "test" }

// String is the command as a shell takes it.
func (c command) String() string {
	words := "go " + strings.Join(c.words, " ")
	if c.dir != "." {
		words = "go -C " + c.dir + " " + strings.Join(c.words, " ")
	}
	return words
}

// args are the arguments of go.
func (c command) args() ([]string, error) {
	if !c.tests() {
		return c.words, nil
	}
	// The suite vets whole modules. A package may take long on a busy machine; CI ends a job after an hour.
	args := append([]string{"test", "-json", "-vet=off", "-timeout", "50m"}, c.words[1:]...)
	if c.only == "" {
		return args, nil
	}
	names, err := calling(c.words[len(c.words)-1], c.only)
	if err != nil {
		return nil, err
	}
	return slices.Insert(args, 2, "-run", "^("+strings.Join(names, "|")+")$"), nil
}

// calling lists the tests of the package in dir that call a function of it, as "long(t)" does, in the first place.
func calling(dir, function string) (names []string, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), dir+"/"+file.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") && calls(f.Body, function) {
				names = append(names, f.Name.Name)
			}
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no test of %s calls %s", dir, function)
	}
	return names, nil
}

func calls(body *ast.BlockStmt, function string) bool {
	return slices.ContainsFunc(body.List, func(s ast.Stmt) bool {
		e, ok := s.(*ast.ExprStmt)
		if !ok {
			return false
		}
		call, ok := e.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		name, ok := call.Fun.(*ast.Ident)
		return ok && name.Name == function
	})
}

// A lane is a list of commands that run one after the other.
type lane []command

// At its end, a process with the race detector sleeps for a second by default. The transcripts end hundreds of them.
var underRace = []string{"GORACE=atexit_sleep_ms=10"}

func test(words string, packages ...string) command {
	return command{dir: ".", words: slices.Concat([]string{"test"}, strings.Fields(words), packages)}
}

// of is a command in the directory of another module.
func (c command) of(dir string) command { c.dir = dir; return c }

// race runs a command with the race detector.
func (c command) race() command {
	c.env = underRace
	c.words = slices.Insert(c.words, 1, "-race")
	return c
}

// calling restricts a command to the tests that call a function, in the one package that it names.
func (c command) calling(function string) command { c.only = function; return c }

func vet(dir string) command { return command{dir: dir, words: []string{"vet", "./..."}} }

// Packages in which goroutines of the product meet: their tests run under the race detector.
var meeting = []string{"./lock", "./internal/credentials", "./internal/embedded", "./internal/instance",
	"./internal/rds", "./internal/resp", "./internal/testing/lossy", "./internal/testing/rig", "./sidecar/admin",
	"./sidecar/callback", "./sidecar/execute/...", "./sidecar/notify", "./sidecar/service", "./sidecar/trace"}

// racing are the tests of ./cmd/solotick with whole replicas whose goroutines meet in many ways: they drain, reload,
// and end by signals. They run under the race detector, and the rest of that package without it, since it mostly waits
// for processes.
const racing = "TestDrain|TestARolling|TestATableIsReloaded|TestSIG|TestAJobThatOutlasts|TestASecondSignal|TestReady|" +
	"TestALongRunGoesOn|TestOthers|TestTheAppsParent|TestTriggerWaits"

// Packages whose tests compute, or start programs one by one: the race detector would only slow them down.
var computing = []string{"./cmd/solotick-import", "./config/...", "./docs/record", "./internal/beat",
	"./internal/budget", "./internal/compare", "./internal/convert", "./internal/diagnosis", "./internal/file",
	"./internal/identity", "./internal/imports", "./internal/testing/needs", "./internal/testing/redistest",
	"./internal/testing/results",
	"./internal/testing/suite", "./sidecar/view"}

// Packages whose tests start processes and wait for them, several at a time.
var waiting = []string{"./examples/...", "./docs"}

// suites are what make calls. The lanes with the longest waits begin first.
var suites = map[string][]lane{
	// The quick tests: build, vet, the tests of all packages without what takes long, the transcripts.
	"check": {
		{
			test("-short -parallel 12", "./cmd/solotick"),
			test("-p 4", "./docs", "./examples/demo", "./examples/embed", "./examples/grafana", "./examples/quickstart",
				"./examples/systemd", "./internal/model/modelcheck"),
		},
		{
			command{dir: ".", words: []string{"build", "./..."}},
			test("-short -skip Mutant|Replay", slices.Concat([]string{"./sidecar"}, meeting, computing)...),
			test("-short", "./nemesis", "./report").of("proof"),
			vet("."), vet("proof"),
		},
	},
	// All tests of the product and its examples, each once.
	"product": {
		{test("-parallel 12 -skip "+racing, "./cmd/solotick"), test("-p 4", waiting...)},
		{
			test("", "./nemesis", "./report", "./skew").of("proof"),
			test("", slices.Concat(computing, []string{"./internal/model/..."})...),
			test("", "./sidecar").calling("long"),
			test("-short", "./sim").of("proof").race(),
		},
		{
			test("-short", slices.Concat([]string{"./sidecar"}, meeting)...).race(),
			test("-parallel 12 -run "+racing, "./cmd/solotick").race(),
			vet("."), vet("proof"),
		},
	},
	// The tests that stand in modules of their own, since they need much that the product does not: what is released,
	// the page in a browser, the manifests.
	"outside": {{
		test("-count=1", "./...").of("packaging"),
		test("", "./...").of("examples/check"),
		test("", "./...").of("sidecar/admin/browser"),
		test("", "./...").of("bench"),
		vet("packaging"), vet("examples/check"), vet("sidecar/admin/browser"), vet("bench"),
	}},
	// All tests of the product under the race detector, which takes too long for each change.
	"race": {
		{test("-parallel 12", "./cmd/solotick").race(), test("-p 4", waiting...).race()},
		{test("-timeout 90m", slices.Concat([]string{"./sidecar"}, meeting, computing)...).race()},
	},
	// The race detector sees nothing of scripts, and little in a simulation on one processor. Both would be three to
	// ten times as slow.
	"proof": {
		{test("-run Mutant|Replay", "./lock")},
		{test("", "./sim").of("proof")},
	},
}
