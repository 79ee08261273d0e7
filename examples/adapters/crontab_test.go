package adapters_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cron is the crontab's line with a cron that knows seconds, since the real one waits for minutes.
func cron(t *testing.T) adapter {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return adapter{name: "cron", dir: "crontab", needs: "sh", try: command("", "sh", "-c", "true"), app: []string{self},
		env: []string{asApp + "=cron", "TMPDIR=" + scratch, "PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH")}}
}

const script = `#!/bin/sh
say() { echo "$1 $SOLOTICK_JOB $SOLOTICK_TICK $SOLOTICK_RUN $SOLOTICK_FENCING_TOKEN"; }
trap 'say stopped; exit 1' TERM
say begun
sleep %s &
wait
say done
`

// cronApp starts the command of the crontab every two seconds.
func cronApp(api, take, skew, job string) error {
	table, err := os.ReadFile("crontab/crontab")
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(table)), "\n")
	fields := strings.SplitN(lines[len(lines)-1], " ", 7) // five of time, the user, the command
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	takes, err := time.ParseDuration(take + "ms")
	if err != nil {
		return err
	}
	by, err := time.ParseDuration(skew + "ms")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "report.sh")
	if err := os.WriteFile(file, fmt.Appendf(nil, script, fmt.Sprint(takes.Seconds())), 0o700); err != nil {
		return err
	}
	command := strings.NewReplacer("/usr/bin/solotick", "solotick", "claim report", "claim --admin "+strings.TrimPrefix(api, "http://")+" "+job,
		"/app/report.sh", file).Replace(fields[6])
	for {
		now := time.Now().Add(by)
		time.Sleep(now.Truncate(step).Add(step).Sub(now))
		cmd := exec.Command("sh", "-c", command)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		go func() { _ = cmd.Wait() }()
	}
}
