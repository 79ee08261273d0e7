package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// The lock trusts a lease by Boottime and reckons with Redis' time: how wrong a replica's wall clock is does not
// matter, because nothing asks it. Boottime alone reads it: it tells of suspend.
func TestTheLockReadsNoWallClock(t *testing.T) {
	may := map[string]bool{"boottime_linux.go": true, "boottime_other.go": true}
	wall := map[string]bool{"Now": true, "Since": true, "Until": true}
	files, err := filepath.Glob("../../lock/*.go")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob("../../internal/rds/*.go")
	if err != nil || len(below) == 0 {
		t.Fatalf("%d files of rds, %v", len(below), err)
	}
	files = append(files, below...)
	reads := map[string]bool{} // files
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if i.Path.Value == `"time"` && i.Name != nil {
				t.Errorf("%s: time has another name here, under which nobody would look for it", set.Position(i.Pos()))
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || !wall[s.Sel.Name] {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
				reads[filepath.Base(name)] = true
				if !may[filepath.Base(name)] {
					t.Errorf("%s: time.%s reads the wall clock, which may be wrong: take the store's boottime", set.Position(s.Pos()), s.Sel.Name)
				}
			}
			return true
		})
	}
	if len(reads) < len(may) {
		t.Errorf("of %d files only %v read it", len(files), reads)
	}
}
