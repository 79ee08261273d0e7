package packaging

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const page = "../docs/install.md"

var (
	sections = regexp.MustCompile(`(?m)^## (.*)$`)
	// blocks have a mark, if they need a published release, and commands.
	blocks = regexp.MustCompile("(?ms)^(<!-- needs a published release -->\n)?```sh\n(.*?)^```$")
)

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// commands are those of a section of the page, by block, that need nothing published.
func commands(t *testing.T, section string) (all []string) {
	t.Helper()
	_, text, ok := strings.Cut(readPage(t), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("the page has no section %q", section)
	}
	if end := sections.FindStringIndex(text); end != nil {
		text = text[:end[0]]
	}
	for _, b := range blocks.FindAllStringSubmatch(text, -1) {
		if b[1] == "" {
			all = append(all, b[2])
		}
	}
	if len(all) == 0 {
		t.Fatalf("the section %q has no commands", section)
	}
	return all
}

// download is what the commands that need a published release would have left.
func (m *machine) download(t *testing.T, r release) {
	t.Helper()
	m.env = append(m.env, "VERSION="+r.version, "OS=linux", "ARCH="+runtime.GOARCH)
	m.give(t, filepath.Join(r.dir, "checksums.txt"), r.file(".tar.gz"), r.file(".deb"), r.file(".rpm"))
}

func (m *machine) shell(t *testing.T, dir, script string) string {
	t.Helper()
	out, err := m.tryIn(dir, "sh", "-euc", script)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return out
}

func TestThePageHasNoOtherSections(t *testing.T) {
	tried := []string{"An archive", "Debian and Ubuntu", "Fedora, Red Hat, SUSE", "With Go", "From source", "Shell completion"}
	for _, s := range sections.FindAllStringSubmatch(readPage(t), -1) {
		_, text, _ := strings.Cut(readPage(t), s[0]+"\n")
		if end := sections.FindStringIndex(text); end != nil {
			text = text[:end[0]]
		}
		for _, b := range blocks.FindAllStringSubmatch(text, -1) {
			if b[1] == "" && !slices.Contains(tried, s[1]) {
				t.Errorf("no test runs the commands of %q:\n%s", s[1], b[2])
			}
		}
	}
}

func TestTheArchiveIsInstalledAsThePageSays(t *testing.T) {
	r := theRelease(t)
	m := newMachine(t)
	m.download(t, r)
	all := commands(t, "An archive")
	if len(all) != 2 {
		t.Fatalf("%d blocks of commands, want one to install and one to uninstall", len(all))
	}
	out := m.shell(t, "/files", all[0])
	if !strings.Contains(out, filepath.Base(r.file(".tar.gz"))+": OK\n") || !strings.Contains(out, "solotick v"+r.version+" (go") {
		t.Errorf("it printed\n%s", out)
	}
	m.shell(t, "/files", all[1])
	if left := m.left(t, "/files", "/dev", "/proc"); len(left) > 0 {
		t.Errorf("left: %s", left)
	}
	m.write(t, "/files/"+filepath.Base(r.file(".tar.gz")), "another one", 0o644)
	if out, err := m.tryIn("/files", "sh", "-euc", all[0]); err == nil {
		t.Errorf("an archive that was changed is installed:\n%s", out)
	}
	listed, err := exec.Command("tar", "-tzf", r.file(".tar.gz")).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(string(listed))
	slices.Sort(got)
	if want := []string{"LICENSE", "README.md", "examples/quickstart/table.yaml", "solotick", "solotick-import"}; !slices.Equal(got, want) {
		t.Errorf("the archive has %s, want %s", got, want)
	}
}

func TestThePackagesAreInstalledAsThePageSays(t *testing.T) {
	for section, tool := range map[string]string{"Debian and Ubuntu": "dpkg", "Fedora, Red Hat, SUSE": "rpm"} {
		t.Run(tool, func(t *testing.T) {
			needed(t, tool)
			m := newMachine(t)
			m.download(t, theRelease(t))
			m.write(t, "/usr/bin/systemctl", systemctl, 0o755) // no systemd runs there
			for _, block := range commands(t, section) {
				if tool == "rpm" {
					block = strings.ReplaceAll(block, "rpm -", rpm+" -")
				}
				m.shell(t, "/files", block)
			}
			left := slices.DeleteFunc(m.left(t, append(theBooks, "/usr/bin/systemctl")...), func(file string) bool {
				return tool == "rpm" && slices.Contains(fedoras, file)
			})
			if len(left) > 0 {
				t.Errorf("left: %s", left)
			}
			if tool == "dpkg" {
				if calls := m.read(t, "/files/calls"); !strings.HasPrefix(calls, "enable --now solotick with\n") {
					t.Errorf("systemctl is asked for\n%s", calls)
				}
			}
			if _, err := m.try("getent", "passwd", "solotick"); err == nil {
				t.Error("the user is still there")
			}
		})
	}
}

