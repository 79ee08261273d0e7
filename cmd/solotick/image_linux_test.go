package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/internal/testing/needs"
	"github.com/solotick/solotick/internal/testing/redistest"
)

// There is no container engine where tests run. So the test does the steps of an image build: it runs the same command
// of the Makefile, for both architectures, with an empty directory as the root.

const (
	repository = "../.."
	nobody     = 65532
	rootsPath  = "/etc/ssl/certs/ca-certificates.crt"
	binaryPath = "/usr/local/bin/solotick"
	searchPath = "PATH=/usr/local/bin"
)

// dockerfile is the instructions of the Dockerfile by stage.
func dockerfile(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	var stages [][]string
	for _, l := range strings.Split(string(text), "\n") {
		if l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		if strings.HasPrefix(l, "FROM ") {
			stages = append(stages, nil)
		}
		if len(stages) == 0 {
			t.Fatalf("the Dockerfile begins with %q, not with FROM", l)
		}
		stages[len(stages)-1] = append(stages[len(stages)-1], l)
	}
	return stages
}

func TestTheImageHoldsTheBinaryAndTheRootsAlone(t *testing.T) {
	stages := dockerfile(t)
	if len(stages) != 2 {
		t.Fatalf("%d stages, want a build and an image", len(stages))
	}
	mod, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))
	if want := "FROM --platform=$BUILDPLATFORM golang:" + version[1] + " AS build"; stages[0][0] != want {
		t.Errorf("the build stage is %q, and go.mod asks for %q", stages[0][0], want)
	}
	if run := stages[0][len(stages[0])-1]; run != `RUN GOOS=$TARGETOS GOARCH=$TARGETARCH make build PROGRAMS=./cmd/solotick VERSION="$VERSION"` {
		t.Errorf("the build stage ends with %q, not with the Makefile's build", run)
	}
	want := []string{
		"FROM scratch",
		"COPY --from=build " + rootsPath + " " + rootsPath,
		"COPY --from=build /src/bin/solotick " + binaryPath,
		"ENV " + searchPath,
		"USER 65532:65532",
		"EXPOSE 9747",
		`ENTRYPOINT ["` + binaryPath + `"]`,
		`CMD ["run"]`,
	}
	if !slices.Equal(stages[1], want) {
		t.Errorf("the image is\n%s\nwant\n%s", strings.Join(stages[1], "\n"), strings.Join(want, "\n"))
	}
}

func TestTheBuildContextHasAllThatTheBinaryIsMadeOf(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	var let []string
	for _, l := range strings.Split(string(text), "\n") {
		if path, ok := strings.CutPrefix(l, "!"); ok {
			let = append(let, path)
		}
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if .Module}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		dir := strings.TrimPrefix(pkg, "github.com/solotick/solotick/")
		if !slices.ContainsFunc(let, func(l string) bool { return dir == l || strings.HasPrefix(dir, l+"/") }) {
			t.Errorf("the .dockerignore does not let %s through", dir)
		}
	}
	for _, file := range []string{"go.mod", "go.sum", "Makefile"} {
		if !slices.Contains(let, file) {
			t.Errorf("the .dockerignore does not let %s through", file)
		}
	}
}

// releases are the binaries that tests have asked for, by architecture.
var releases struct {
	sync.Mutex
	built map[string]string
}

// release builds the binary for an architecture with the Makefile's command, but to another place.
func release(t *testing.T, arch string) string {
	t.Helper()
	needs.Program(t, "make")
	releases.Lock()
	defer releases.Unlock()
	if out := releases.built[arch]; out != "" {
		return out
	}
	build := exec.Command("make", "--silent", "build", "BIN="+filepath.Join(shared, arch), "VERSION=v0.0.0-test")
	build.Dir = repository
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch)
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building for %s: %v\n%s", arch, err, text)
	}
	if releases.built == nil {
		releases.built = map[string]string{}
	}
	releases.built[arch] = filepath.Join(shared, arch, "solotick")
	return releases.built[arch]
}

// internal/budget holds its size.
func TestTheBinaryIsStaticOnBothArchitectures(t *testing.T) {
	t.Parallel()
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		binary := release(t, arch)
		f, err := elf.Open(binary)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.Machine != machine {
			t.Errorf("%s: the binary is for %s", arch, f.Machine)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
				t.Errorf("%s: the binary is not static: it has a %s", arch, p.Type)
			}
		}
		if f.Section(".symtab") != nil {
			t.Errorf("%s: the binary is not stripped", arch)
		}
	}
}

func TestTheBinaryRunsAloneAndWithoutRights(t *testing.T) {
	t.Parallel()
	needs.Root(t) // only root can chroot
	ca := redistest.NewCA(t)
	s := redistest.Start(t, append(ca.Server("127.0.0.1"), "--tls-auth-clients", "no")...)

	root, err := os.MkdirTemp("", "solotick-image-") // t.TempDir lies behind a directory that nobody may enter
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	roots, err := os.ReadFile(ca.File)
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(release(t, runtime.GOARCH))
	if err != nil {
		t.Fatal(err)
	}
	table := `
service: shop
listen: "127.0.0.1:0"
admin: ""
jobs:
  - {name: job, schedule: "@every 1s", timeZone: Europe/Berlin, exec: {command: [solotick, version]}}
`
	for path, file := range map[string]struct {
		text []byte
		mode os.FileMode
	}{binaryPath: {binary, 0o755}, rootsPath: {roots, 0o644}, "/etc/solotick/table.yaml": {[]byte(table), 0o644}} {
		if err := os.MkdirAll(filepath.Dir(root+path), 0o755); err != nil {
			t.Fatal(err)
		}
		syscall.ForkLock.RLock() // a child of another test, forked meanwhile, would have the binary open for writing: it could not be run
		err := os.WriteFile(root+path, file.text, file.mode)
		syscall.ForkLock.RUnlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	// Container engines bring it, and no command starts without.
	if err := os.Mkdir(root+"/dev", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(root+"/dev/null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		t.Fatalf("making /dev/null: %v", err)
	}
	if err := os.Chmod(root+"/dev/null", 0o666); err != nil { // whatever the umask says
		t.Fatal(err)
	}
	inside := func(args ...string) *exec.Cmd {
		cmd := &exec.Cmd{Path: binaryPath, Args: append([]string{binaryPath}, args...), Env: []string{searchPath}, Dir: "/"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return cmd
	}

	out, err := inside("version").CombinedOutput()
	if want := fmt.Sprintf("solotick v0.0.0-test (%s, linux/%s)\n", runtime.Version(), runtime.GOARCH); err != nil || string(out) != want {
		t.Errorf("version says %q, %v; want %q", out, err, want)
	}
	out, err = inside("next", "-n", "1", "--from", "2027-07-01T00:00:00Z").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("02:00:01 CEST")) {
		t.Errorf("time zones: %s, %v", out, err)
	}
	for name, url := range map[string]string{"plain": s.URL(), "TLS with the image's roots": "rediss://" + s.TLSAddr() + "/0"} {
		r := start(t, inside("run", "--log-format", "json", "--redis", url, "--replica", "image"))
		r.await("solotick v0.0.0-test (" + runtime.Version() + ", linux/" + runtime.GOARCH + ")")
		r.await("finished", "job", "job", "outcome", "succeeded")
		r.stop()
		if t.Failed() {
			t.Fatalf("failed with %s", name)
		}
	}
}
