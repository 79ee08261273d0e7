package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gh prints its arguments and the body, and says that an issue is open if there is one.
const gh = `#!/bin/sh
echo "gh $*" >&2
[ "$2" != list ] || printf '%s' "$OPEN"
while [ $# -gt 1 ]; do
	[ "$1" != --body-file ] || cat "$2" >&2
	shift
done
`

// opens gives what .ci/issue says to gh about a log.
func opens(t *testing.T, log, open string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gh"), []byte(gh), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "log")
	if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("../../.ci/issue", "make sim", file)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "OPEN="+open, "GITHUB_RUN_ID=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestAFailureOpensAnIssueWithTheCommandThatPlaysItAgain(t *testing.T) {
	const again = "go -C proof test ./sim -run TestSeeds -from=5 -seeds=1 -v -long"
	out := opens(t, "    sim_test.go:9: seed 5\n        again: "+again+"\nagain: "+again+"\n"+strings.Repeat("long ", 100_000)+"\n--- FAIL\n", "")
	for _, want := range []string{"gh label create proof --force", "gh issue create --title A proof failed: make sim --label proof",
		"```sh\n" + again + "\n```", "--- FAIL\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%.3000s", want, out)
		}
	}
	if len(out) > 60_000 {
		t.Errorf("%d characters are more than an issue has room for", len(out))
	}
}

func TestAFailureWithoutASeedNamesTheWholeCommand(t *testing.T) {
	if out := opens(t, "exit status 1\n", ""); !strings.Contains(out, "```sh\nmake sim\n```") {
		t.Errorf("no command in\n%s", out)
	}
}

func TestAnIssueThatIsOpenGetsAComment(t *testing.T) {
	if out := opens(t, "exit status 1\n", "7\n"); !strings.Contains(out, "gh issue comment 7 ") || strings.Contains(out, "gh issue create") {
		t.Errorf("no comment in\n%s", out)
	}
}
