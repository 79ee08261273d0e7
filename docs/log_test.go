package docs_test

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// computed are the messages that the source makes up from parts, by their expression, as the page writes them. A part
// that varies is a `…`; "" stands for a text that is not Solotick's own, or that a row says in other words.
var computed = map[string][]string{
	`msg`:             {"table reloaded"},
	`message`:         {"a ping did not arrive", "a message did not arrive"},
	`s.announced`:     {"taking ticks", "waiting for Redis"},
	`"serving "+what`: {"serving …"},
	`"Redis "+d.Says`: {"Redis …"},
	`w.Message`:       {""}, // a warning of the table, as `solotick validate` prints it
	`text`:            {""}, // a line of a command
	`said`:            {"the table is not reloaded: the one before stays in force", "there is no table that can be used: nothing is fired here"},
	`sidecar.NoTable`: {"there is no table that can be used: nothing is fired here"},
	`f.Error()`:       {""}, // why `solotick run` did not start
	`notKept`:         {"the last good table is not kept: with a broken table, a restart would fail"},
}

// logged are the messages that the source logs, and their levels. "" is a level that is decided when the program runs.
func logged(t *testing.T, dirs ...string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			constants := constantsOf(file)
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				level, message := logCall(set, call)
				if message == nil || level == "debug" {
					return true
				}
				texts, ok := constant(message, constants)
				if !ok {
					var known bool
					if texts, known = computed[source(set, message)]; !known {
						t.Errorf("%s: the message %s is computed: add what it can be to `computed`", set.Position(call.Pos()), source(set, message))
					}
				}
				for _, text := range texts {
					if !slices.Contains(all[text], level) {
						all[text] = append(all[text], level)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	delete(all, "")
	return all
}

// logCall is the level and the message of a call of a logger; nil for any other call. Loggers are named log, Log or
// logger.
func logCall(set *token.FileSet, call *ast.CallExpr) (level string, message ast.Expr) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", nil
	}
	logger := source(set, method.X)
	if i := strings.LastIndex(logger, "."); i >= 0 {
		logger = logger[i+1:]
	}
	if !slices.Contains([]string{"log", "Log", "logger", "slog"}, logger) {
		return "", nil
	}
	switch name := method.Sel.Name; {
	case slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, name) && len(call.Args) > 0:
		return strings.ToLower(name), call.Args[0]
	case slices.Contains([]string{"Log", "LogAttrs"}, name) && len(call.Args) > 2:
		if written, ok := strings.CutPrefix(source(set, call.Args[1]), "slog.Level"); ok {
			level = strings.ToLower(written)
		}
		return level, call.Args[2]
	}
	return "", nil
}

func source(set *token.FileSet, n ast.Node) string {
	var b strings.Builder
	if err := printer.Fprint(&b, set, n); err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(b.String(), " + ", "+")
}

// constantsOf are the constants of a file that are texts.
func constantsOf(file *ast.File) map[string]ast.Expr {
	all := map[string]ast.Expr{}
	ast.Inspect(file, func(n ast.Node) bool {
		if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
			for _, s := range d.Specs {
				v := s.(*ast.ValueSpec)
				for i, name := range v.Names {
					if i < len(v.Values) {
						all[name.Name] = v.Values[i]
					}
				}
			}
		}
		return true
	})
	return all
}

// constant is the value of an expression of literals and constants of its file. A part that is a constant of another
// file is left out with what follows: the page then has its beginning, and a `…`.
func constant(e ast.Expr, constants map[string]ast.Expr) ([]string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return []string{text}, err == nil
	case *ast.Ident:
		value, ok := constants[e.Name]
		if !ok {
			return nil, false
		}
		return constant(value, constants)
	case *ast.BinaryExpr:
		x, okX := constant(e.X, constants)
		y, okY := constant(e.Y, constants)
		switch {
		case okX && okY:
			return []string{x[0] + y[0]}, true
		case okX && len(x[0]) > 20:
			return []string{strings.TrimSpace(x[0]) + " …"}, true
		}
	}
	return nil, false
}

var logRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([a-z, ]+) \\|")

func TestThePageHasEachMessageOfTheLog(t *testing.T) {
	text, err := os.ReadFile("log.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range logRow.FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] += row[2] + " "
	}
	said := logged(t, "../cmd", "../sidecar", "../internal/rds", "../internal/embedded", "../internal/diagnosis", "../lock", "../config")
	for _, message := range slices.Sorted(maps.Keys(said)) {
		levels, ok := documented[message]
		if !ok {
			t.Errorf("log.md has no row for `%s` (%v)", message, said[message])
			continue
		}
		for _, level := range said[message] {
			if !strings.Contains(levels, level) {
				t.Errorf("log.md: `%s` is logged as %s, too", message, level)
			}
		}
	}
	for message := range documented {
		if said[message] == nil {
			t.Errorf("log.md: `%s` is logged nowhere", message)
		}
	}
	if len(said) < 60 {
		t.Errorf("only %d messages were found in the source", len(said))
	}
}