// goDirectories are those of the Go that runs this test.
func goDirectories(t *testing.T) (root, cache, modules string) {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(out))
	return all[0], all[1], all[2]
}

func TestTheSourceIsBuiltAsThePageSays(t *testing.T) {
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	goroot, cache, modules := goDirectories(t)
	m := newMachine(t, root, goroot, cache, modules)
	m.env = append(m.env, "PATH="+filepath.Join(goroot, "bin")+":/usr/local/bin:/usr/bin:/bin", "GOCACHE="+cache, "GOMODCACHE="+modules,
		"GOFLAGS=-buildvcs=false", "VERSION=v0.1.0")
	for _, block := range commands(t, "From source") {
		m.shell(t, root, block)
	}
	if got := m.run(t, "/usr/local/bin/solotick", "version"); !strings.HasPrefix(got, "solotick v0.1.0 (go") {
		t.Errorf("the version is %q", got)
	}
}

// A source is a file of the tree, by its path below the root.
type source struct{ root, path string }

func (s source) Path() string                 { return s.path }
func (s source) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(s.root, s.path)) }
func (s source) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(s.root, s.path)) }

// tree are the files that a commit of everything would have.
func tree(t *testing.T, root string) (files []zip.File) {
	t.Helper()
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		s := source{root, strings.TrimSuffix(line, "\n")}
		if _, err := s.Lstat(); err == nil { // git also lists a file that was deleted since the last commit
			files = append(files, s)
		}
	}
	return files
}

