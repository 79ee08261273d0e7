package kubernetes

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const reference = "../../../docs/kubernetes.md"

// block is a fenced block of the reference.
type block struct {
	language string
	lines    []string
}

func blocks(t *testing.T) (all []block) {
	t.Helper()
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		all = append(all, block{m[1], strings.Split(strings.TrimSuffix(m[2], "\n"), "\n")})
	}
	return all
}

// Whoever reads the reference reads what is in the tested files, but for how far it is indented.
func TestWhatTheReferenceShowsIsInTheFiles(t *testing.T) {
	files := map[string][]string{}
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = strings.Split(string(text), "\n")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, b := range blocks(t) {
		if b.language == "sh" {
			continue
		}
		shown++
		found := false
		for _, lines := range files {
			found = found || contains(lines, b.lines)
		}
		if !found {
			t.Errorf("no file has\n%s", strings.Join(b.lines, "\n"))
		}
	}
	if shown < 8 {
		t.Errorf("the reference shows only %d pieces of files", shown)
	}
}

// contains tells whether lines has the part, moved in by any number of columns, by which a list's item may begin earlier.
func contains(lines, part []string) bool {
	for from := range lines {
		at := strings.Index(lines[from], part[0])
		if at < 0 || strings.TrimLeft(lines[from][:at], " -") != "" || from+len(part) > len(lines) {
			continue
		}
		indent := strings.Repeat(" ", at)
		if slices.EqualFunc(lines[from+1:from+len(part)], part[1:], func(have, want string) bool {
			return have == want || have == indent+want
		}) {
			return true
		}
	}
	return false
}

// What the reference has people type is asked of the command line itself, and of the manifests.
func TestTheCommandsOfTheReferenceExist(t *testing.T) {
	program := solotick(t)
	m := build(t, "base")
	asked := 0
	for _, b := range blocks(t) {
		if b.language != "sh" {
			continue
		}
		for _, line := range b.lines {
			line, _, _ = strings.Cut(line, " #")
			words := strings.Fields(line)
			asked++
			switch verb := words[1]; verb {
			case "apply":
				if _, err := os.Stat(filepath.Join("../../..", words[3], "kustomization.yaml")); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			case "create":
				if words[2] != "namespace" || words[3] != m.deployment.Namespace {
					t.Errorf("%s: the manifests are for %s", line, m.deployment.Namespace)
				}
			case "exec", "port-forward":
				if words[2] != "deploy/"+m.deployment.Name {
					t.Errorf("%s: there is no %s", line, words[2])
				}
				if verb == "port-forward" {
					if _, port, _ := strings.Cut(m.table(t).Admin, ":"); words[3] != port {
						t.Errorf("%s: the page is on %s", line, m.table(t).Admin)
					}
					continue
				}
				if words[4] != m.sidecar().Name || words[6] != m.sidecar().Lifecycle.PreStop.Exec.Command[0] {
					t.Errorf("%s: there is no such container or program", line)
				}
				help, err := exec.Command(program, words[7], "--help").CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v\n%s", line, err, help)
				}
				for _, w := range words[8:] {
					if strings.HasPrefix(w, "-") && !strings.Contains(string(help), w+" ") {
						t.Errorf("%s: there is no %s", line, w)
					}
				}
			default:
				t.Errorf("%s is not looked at", line)
			}
		}
	}
	if asked < 5 {
		t.Errorf("the reference has only %d commands", asked)
	}
}
