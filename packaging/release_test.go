package packaging

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

const repository = ".."

// programs are what a release has.
var programs = []string{"solotick", "solotick-import"}

// A release is a directory of files for this machine's architecture.
type release struct {
	dir, version string // the version without v
}

func (r release) file(ending string) string {
	return filepath.Join(r.dir, "solotick_"+r.version+"_linux_"+runtime.GOARCH+ending)
}

// project reads .goreleaser.yaml as goreleaser does: a key that it does not know is an error.
func project(t *testing.T) config.Project {
	t.Helper()
	p, err := config.Load(filepath.Join(repository, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var (
	makeOnce sync.Once
	made     release
)

// theRelease is what goreleaser has made, or what is made here once for all tests.
func theRelease(t *testing.T) release {
	t.Helper()
	makeOnce.Do(func() {
		if *dist == "" {
			made = makeRelease(t)
			return
		}
		text, err := os.ReadFile(filepath.Join(*dist, "metadata.json"))
		if err != nil {
			t.Fatal(err)
		}
		var metadata struct{ Version string }
		if err := json.Unmarshal(text, &metadata); err != nil {
			t.Fatal(err)
		}
		made = release{*dist, metadata.Version}
	})
	if made.dir == "" {
		t.Fatal("the release could not be made, see the first test that asked for it")
	}
	return made
}

// makeRelease makes the archive, the packages and the checksums as goreleaser would.
func makeRelease(t *testing.T) release {
	t.Helper()
	p := project(t)
	dir, err := os.MkdirTemp("", "solotick-release-") // outlives the test
	if err != nil {
		t.Fatal(err)
	}
	r := release{dir, "0.1.0"}
	makeTarget(t, "completions", "VERSION=v"+r.version)
	for _, format := range p.NFPMs[0].Formats {
		makePackage(t, p, format, r.version, r.file("."+format))
	}
	makeArchive(t, p.Archives[0], r.file(".tar.gz"))
	var sums strings.Builder
	for _, ending := range []string{".deb", ".rpm", ".tar.gz"} {
		content, err := os.ReadFile(r.file(ending))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), filepath.Base(r.file(ending)))
	}
	if err := os.WriteFile(filepath.Join(dir, p.Checksum.NameTemplate), []byte(sums.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return r
}

func makeTarget(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("make", append([]string{"--no-print-directory"}, args...)...)
	cmd.Dir = repository
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// expand replaces goreleaser's variables. One that is not here is an error.
func expand(t *testing.T, p config.Project, version, text string) string {
	t.Helper()
	form, err := template.New("").Option("missingkey=error").Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := form.Execute(&out, map[string]string{
		"ProjectName": p.ProjectName, "Version": version, "Os": "linux", "Arch": runtime.GOARCH, "CommitDate": "2026-01-02T03:04:05Z",
	}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// makePackage does with nfpm what goreleaser does. A key that has no line here fails the test.
func makePackage(t *testing.T, p config.Project, format, version, out string) {
	t.Helper()
	c := p.NFPMs[0]
	if got, want := expand(t, p, version, c.FileNameTemplate)+"."+format, filepath.Base(out); got != want {
		t.Errorf("the package is called %s, want %s", got, want)
	}
	mtime, err := time.Parse(time.RFC3339, expand(t, p, version, c.MTime))
	if err != nil {
		t.Fatal(err)
	}
	var content files.Contents
	for _, name := range programs {
		content = append(content, &files.Content{Source: filepath.Join(repository, "bin", name), Destination: "/usr/bin/" + name,
			FileInfo: &files.ContentFileInfo{Mode: 0o755, MTime: mtime}})
	}
	for _, f := range c.Contents {
		source := f.Source
		if source != "" {
			source = filepath.Join(repository, source)
		}
		content = append(content, &files.Content{Source: source, Destination: f.Destination, Type: f.Type, Packager: f.Packager,
			FileInfo: &files.ContentFileInfo{Owner: f.FileInfo.Owner, Group: f.FileInfo.Group, Mode: f.FileInfo.Mode}})
		if f.FileInfo = (config.FileInfo{Mode: f.FileInfo.Mode}); !reflect.DeepEqual(f, config.NFPMContent{
			Source: f.Source, Destination: f.Destination, Type: f.Type, Packager: f.Packager, FileInfo: f.FileInfo,
		}) {
			t.Errorf("%s has keys that this test does not know", f.Destination)
		}
	}
	script := func(name string) string { return filepath.Join(repository, name) }
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: p.ProjectName, Arch: runtime.GOARCH, Platform: "linux", Version: version, MTime: mtime,
		Section: c.Section, Priority: c.Priority, Maintainer: c.Maintainer, Description: c.Description, Vendor: c.Vendor,
		Homepage: c.Homepage, License: c.License,
		Overridables: nfpm.Overridables{Umask: c.Umask, Recommends: c.Recommends, Contents: content, Scripts: nfpm.Scripts{
			PostInstall: script(c.Scripts.PostInstall), PreRemove: script(c.Scripts.PreRemove), PostRemove: script(c.Scripts.PostRemove),
		}},
	})
	known := config.NFPM{Formats: c.Formats, MTime: c.MTime, Section: c.Section, Priority: c.Priority, Maintainer: c.Maintainer,
		Description: c.Description, Vendor: c.Vendor, Homepage: c.Homepage, License: c.License,
		NFPMOverridables: config.NFPMOverridables{FileNameTemplate: c.FileNameTemplate, Umask: c.Umask, Recommends: c.Recommends,
			Contents: c.Contents, Scripts: config.NFPMScripts{
				PostInstall: c.Scripts.PostInstall, PreRemove: c.Scripts.PreRemove, PostRemove: c.Scripts.PostRemove,
			}}}
	if !reflect.DeepEqual(c, known) {
		t.Errorf("nfpms has keys that this test does not know: %+v, known %+v", c, known)
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		t.Fatal(err)
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := packager.Package(info, f); err != nil {
		t.Fatal(err)
	}
}

func makeArchive(t *testing.T, c config.Archive, out string) {
	t.Helper()
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	compressed, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(compressed)
	add := func(file, name string, mode os.FileMode) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: int64(mode), Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range programs {
		add(filepath.Join(repository, "bin", name), name, c.BuildsInfo.Mode)
	}
	for _, file := range c.Files {
		add(filepath.Join(repository, file.Source), file.Source, file.Info.Mode)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
}

// The flags of the build stand in two places: in the Makefile, for everyone, and in .goreleaser.yaml.
func TestGoreleaserBuildsAsMakeDoes(t *testing.T) {
	p := project(t)
	if len(p.Builds) != len(programs) {
		t.Fatalf("%d builds, want those of %s", len(p.Builds), programs)
	}
	for i, b := range p.Builds {
		checkBuild(t, p, b, programs[i])
	}
	if *dist != "" {
		checkBinaries(t)
		checkFiles(t)
	}
}

// checkBuild holds a build of goreleaser to that of make, which makes all programs at once.
func checkBuild(t *testing.T, p config.Project, b config.Build, name string) {
	t.Helper()
	var command strings.Builder
	for _, e := range b.Env {
		command.WriteString(e + " ")
	}
	command.WriteString("go build " + strings.Join(b.Flags, " "))
	command.WriteString(" -tags " + strings.Join(b.Tags, ","))
	command.WriteString(` -ldflags "` + expand(t, p, "0.1.0", strings.Join(b.Ldflags, " ")) + `"`)
	command.WriteString(" -o bin/ ./cmd/...")
	if got := strings.TrimSpace(makeTarget(t, "-n", "build", "VERSION=v0.1.0")); got != command.String() {
		t.Errorf("make runs        %s\ngoreleaser runs  %s", got, command.String())
	}
	known := config.Build{ID: name, Binary: name, Main: "./cmd/" + name, Goos: []string{"linux", "darwin"}, Goarch: []string{"amd64", "arm64"}, ModTimestamp: b.ModTimestamp,
		BuildDetails: config.BuildDetails{Env: b.Env, Flags: b.Flags, Ldflags: b.Ldflags, Tags: b.Tags}}
	if !reflect.DeepEqual(b, known) {
		t.Errorf("the build is %+v, want %+v", b, known)
	}
}

// checkBinaries holds the binaries of goreleaser to those of make: the page says that they are the same.
func checkBinaries(t *testing.T) {
	t.Helper()
	makeTarget(t, "build", "VERSION=v"+theRelease(t).version)
	for _, name := range programs {
		theirs, err := filepath.Glob(filepath.Join(*dist, name+"_linux_"+runtime.GOARCH+"_*", name))
		if err != nil || len(theirs) != 1 {
			t.Fatalf("the binaries of goreleaser are %s, %v", theirs, err)
		}
		var content [2][]byte
		for i, file := range []string{filepath.Join(repository, "bin", name), theirs[0]} {
			if content[i], err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(content[0], content[1]) {
			t.Errorf("make build and goreleaser make different binaries of %s", name)
		}
	}
}

// checkFiles looks for all files of a release, for all systems.
func checkFiles(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(*dist, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for line := range strings.Lines(string(text)) {
		got = append(got, strings.Fields(line)[1])
	}
	for _, system := range []string{"darwin", "linux"} {
		for _, arch := range []string{"amd64", "arm64"} {
			for _, ending := range []string{"cdx.json", "deb", "rpm", "tar.gz"} {
				if system == "linux" || ending == "cdx.json" || ending == "tar.gz" {
					want = append(want, "solotick_"+theRelease(t).version+"_"+system+"_"+arch+"."+ending)
				}
				if ending == "cdx.json" { // of each program
					want = append(want, "solotick-import_"+theRelease(t).version+"_"+system+"_"+arch+"."+ending)
				}
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the files are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
