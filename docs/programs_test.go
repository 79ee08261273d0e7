//go:build linux

package docs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Programs that a page's commands really run: none of them can harm the machine that the test runs on. All others have
// a rule below.
var runnable = []string{"solotick", "solotick-import", "curl", "redis-cli", "crontab", "cat", "echo", "grep", "head", "tail", "export"}

// harmless is what such a command may write to: a file of the page's own directory.
var harmless = regexp.MustCompile(`^[a-z][-a-z.]*$`)

// runs reports whether a command line is run, and not only checked.
func runs(simple [][]string) bool {
	if len(simple) == 0 {
		return false
	}
	return !slices.ContainsFunc(simple, func(words []string) bool {
		if to := slices.Index(words, ">"); to > 0 && (to+1 == len(words) || !harmless.MatchString(words[to+1])) {
			return true
		}
		if words[0] == "xargs" && len(words) > 1 {
			words = words[1:]
		}
		return !slices.Contains(runnable, words[0]) && !(words[0] == "kubectl" && len(simple) > 1) // the stand-in, before a pipe
	})
}

// rules say of a program that is not run what is checked of its command line. A program that stands neither here nor
// above fails the test: give it a rule, or a reason.
var rules = map[string]func(w *world, words []string) error{
	"go":       checkGo,
	"make":     checkMake,
	"kubectl":  checkKubectl,
	"docker":   all(onlyVerbs("build", "run", "compose", "pull", "buildx"), checkPaths),
	"helm":     all(onlyVerbs("dependency", "upgrade", "lint", "template", "install"), checkPaths),
	"kind":     reason("makes a cluster; its manifests are held against the API's types by examples/check"),
	"git":      reason("clones this repository, which the test runs in"),
	"apt-get":  reason("changes the machine"),
	".ci/run":  inRepository,
	"promtool": checkPaths,
}

// check applies the rule of the program.
func check(w *world, words []string) error {
	if slices.Contains(runnable, words[0]) {
		return nil
	}
	if words[0] == "sudo" && len(words) > 1 {
		words = words[1:]
	}
	rule, ok := rules[words[0]]
	if !ok {
		return fmt.Errorf("%q is a program that the test of commands does not know: give it a rule in docs/programs_test.go", words[0])
	}
	return rule(w, words)
}

// reason is the rule of programs that nothing can be said about here. It is for the reader of the list alone.
func reason(string) func(*world, []string) error {
	return func(*world, []string) error { return nil }
}

func all(checks ...func(*world, []string) error) func(*world, []string) error {
	return func(w *world, words []string) error {
		for _, c := range checks {
			if err := c(w, words); err != nil {
				return err
			}
		}
		return nil
	}
}

func onlyVerbs(verbs ...string) func(*world, []string) error {
	return func(_ *world, words []string) error {
		if len(words) < 2 || !slices.Contains(verbs, words[1]) {
			return fmt.Errorf("the verb is none of %v", verbs)
		}
		return nil
	}
}

func inRepository(w *world, words []string) error {
	_, err := os.Stat(filepath.Join(w.root, words[0]))
	return err
}

var ourPath = regexp.MustCompile(`^(\./)?(examples|docs|cmd|bench|internal|lock|sidecar|config|\.ci)(/|$)`)

// checkPaths: each argument that is a path of the repository exists there.
func checkPaths(w *world, words []string) error {
	for _, word := range words[1:] {
		if !ourPath.MatchString(word) || strings.Contains(word, "...") {
			continue
		}
		if _, err := os.Stat(filepath.Join(w.root, word)); err != nil {
			return err
		}
	}
	return nil
}

// checkGo: packages exist, what is run is a program, and a test that is named exists in them.
func checkGo(w *world, words []string) error {
	if err := onlyVerbs("run", "build", "test", "vet", "install", "get", "doc", "tool")(w, words); err != nil {
		return err
	}
	if err := checkPaths(w, words); err != nil {
		return err
	}
	for i, word := range words {
		if !strings.HasPrefix(word, "./") || strings.Contains(word, "...") {
			continue
		}
		dir := filepath.Join(w.root, word)
		if words[1] == "run" && i == 2 && !grep(dir, false, `(?m)^package main$`) {
			return fmt.Errorf("%s is no program", word)
		}
		if run := slices.Index(words, "-run"); words[1] == "test" && run > 0 && run+1 < len(words) {
			if !grep(dir, true, `(?m)^func \w*(`+strings.Trim(words[run+1], "^$")+`)`) {
				return fmt.Errorf("%s has no test %s", word, words[run+1])
			}
		}
		return nil
	}
	return nil
}

func grep(dir string, tests bool, pattern string) bool {
	re := regexp.MustCompile(pattern)
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.HasSuffix(file, "_test.go") == tests && re.Match(text)
	})
}

// checkMake: the targets are in the Makefile.
func checkMake(w *world, words []string) error {
	text, err := os.ReadFile(filepath.Join(w.root, "Makefile"))
	if err != nil {
		return err
	}
	for _, target := range words[1:] {
		if !assignment.MatchString(target) && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(target)+`:`).Match(text) {
			return fmt.Errorf("the Makefile has no target %q", target)
		}
	}
	return nil
}

// checkKubectl: what is applied exists, and what is executed beside the app is run here.
func checkKubectl(w *world, words []string) error {
	verbs := []string{"apply", "exec", "create", "get", "logs", "port-forward", "rollout", "delete", "describe", "kustomize", "scale"}
	if !slices.ContainsFunc(words, func(word string) bool { return slices.Contains(verbs, word) }) {
		return fmt.Errorf("the verb is none of %v", verbs)
	}
	if err := checkPaths(w, words); err != nil {
		return err
	}
	if k := slices.Index(words, "-k"); k > 0 {
		if k+1 == len(words) {
			return errors.New("-k names no directory")
		}
		if _, err := os.Stat(filepath.Join(w.root, words[k+1], "kustomization.yaml")); err != nil {
			return err
		}
	}
	if dashes := slices.Index(words, "--"); dashes > 0 {
		rest := words[dashes+1:]
		if len(rest) == 0 || filepath.Base(rest[0]) != "solotick" {
			return fmt.Errorf("it executes %v, which is not Solotick", rest)
		}
		w.run()
		for i, word := range rest {
			rest[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		if out, code, err := w.sh("solotick " + strings.Join(rest[1:], " ")); err != nil || code != 0 {
			return fmt.Errorf("exit code %d, %w\n%s", code, err, out)
		}
	}
	return nil
}
