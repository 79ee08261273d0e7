package imports

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layers are those of the package sidecar, the lowest first. A file uses what stands in its own layer, or below.
var layers = [...]struct{ name, files string }{
	{"life", "life clock precisesleep_linux nudges"},
	{"job", "outcome series spec ticks slots asker wake job cron roster register"},
	{"metrics", "metrics tally standings"},
	{"peers", "rendezvous heartbeat"},
	{"fire", "everyreplica fire yield acquire attempt record change settle span ready try"},
	{"look", "look takeover due deferred timers steps redisstatus"},
	{"connect", "sidecar ask reload doc"},
}

// largestCircle is of files that use each other.
const largestCircle = 4

func TestSidecarIsBuiltInLayers(t *testing.T) {
	used := usesBetweenFiles(t, "../../sidecar")
	layer := map[string]int{}
	for i, l := range layers {
		for f := range strings.FieldsSeq(l.files) {
			if _, twice := layer[f]; twice || used[f] == nil {
				t.Errorf("%s.go is no file, or in two layers", f)
			}
			layer[f] = i
		}
	}
	for from, uses := range used {
		at, known := layer[from]
		if !known {
			t.Errorf("%s.go is in no layer", from)
		}
		for to, what := range uses {
			if layer[to] > at {
				t.Errorf("%s.go (%s) uses %v of %s.go (%s), which is above it", from, layers[at].name, what, to, layers[layer[to]].name)
			}
		}
	}
	below := map[string]map[string]bool{}
	for f := range used {
		below[f] = map[string]bool{}
		reach(used, f, below[f])
	}
	for f := range used {
		var circle []string
		for g := range below[f] {
			if below[g][f] {
				circle = append(circle, g)
			}
		}
		if slices.Sort(circle); len(circle) > largestCircle {
			t.Errorf("%s.go is in a circle of %d files: %v", f, len(circle), circle)
		}
	}
}

func reach(used map[string]map[string][]string, from string, seen map[string]bool) {
	for to := range used[from] {
		if !seen[to] {
			seen[to] = true
			reach(used, to, seen)
		}
	}
}

// usesBetweenFiles returns what each file of a package uses of each other one: names of the package, fields and
// methods.
func usesBetweenFiles(t *testing.T, dir string) map[string]map[string][]string {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".")
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		compiled[path] = file
	}
	set, files := token.NewFileSet(), []*ast.File{}
	used := map[string]map[string][]string{}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	file := func(at token.Pos) string { return strings.TrimSuffix(filepath.Base(set.Position(at).Filename), ".go") }
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_other.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		used[file(f.Package)] = map[string][]string{}
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	imports := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		text, err := os.ReadFile(compiled[path])
		return io.NopCloser(bytes.NewReader(text)), err
	})
	pkg, err := (&types.Config{Importer: imports}).Check(dir, set, files, info)
	if err != nil {
		t.Fatal(err)
	}
	for id, o := range info.Uses {
		if o.Pkg() != pkg || o.Parent() != pkg.Scope() && o.Parent() != nil { // fields and methods have no parent
			continue
		}
		if from, to := file(id.Pos()), file(o.Pos()); from != to && !slices.Contains(used[from][to], o.Name()) {
			used[from][to] = append(used[from][to], o.Name())
		}
	}
	return used
}
