package needs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// script is the one that is tested.
const script = "../../../.ci/install"

// install runs the script on a machine that has a shell and these programs, and returns its output and the calls that
// the programs have noted. The script must not fail.
func install(t *testing.T, programs map[string]string, parts ...string) (said string, calls []string) {
	t.Helper()
	dir := t.TempDir()
	for _, tool := range []string{"sh", "dirname", "tr"} {
		if err := os.Symlink(Program(t, tool), filepath.Join(dir, tool)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(script); err != nil { // so that go test runs again when it changes
		t.Fatal(err)
	}
	cmd := exec.Command(script, parts...)
	cmd.Env = []string{"PATH=" + dir}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	text, _ := os.ReadFile(filepath.Join(dir, "calls")) // without a call there is no file
	return string(out), strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

const (
	root     = "echo 0"
	stranger = "echo 1000"
)

// notes is a program that notes its last argument, and then does something.
func notes(name, then string) string {
	return `for last; do :; done; echo "` + name + ` $last" >>"$(dirname "$0")/calls"; ` + then
}

func TestRootInstallsWhatIsMissing(t *testing.T) {
	const installs = `echo '#!/bin/sh' >"$(dirname "$0")/$last"; /bin/chmod +x "$(dirname "$0")/$last"`
	for then, cleans := range map[string][]string{installs: {"go -testcache"}, "echo no network >&2; exit 100": nil} {
		said, calls := install(t, map[string]string{"id": root, "apt-get": notes("apt", then), "go": notes("go", ""), "promtool": ""},
			"redis", "prometheus")
		if want := append([]string{"apt update", "apt redis-server", "apt prometheus"}, cleans...); !slices.Equal(calls, want) {
			t.Errorf("calls %q, want %q", calls, want)
		}
		if want := "installing redis-server\ninstalling prometheus\n"; said != want {
			t.Errorf("it said %q, want %q", said, want)
		}
	}
}

func TestWhereNothingCanBeInstalledNothingIsSaid(t *testing.T) {
	for what, programs := range map[string]map[string]string{
		"a user":             {"id": stranger, "apt-get": notes("apt", "")},
		"no package manager": {"id": root},
		"a system without such packages": {"id": root, "apk": notes("apk", ""), "redis-server": "", "curl": "", "ip": "", "rpm": "",
			"node": "", "npm": "exit 1", "python3": "", "chromium": "", "prometheus": "", "promtool": ""},
	} {
		if said, calls := install(t, programs); said != "" || len(calls) > 0 {
			t.Errorf("%s: it said %q, and called %q", what, said, calls)
		}
	}
}