// A proxy of modules in a directory has this tree as its newest version, and the modules that it requires from the
// cache.
func TestGoInstallMakesTheSameProgram(t *testing.T) {
	r := theRelease(t)
	goroot, cache, modules := goDirectories(t)
	m := newMachine(t, goroot, cache, modules)
	const version = "v0.1.0"
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	place := "/files/proxy/github.com/solotick/solotick/@v/"
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	m.write(t, place+"list", version+"\n", 0o644)
	m.write(t, place+version+".info", `{"Version":"`+version+`"}`, 0o644)
	m.write(t, place+version+".mod", string(gomod), 0o644)
	archive, err := os.Create(m.root + place + version + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := zip.Create(archive, module.Version{Path: "github.com/solotick/solotick", Version: version}, tree(t, root)); err != nil {
		t.Fatal(err)
	}
	// -trimpath and CGO_ENABLED=0 let the compiler take most of what it needs from the cache of other tests. The sum
	// database does not know this tree. The go command keeps an index of each module in the cache, by its version, for
	// good: that of another tree must not stand for this one's.
	m.env = append(m.env, "PATH="+filepath.Join(goroot, "bin")+":/usr/local/bin:/usr/bin:/bin", "GOCACHE="+cache, "GOPATH=/files/go",
		"GOFLAGS=-trimpath", "GODEBUG=goindex=0", "CGO_ENABLED=0", "GOSUMDB=off", "GOPROXY=file:///files/proxy,file://"+filepath.Join(modules, "cache", "download"))
	all := commands(t, "With Go")
	if len(all) != 2 {
		t.Fatalf("%d blocks of commands, want one to install and one to uninstall", len(all))
	}
	if out := m.shell(t, "/files", all[0]); !strings.Contains(out, "solotick "+version+" (go") {
		t.Errorf("it printed\n%s", out)
	}
	m.download(t, r)
	m.shell(t, "/files", commands(t, "An archive")[0])
	for _, verb := range []string{"help", "schema", "completion bash"} {
		args := strings.Fields(verb)
		if ours, theirs := m.run(t, "/usr/local/bin/solotick", args...), m.run(t, "/files/go/bin/solotick", args...); ours != theirs {
			t.Errorf("solotick %s of the release and of go install differ:\n%s\n%s", verb, ours, theirs)
		}
	}
	m.shell(t, "/files", all[1])
	if m.has("/files/go/bin/solotick") {
		t.Error("the binary is still there")
	}
}

func TestCompletionIsInstalledAsThePageSays(t *testing.T) {
	r := theRelease(t)
	m := newMachine(t)
	m.download(t, r)
	m.shell(t, "/files", commands(t, "An archive")[0])
	m.shell(t, "/files", commands(t, "Shell completion")[0])
	left := m.left(t, "/files", "/dev", "/proc", "/usr/local/bin")
	want := []string{"/etc/bash_completion.d/solotick", "/etc/fish/completions/solotick.fish", "/usr/local/share/zsh/site-functions/_solotick"}
	left = slices.DeleteFunc(left, func(file string) bool {
		info, err := os.Stat(m.root + file)
		return err == nil && info.IsDir()
	})
	if !slices.Equal(left, want) {
		t.Errorf("the files are %s, want %s", left, want)
	}
	t.Run("bash takes the script, and completes a verb with it", func(t *testing.T) {
		needed(t, "bash")
		out := m.run(t, "bash", "-c", `_get_comp_words_by_ref() { cur=valid prev=solotick words=(solotick valid) cword=1; }
			__ltrim_colon_completions() { :; }
			COMP_WORDS=(solotick valid) COMP_CWORD=1 COMP_LINE="solotick valid" COMP_POINT=14
			source /etc/bash_completion.d/solotick; __start_solotick; echo "${COMPREPLY[@]}"`)
		if !strings.Contains(out, "validate") {
			t.Errorf("bash completes %q", out)
		}
	})
}

// The page says which workflow to name when one verifies a signature.
func TestThePageNamesTheWorkflowThatSigns(t *testing.T) {
	named := regexp.MustCompile(`https://github.com/solotick/solotick/(\S+)@refs/tags/v`).FindAllStringSubmatch(readPage(t), -1)
	if len(named) != 2 {
		t.Fatalf("the page names %d workflows, want those of the files and of the image", len(named))
	}
	for _, n := range named {
		text, err := os.ReadFile(filepath.Join(repository, n[1]))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"tags: [\"v[0-9]*\"]", "goreleaser release --clean", "cosign sign --yes", "IMAGE: ghcr.io/${{ github.repository }}"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %q", n[1], want)
			}
		}
	}
	if signature := strings.ReplaceAll(project(t).Signs[0].Signature, "${artifact}", project(t).Checksum.NameTemplate); !strings.Contains(readPage(t), "--bundle "+signature+" ") {
		t.Errorf("the page does not name the signature %s", signature)
	}
}

// A release is made with the Go that the Dockerfile and go.mod ask for, in its newest patch.
func TestTheWorkflowsUseTheGoOfTheModule(t *testing.T) {
	gomod, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(gomod))[1]
	for _, name := range []string{"ci.yaml", "release.yaml"} {
		text, err := os.ReadFile(filepath.Join(repository, ".github", "workflows", name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "go-version: \""+version+"\"\n          check-latest: true\n") {
			t.Errorf("%s does not set up the newest Go %s", name, version)
		}
	}
	if !strings.Contains(readPage(t), "| Go "+version+" |") {
		t.Errorf("the page does not ask for Go %s", version)
	}
}

func TestThePageSaysWhereFilesGo(t *testing.T) {
	text := readPage(t)
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(/[^`]+)` \\| ([^|]*) \\|").FindAllStringSubmatch(text, -1) {
		if row[2] != "the service" {
			documented[row[1]] = row[2]
		}
	}
	there := map[string]string{}
	for _, format := range []string{"deb", "rpm"} {
		for file, mode := range installed(t, format) {
			if mode[0] == 'd' && documented[file] == "" {
				continue // the files in it are named
			}
			there[file] = strings.TrimPrefix(there[file]+", "+format, ", ")
		}
	}
	for file, formats := range there {
		if documented[file] != formats {
			t.Errorf("%s is in %q, and the page says %q", file, formats, documented[file])
		}
	}
	for file := range documented {
		if there[file] == "" {
			t.Errorf("%s is in no package", file)
		}
	}
}
