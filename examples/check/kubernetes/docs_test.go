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

const reference = repository + "/docs/kubernetes.md"

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

// The reference shows what is in the tested files, except for how far it is indented.
func TestWhatTheReferenceShowsIsInTheFiles(t *testing.T) {
	files := map[string][]string{}
	for _, dir := range []string{root, charts} {
		if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			files[path] = strings.Split(string(text), "\n")
			return err
		}); err != nil {
			t.Fatal(err)
		}
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

// contains reports whether lines has the part, moved in by any number of columns, by which a list's item may begin
// earlier.
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

// The commands of the reference are tried on the command line itself, and on the files that they name.
func TestTheCommandsOfTheReferenceExist(t *testing.T) {
	c := commands{t: t, program: solotick(t), base: build(t, "base"), seen: map[string]int{}}
	for _, b := range blocks(t) {
		if b.language != "sh" {
			continue
		}
		for _, line := range b.lines {
			line, _, _ = strings.Cut(line, " #")
			words := strings.Fields(line)
			c.seen[words[0]]++
			switch words[0] {
			case "kubectl":
				c.kubectl(line, words[1:])
			case "docker":
				c.docker(line, words)
			case "kind":
				c.kind(line, words)
			case "helm":
				c.helm(line, words)
			case "solotick":
				cmd := exec.Command(c.program, words[1:]...)
				cmd.Dir = repository
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", line, err, out)
				}
			default:
				t.Errorf("%s is not looked at", line)
			}
		}
	}
	if len(c.seen) != 5 || c.seen["kubectl"] < 8 {
		t.Errorf("the reference has only the commands %v", c.seen)
	}
}

// commands looks at those of the reference.
type commands struct {
	t       *testing.T
	program string // solotick
	base    manifests
	seen    map[string]int // how many, by program
	built   []string       // images, by `docker build`
}

func (c *commands) errorf(line, format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("%s: "+format, append([]any{line}, args...)...)
}

// kubectl looks at a command for a cluster.
func (c *commands) kubectl(line string, words []string) {
	c.t.Helper()
	if words[0] == "-n" {
		if words[1] != c.base.deployment.Namespace {
			c.errorf(line, "the manifests are for %s", c.base.deployment.Namespace)
		}
		words = words[2:]
	}
	deployment := "deploy/" + c.base.deployment.Name
	switch verb := words[0]; {
	case verb == "apply" && words[1] == "-k":
		if dir, err := filepath.Rel(root, filepath.Join(repository, words[2])); err != nil || !slices.Contains(kustomizations, dir) {
			c.errorf(line, "no test builds it")
		}
	case verb == "create" && words[1] == "namespace":
		if words[2] != c.base.deployment.Namespace {
			c.errorf(line, "the manifests are for %s", c.base.deployment.Namespace)
		}
	case verb == "rollout" && words[1] == "status":
		if words[2] != deployment {
			c.errorf(line, "there is no %s", words[2])
		}
	case verb == "port-forward":
		if _, port, _ := strings.Cut(c.base.table(c.t).Admin, ":"); words[1] != deployment || words[2] != port {
			c.errorf(line, "the page is on %s of %s", c.base.table(c.t).Admin, deployment)
		}
	case verb == "logs":
		name, value, _ := strings.Cut(words[2], "=")
		if words[1] != "-l" || c.base.deployment.Spec.Template.Labels[name] != value || words[3] != "-c" || words[4] != c.base.app().Name {
			c.errorf(line, "there are no such pods or no such container")
		}
	case verb == "exec":
		if words[1] != deployment || words[3] != c.base.sidecar().Name || words[5] != filepath.Base(entrypoint(c.t, image)) {
			c.errorf(line, "there is no such pod, container or program")
		}
		help, err := exec.Command(c.program, words[6], "--help").CombinedOutput()
		if err != nil {
			c.errorf(line, "%v\n%s", err, help)
		}
		for _, w := range words[7:] {
			if strings.HasPrefix(w, "-") && !strings.Contains(string(help), w+" ") {
				c.errorf(line, "there is no %s", w)
			}
		}
	default:
		c.errorf(line, "is not looked at")
	}
}

// docker looks at the build of an image: of which Dockerfile, and in which directory.
func (c *commands) docker(line string, words []string) {
	c.t.Helper()
	file := "Dockerfile"
	if i := slices.Index(words, "-f"); i > 0 {
		file = words[i+1]
	}
	if words[1] != "build" || words[2] != "-t" || words[len(words)-1] != "." {
		c.errorf(line, "is not looked at")
	}
	if filepath.Join(repository, file) != filepath.Clean(image) {
		c.errorf(line, "no test looks at %s", file)
	}
	c.built = append(c.built, words[3])
}

// kind looks at whether the image of the overlay is the one that was built, and is loaded.
func (c *commands) kind(line string, words []string) {
	c.t.Helper()
	if slices.Equal(words[1:], []string{"create", "cluster"}) {
		return
	}
	m := build(c.t, "overlays/kind")
	used := []string{m.sidecar().Image}
	if m.app().Image != used[0] {
		c.errorf(line, "the app is %s", m.app().Image)
	}
	if !slices.Equal(words[1:3], []string{"load", "docker-image"}) || !slices.Equal(words[3:], used) || !slices.Equal(c.built, used) {
		c.errorf(line, "the overlay uses %q, and %q were built", used, c.built)
	}
}

// helm looks at whether the chart is the tested one.
func (c *commands) helm(line string, words []string) {
	c.t.Helper()
	switch {
	case slices.Equal(words[1:3], []string{"dependency", "update"}):
		words = words[3:]
	case slices.Equal(words[1:4], []string{"upgrade", "--install", "billing"}) && slices.Equal(words[5:7], []string{"--namespace", "billing"}):
		words = words[4:]
	default:
		c.errorf(line, "is not looked at")
	}
	if filepath.Join(repository, words[0]) != filepath.Join(charts, "billing") {
		c.errorf(line, "no test looks at the chart %s", words[0])
	}
}
