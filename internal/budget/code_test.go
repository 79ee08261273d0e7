package budget

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	module  = "github.com/solotick/solotick/"
	program = "cmd/solotick"
	another = "cmd/solotick-import"
)

// code is what the binary is linked from: on Linux, wherever the test runs.
type code struct {
	root     string
	packages map[string]*build.Package // by their paths below the module
	foreign  map[string]bool           // import paths of other modules
}

// linked follows the imports of a program. It reads the directories itself, unlike go list, so that the cache of go
// test notices a new file.
func linked(root, program string) (*code, error) {
	linux := build.Default
	linux.GOOS, linux.GOARCH, linux.CgoEnabled = "linux", "amd64", false
	c := &code{root: root, packages: map[string]*build.Package{}, foreign: map[string]bool{}}
	for wanted := []string{program}; len(wanted) > 0; {
		path := wanted[0]
		wanted = wanted[1:]
		if c.packages[path] != nil {
			continue
		}
		p, err := linux.ImportDir(filepath.Join(root, path), 0)
		if err != nil {
			return nil, err
		}
		c.packages[path] = p
		for _, i := range p.Imports {
			host, _, _ := strings.Cut(i, "/")
			if own, ok := strings.CutPrefix(i, module); ok {
				wanted = append(wanted, own)
			} else if strings.Contains(host, ".") {
				c.foreign[i] = true
			}
		}
	}
	return c, nil
}

// The groups of the lines of Go, in the order of the table.
const (
	core   = "Go: lock and internal/rds"
	ticks  = "Go: sidecar, tick path"
	looks  = "Go: sidecar, looks"
	rest   = "Go: sidecar, rest"
	table  = "Go: config"
	verbs  = "Go: cmd"
	others = "Go: internal"
)

// flat sorts the files of package sidecar. The tick path is the way of a wake, with the state of jobs and the counters.
// Looks read what others have left in Redis, and deal with it.
var flat = map[string]string{
	ticks: "acquire attempt change everyreplica fire job metrics outcome record register series settle " +
		"span spec standings tally ticks wake yield",
	looks: "deferred due look redisstatus steps takeover timers",
	rest: "ask asker clock cron doc heartbeat life nudges precisesleep_linux ready reload rendezvous roster sidecar slots " +
		"try",
}

// group names the group of a file; "" if it has none.
func group(pkg, file string) string {
	top, _, _ := strings.Cut(pkg, "/")
	switch {
	case pkg == "sidecar":
		for name, files := range flat {
			if slices.Contains(strings.Fields(files), strings.TrimSuffix(file, ".go")) {
				return name
			}
		}
		return ""
	case pkg == "lock", pkg == "internal/rds":
		return core
	}
	return map[string]string{"sidecar": rest, "config": table, "cmd": verbs, "internal": others}[top]
}

// besides counts the lines of Go of what is not in another program.
func (c *code) besides(other *code) (n int, err error) {
	for path, p := range c.packages {
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				return 0, err
			}
			if other.packages[path] == nil {
				n += bytes.Count(text, []byte("\n"))
			}
		}
	}
	return n, nil
}

// wide counts the lines of Go that are wider than 120 columns, with tabs of four.
func (c *code) wide() (n int, err error) {
	for _, p := range c.packages {
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				return 0, err
			}
			for line := range strings.Lines(string(text)) {
				if utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) > 120+len("\n") {
					n++
				}
			}
		}
	}
	return n, nil
}

// lines counts the lines of Go by group.
func (c *code) lines() (figures []figure, err error) {
	count, seen := map[string]int{}, map[string]bool{}
	total := 0
	for path, p := range c.packages {
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				return nil, err
			}
			name := group(path, file)
			if name == "" {
				return nil, fmt.Errorf("%s/%s is in no group: add it to one in internal/budget/code_test.go", path, file)
			}
			n := bytes.Count(text, []byte("\n"))
			count[name] += n
			total += n
			seen[path+"/"+file] = true
		}
	}
	listed := map[string]bool{}
	for _, files := range flat {
		for _, file := range strings.Fields(files) {
			path := "sidecar/" + file + ".go"
			if !seen[path] {
				return nil, fmt.Errorf("%s is in a group, and not in the binary: see internal/budget/code_test.go", path)
			}
			if listed[path] {
				return nil, fmt.Errorf("%s is in two groups of internal/budget/code_test.go", path)
			}
			listed[path] = true
		}
	}
	for _, name := range []string{core, ticks, looks, rest, table, verbs, others} {
		figures = append(figures, counted(name, count[name]))
	}
	return append(figures, counted("Go: all lines", total)), nil
}

