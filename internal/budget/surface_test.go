package budget

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// templates are what people write of the pages that change with each measurement. They count in the place of the pages.
var templates = map[string]string{"benchmarks.md": "bench/benchmarks.md.tmpl", "proof.md": "proof/report/proof.md.tmpl"}

// words counts the words of each page, and of all pages.
func words(root string) (pages []figure, total figure, err error) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return nil, total, err
	}
	n := 0
	for _, file := range append([]string{filepath.Join(root, "README.md")}, files...) {
		if template := templates[filepath.Base(file)]; template != "" {
			file = filepath.Join(root, template)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, total, err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return nil, total, err
		}
		page := counted("words: "+filepath.ToSlash(name), countWords(string(text)))
		pages, n = append(pages, page), n+int(page.now)
	}
	return pages, counted("words: all pages", n), nil
}

// countWords leaves out marks that stand alone, such as the bars of tables.
func countWords(text string) (n int) {
	for field := range strings.FieldsSeq(text) {
		if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

// properties counts the keys of a schema, at any depth.
func properties(schema any) (n int) {
	switch s := schema.(type) {
	case map[string]any:
		for key, value := range s {
			if named, ok := value.(map[string]any); ok && key == "properties" {
				n += len(named)
			}
			n += properties(value)
		}
	case []any:
		for _, value := range s {
			n += properties(value)
		}
	}
	return n
}

var metric = regexp.MustCompile("(?m)^\\| `(solotick_[a-z_]+)` \\|")

// documented counts what the references list. Other tests hold them to the code.
func documented(root string) (keys, paths, metrics int, err error) {
	docs := func(name string) []byte {
		text, failed := os.ReadFile(filepath.Join(root, "docs", name))
		if err == nil {
			err = failed
		}
		return text
	}
	schema, api, page := docs("table.schema.json"), docs("openapi.yaml"), docs("metrics.md")
	if err != nil {
		return 0, 0, 0, err
	}
	var described any
	if err := json.Unmarshal(schema, &described); err != nil {
		return 0, 0, 0, fmt.Errorf("docs/table.schema.json: %w", err)
	}
	var served struct{ Paths map[string]any }
	if err := yaml.Unmarshal(api, &served); err != nil {
		return 0, 0, 0, fmt.Errorf("docs/openapi.yaml: %w", err)
	}
	return properties(described), len(served.Paths), len(metric.FindAll(page, -1)), nil
}

var series = regexp.MustCompile(`(?m)^go (\d+\.\d+)`)

// binary measures the stripped binary for Linux on amd64, in MB, rounded up to a tenth: patches of Go change a little.
// Another series of Go changes more, and then the size is shown and has no limit.
func binary(root, dir string) (figure, error) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return figure{}, err
	}
	build := exec.Command("make", "--silent", "build", "BIN="+dir, "VERSION=v0.0.0")
	build.Dir = root
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
	if text, err := build.CombinedOutput(); err != nil {
		return figure{}, fmt.Errorf("make build: %w\n%s", err, text)
	}
	info, err := os.Stat(filepath.Join(dir, "solotick"))
	if err != nil {
		return figure{}, err
	}
	ours := series.FindSubmatch(mod)
	if ours == nil {
		return figure{}, errors.New("go.mod names no series of Go")
	}
	otherSeries := !strings.HasPrefix(runtime.Version()+".", "go"+string(ours[1])+".")
	return figure{name: "binary: MB, stripped", now: math.Ceil(float64(info.Size())/1e5) / 10, free: otherSeries}, nil
}
