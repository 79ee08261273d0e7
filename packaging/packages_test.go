package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// installed are the files of the package, by format. Those of the other format are in other places.
func installed(t *testing.T, format string) map[string]string {
	t.Helper()
	modes := map[string]string{}
	for _, name := range programs {
		modes["/usr/bin/"+name] = "-rwxr-xr-x"
	}
	for _, c := range project(t).NFPMs[0].Contents {
		if c.Packager != "" && c.Packager != format {
			continue
		}
		modes[c.Destination] = c.FileInfo.Mode.String()
		if c.Type == "dir" {
			modes[c.Destination] = "d" + c.FileInfo.Mode.String()[1:]
		}
	}
	return modes
}

func checkInstalled(t *testing.T, m *machine, format string, listed []string) {
	t.Helper()
	want := installed(t, format)
	for file, mode := range want {
		info, err := os.Lstat(m.root + file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if info.Mode().String() != mode {
			t.Errorf("%s has the mode %s, want %s", file, info.Mode(), mode)
		}
		if !slices.Contains(listed, file) {
			t.Errorf("the package does not list %s", file)
		}
	}
	for _, file := range listed {
		info, err := os.Lstat(m.root + file)
		if err != nil {
			t.Errorf("the package lists %s: %v", file, err)
		} else if want[file] == "" && !info.IsDir() {
			t.Errorf("the package has %s besides", file)
		}
	}
	for _, secret := range []string{"environment", "redis-password"} {
		if mode := want["/etc/solotick/"+secret]; mode != "-rw-------" {
			t.Errorf("the file %s of secrets has the mode %q", secret, mode)
		}
	}
	if got := m.run(t, "solotick", "version"); !strings.HasPrefix(got, "solotick v"+theRelease(t).version+" (go") {
		t.Errorf("the version is %q", got)
	}
	user := regexp.MustCompile(`(?m)^solotick:x:(\d+):\d+:Solotick:/var/lib/solotick:`).FindString(m.read(t, "/etc/passwd"))
	if user == "" {
		t.Error("there is no user solotick")
	}
	if got := m.run(t, "solotick", "validate"); !strings.Contains(got, "/etc/solotick/table.yaml") {
		t.Errorf("the example table: %s", got)
	}
	// In /etc/systemd, enabled units are links.
	if m.has("/etc/systemd/system/multi-user.target.wants/solotick.service") {
		t.Error("the service is enabled, with an example as its table")
	}
	for shell, file := range map[string]string{"bash": "/usr/share/bash-completion/completions/solotick",
		"fish": "/usr/share/fish/vendor_completions.d/solotick.fish"} {
		if got := m.read(t, file); got != m.run(t, "solotick", "completion", shell) {
			t.Errorf("%s is not what solotick completion %s prints", file, shell)
		}
	}
}

func TestSystemdTakesTheUnitOfThePackage(t *testing.T) {
	needed(t, "dpkg")
	needed(t, "systemd-analyze")
	m := newMachine(t)
	m.give(t, theRelease(t).file(".deb"))
	if out, err := m.try("systemd-analyze", "verify", "/usr/lib/systemd/system/solotick.service"); err == nil {
		t.Errorf("systemd takes a unit that is not there: %s", out)
	}
	m.run(t, "dpkg", "-i", filepath.Base(theRelease(t).file(".deb")))
	out, err := m.try("systemd-analyze", "verify", "/usr/lib/systemd/system/solotick.service")
	if err != nil || strings.Contains(out, "solotick") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

func TestTheDebLeavesNothing(t *testing.T) {
	needed(t, "dpkg")
	r := theRelease(t)
	m := newMachine(t)
	m.give(t, r.file(".deb"))
	install := func() {
		t.Helper()
		m.run(t, "dpkg", "-i", filepath.Base(r.file(".deb")))
	}
	install()
	checkInstalled(t, m, "deb", strings.Fields(m.run(t, "dpkg", "-L", "solotick")))

	// An upgrade keeps what an administrator has changed, and does not ask.
	m.write(t, "/etc/solotick/table.yaml", "service: mine\n", 0o644)
	m.write(t, "/etc/solotick/redis-password", "secret\n", 0o600)
	install()
	if got := m.read(t, "/etc/solotick/table.yaml"); got != "service: mine\n" {
		t.Errorf("the table is %q after an upgrade", got)
	}

	m.run(t, "systemctl", "enable", "solotick")
	m.write(t, "/var/lib/private/solotick/table.yaml", "service: mine\n", 0o600)
	if err := os.Symlink("private/solotick", m.root+"/var/lib/solotick"); err != nil {
		t.Fatal(err)
	}
	m.run(t, "dpkg", "--remove", "solotick")
	if m.has("/usr/bin/solotick") || m.has("/etc/systemd/system/multi-user.target.wants/solotick.service") {
		t.Error("the binary is still there, or the service still enabled")
	}
	if !m.has("/etc/solotick/table.yaml") || !m.has("/etc/solotick/redis-password") || !m.has("/var/lib/private/solotick/table.yaml") {
		t.Error("the configuration or the state is gone, although the package was only removed, not purged")
	}
	m.run(t, "dpkg", "--purge", "solotick")
	if left := m.left(t, theBooks...); len(left) > 0 {
		t.Errorf("left after a purge: %s", left)
	}
	if _, err := m.try("getent", "passwd", "solotick"); err != nil {
		t.Errorf("the user is gone, and its files elsewhere have no owner: %v", err)
	}
}

// theBooks are kept by dpkg, rpm, systemd and the shadow tools about themselves; /files is the test's own.
var theBooks = []string{"/files", "/var/lib/dpkg/", "/root/.rpmdb", "/var/log/", "/var/cache/ldconfig", "/etc/passwd", "/etc/group", "/etc/shadow",
	"/etc/gshadow", "/etc/subuid", "/etc/subgid", "/etc/.pwd.lock", "/dev", "/proc"}

// fedoras are directories that the package filesystem owns where packages are rpms.
var fedoras = []string{"/usr/share/fish", "/usr/share/fish/vendor_completions.d", "/usr/share/zsh/site-functions"}

const rpm = "rpm --force-debian --nodeps" // on a machine whose packages are Debian's

func TestTheRpmLeavesWhatWasChanged(t *testing.T) {
	needed(t, "rpm")
	r := theRelease(t)
	m := newMachine(t)
	m.give(t, r.file(".rpm"))
	file := filepath.Base(r.file(".rpm"))
	listed := strings.Fields(m.run(t, "rpm", "-qpl", file))
	m.run(t, "sh", "-c", rpm+" -i "+file)
	checkInstalled(t, m, "rpm", listed)
	flags := m.run(t, "rpm", "-qp", "--qf", `[%{FILENAMES} %{FILEFLAGS:fflags}\n]`, file)
	for _, name := range []string{"table.yaml", "environment", "redis-password"} {
		if want := "/etc/solotick/" + name + " cn\n"; !strings.Contains(flags, want) {
			t.Errorf("no %q in\n%s", want, flags)
		}
	}
	m.write(t, "/etc/solotick/table.yaml", "service: mine\n", 0o644)
	m.run(t, "sh", "-c", rpm+" -U --force "+file)
	if got := m.read(t, "/etc/solotick/table.yaml"); got != "service: mine\n" {
		t.Errorf("the table is %q after an upgrade", got)
	}
	m.run(t, "systemctl", "enable", "solotick")
	m.run(t, "sh", "-c", rpm+" -e solotick")
	if left := m.left(t, theBooks...); !slices.Equal(left, append([]string{"/etc/solotick", "/etc/solotick/table.yaml.rpmsave"}, fedoras...)) {
		t.Errorf("left: %s", left)
	}
}

// A systemctl that notes how it is called, and whether the program is there.
const systemctl = `#!/bin/sh
case "$*" in --*) ;; *) echo "$*" $([ -x /usr/bin/solotick ] && echo with) >>/files/calls ;; esac
`

func TestPackagesTellSystemd(t *testing.T) {
	r := theRelease(t)
	for _, f := range []struct{ tool, ending, install, upgrade, remove string }{
		{"dpkg", ".deb", "dpkg -i", "dpkg -i", "dpkg --purge solotick"},
		{"rpm", ".rpm", rpm + " -i", rpm + " -U --force", rpm + " -e solotick"},
	} {
		t.Run(f.tool, func(t *testing.T) {
			needed(t, f.tool)
			m := newMachine(t)
			file := r.file(f.ending)
			m.give(t, file)
			m.write(t, "/usr/bin/systemctl", systemctl, 0o755)
			m.write(t, "/run/systemd/system/.keep", "", 0o644)
			for _, step := range []struct{ name, command, calls string }{
				{"install", f.install + " " + filepath.Base(file), "daemon-reload with\ntry-restart solotick.service with\n"},
				{"upgrade", f.upgrade + " " + filepath.Base(file), "daemon-reload with\ntry-restart solotick.service with\n"},
				{"remove", f.remove, "stop solotick.service with\ndaemon-reload\n"},
			} {
				m.write(t, "/files/calls", "", 0o644)
				m.run(t, "sh", "-c", step.command)
				if got := m.read(t, "/files/calls"); got != step.calls {
					t.Errorf("%s: systemctl is asked for\n%swant\n%s", step.name, got, step.calls)
				}
			}
		})
	}
}

func TestThePackagesSayWhatTheyAre(t *testing.T) {
	needed(t, "dpkg-deb")
	needed(t, "rpm")
	r := theRelease(t)
	show := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	deb := show("dpkg-deb", "--field", r.file(".deb"))
	version := strings.Replace(r.version, "-", "~", 1) // what comes before a release sorts before it
	for _, want := range []string{"Package: solotick\n", "Version: " + version + "\n", "Section: admin\n", "Priority: optional\n",
		"Homepage: https://github.com/solotick/solotick\n", "Recommends: ca-certificates\n", "Description: cron jobs of a service"} {
		if !strings.Contains(deb, want) {
			t.Errorf("no %q in\n%s", want, deb)
		}
	}
	const query = "%{NAME} %{LICENSE} %{URL} %{RECOMMENDS}"
	if got, want := show("rpm", "-qp", "--qf", query, r.file(".rpm")), "solotick Apache-2.0 https://github.com/solotick/solotick ca-certificates"; got != want {
		t.Errorf("the rpm says %q, want %q", got, want)
	}
	if got := show("rpm", "-qp", "--qf", "%{VERSION}", r.file(".rpm")); got != version {
		t.Errorf("the rpm's version is %q, want %q", got, version)
	}
}