// scripts reads the Lua that is embedded in the binary, by file.
func (c *code) scripts() (map[string]string, error) {
	sources := map[string]string{}
	for path, p := range c.packages {
		for _, pattern := range p.EmbedPatterns {
			if filepath.Ext(pattern) != ".lua" {
				continue
			}
			files, err := filepath.Glob(filepath.Join(p.Dir, pattern))
			if err != nil {
				return nil, err
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					return nil, err
				}
				sources[path+"/"+filepath.Base(file)] = string(text)
			}
		}
	}
	return sources, nil
}

var (
	comment   = regexp.MustCompile(`--.*`)
	ledgerUse = regexp.MustCompile(`'(HSET|HGET|HMGET|HDEL)', ledger, `)
	noted     = regexp.MustCompile(`\bnote\('([A-Za-z]+:?)`)
	literal   = regexp.MustCompile(`^'([A-Za-z]+:?)`)
	fieldRow  = regexp.MustCompile("(?m)^\\| (`.*?) \\| ")
	quoted    = regexp.MustCompile("`([A-Za-z]+:?)")
)

// ledgerFields finds the fields of a job's ledger that the scripts name. All fields of a kind, such as r:UUID, are one.
func ledgerFields(scripts map[string]string) map[string]bool {
	fields := map[string]bool{}
	for _, source := range scripts {
		source = comment.ReplaceAllString(source, "")
		for _, m := range ledgerUse.FindAllStringSubmatchIndex(source, -1) {
			step := 1
			if source[m[2]:m[3]] == "HSET" {
				step = 2 // each field is followed by its value
			}
			given := arguments(source[m[1]:])
			for i := 0; i < len(given); i += step {
				if name := literal.FindStringSubmatch(given[i]); name != nil {
					fields[name[1]] = true
				}
			}
		}
		for _, m := range noted.FindAllStringSubmatch(source, -1) {
			fields[m[1]] = true
		}
	}
	return fields
}

// arguments splits the rest of a call at its commas, up to the parenthesis that closes it.
func arguments(source string) (list []string) {
	depth, begin, inText := 0, 0, false
	for i, r := range source {
		switch {
		case r == '\'':
			inText = !inText
		case inText:
		case r == '(' || r == '{':
			depth++
		case (r == ')' || r == '}') && depth > 0:
			depth--
		case r == ')' || r == ',' && depth == 0:
			list = append(list, strings.TrimSpace(source[begin:i]))
			begin = i + 1
			if r == ')' {
				return list
			}
		}
	}
	return list
}

// lua counts the lines of the scripts, and the fields of the ledger. The page of the protocol must list the same
// fields.
func (c *code) lua() ([]figure, error) {
	scripts, err := c.scripts()
	if err != nil {
		return nil, err
	}
	lines := 0
	for _, source := range scripts {
		lines += strings.Count(source, "\n")
	}
	page, err := os.ReadFile(filepath.Join(c.root, "docs", "protocol.md"))
	if err != nil {
		return nil, err
	}
	_, after, _ := strings.Cut(string(page), "The **ledger** of a job is a hash:\n")
	tableOf, _, _ := strings.Cut(strings.TrimSpace(after), "\n\n")
	told := map[string]bool{}
	for _, row := range fieldRow.FindAllStringSubmatch(tableOf, -1) {
		for _, m := range quoted.FindAllStringSubmatch(row[1], -1) {
			told[m[1]] = true
		}
	}
	used := ledgerFields(scripts)
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !told[name] {
			return nil, fmt.Errorf("a script uses the field %q of the ledger, and docs/protocol.md does not list it", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(told)) {
		if !used[name] {
			return nil, fmt.Errorf("docs/protocol.md lists the field %q of the ledger, and no script uses it", name)
		}
	}
	return []figure{counted("Lua: lines", lines), counted("ledger: fields", len(used))}, nil
}

// commands counts the verbs, and their own verbs, by the places where they are made.
func (c *code) commands() (int, error) {
	n := 0
	for _, file := range c.packages[program].GoFiles {
		path := filepath.Join(c.root, program, file)
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return 0, err
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			made, ok := node.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if s, ok := made.Type.(*ast.SelectorExpr); ok && fmt.Sprint(s.X) == "cobra" && s.Sel.Name == "Command" {
				n++
			}
			return true
		})
	}
	return n - 1, nil // the root is no verb
}

var requirement = regexp.MustCompile(`(?m)^\s*(?:require )?(\S+) v\d\S*`)

// dependencies counts the modules that the product's own code imports.
func (c *code) dependencies() (int, error) {
	mod, err := os.ReadFile(filepath.Join(c.root, "go.mod"))
	if err != nil {
		return 0, err
	}
	used := map[string]bool{}
	for path := range c.foreign {
		best := ""
		for _, m := range requirement.FindAllStringSubmatch(string(mod), -1) {
			if (path == m[1] || strings.HasPrefix(path, m[1]+"/")) && len(m[1]) > len(best) {
				best = m[1]
			}
		}
		if best == "" {
			return 0, fmt.Errorf("go.mod requires no module for %s", path)
		}
		used[best] = true
	}
	return len(used), nil
}
