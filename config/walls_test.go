package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFamiliesOfKeysKnowNoDecoder: only what reads a whole table or timer reaches for the decoder. A family of
// keys gets what it fills in, so that a reader of one family needs no other file.
func TestFamiliesOfKeysKnowNoDecoder(t *testing.T) {
	may := strings.Fields("job.go keys.go load.go timer.go unset.go")
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	knowing := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		knows := false
		ast.Inspect(file, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			knows = knows || ok && id.Name == "decoder"
			return true
		})
		if knows && !slices.Contains(may, name) {
			t.Errorf("%s uses the decoder", name)
		}
		if knows {
			knowing++
		}
	}
	if knowing != len(may) {
		t.Errorf("%d files use the decoder, want %d", knowing, len(may))
	}
}
