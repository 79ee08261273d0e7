package convert

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func jobsOf(t *testing.T, text string) []job {
	t.Helper()
	jobs, err := readCrontab(Input{"crontab", []byte(text)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	nameAll(jobs)
	return jobs
}

// The test checks the rules of cron's manual for % by running the converted commands.
func TestWhatFollowsAPercentSignReachesTheCommand(t *testing.T) {
	for line, want := range map[string]string{
		`cat%one%two`:                       "one\ntwo\n",
		`cat%`:                              "",
		`cat%%`:                             "\n",
		`cat%100\% sure`:                    "100% sure\n",
		`cat; echo "it's \%" 'a$b'%in`:      "in\nit's % a$b\n",
		`echo 1\%2`:                         "1%2\n",
		`printf '\%s' "$(cat)" # %a%b%`:     "a\nb",
		`cat%back\slash at the end\`:        "back\\slash at the end\\\n",
		`sh -c 'cat; exit 3'%x`:             "x\n",
		`cat%-n $HOME ${HOME} "quoted" 'x'`: "-n $HOME ${HOME} \"quoted\" 'x'\n",
	} {
		j := jobsOf(t, "* * * * * "+line+"\n")[0]
		cmd := exec.Command(j.command[0], j.command[1:]...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != 0 && !(strings.Contains(line, "exit 3") && code == 3) || string(out) != want {
			t.Errorf("%s printed %q, %v %s, want %q", line, out, err, stderr.String(), want)
		}
	}
}

func TestTheShellOfTheCrontabRunsTheCommand(t *testing.T) {
	jobs := jobsOf(t, "0 0 * * * one\nSHELL=/bin/bash\n0 0 * * * two\n0 0 * * * three%in\n")
	if got := jobs[0].command[0]; got != "/bin/sh" {
		t.Errorf("before SHELL: %s", got)
	}
	if got := jobs[1].command[0]; got != "/bin/bash" {
		t.Errorf("after SHELL: %s", got)
	}
	if got := jobs[2].command; got[3] != "/bin/bash" || got[4] != "three" || got[5] != "in\n" {
		t.Errorf("with standard input: %q", got)
	}
}

// TestWhatALineLeavesBehindIsItsRun: cron kills nothing that a line leaves in the background.
func TestWhatALineLeavesBehindIsItsRun(t *testing.T) {
	for line, want := range map[string]string{
		"nohup sh -c 'sleep 2; date' > /dev/null 2>&1 &": "nohup sh -c 'sleep 2; date' > /dev/null 2>&1",
		"/bin/serve&": "/bin/serve",
		"a & b &":     "a & b",
		"a & wait":    "a & wait",
		`echo \&`:     `echo \&`,
	} {
		j := jobsOf(t, "* * * * * "+line+"\n")[0]
		noted := slices.ContainsFunc(j.notes, func(n note) bool { return n.about == "background" })
		if got := j.command[2]; got != want || noted != (got != line) {
			t.Errorf("%s: %q %v", line, got, j.notes)
		}
	}
}

func TestVariablesHoldForTheEntriesBelowThem(t *testing.T) {
	jobs := jobsOf(t, "0 0 * * * a\nX=1\nY = \" 2 \"\n0 0 * * * b\nX=3\n0 0 * * * c\n")
	for i, want := range []string{"", "X=1 Y= 2 ", "Y= 2  X=3"} {
		var got []string
		for _, v := range jobs[i].env {
			got = append(got, v.name+"="+v.value)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("entry %d has %q, want %q", i+1, s, want)
		}
	}
}

func TestAJobIsCalledAfterItsCommentOrItsCommand(t *testing.T) {
	for text, want := range map[string]string{
		"# Send the Newsletter!\n0 0 * * * /opt/x.sh":                                     "send-the-newsletter",
		"# one\n# two\n0 0 * * * /opt/x.sh":                                               "x",
		"# a comment that goes on for much longer than any name ought to\n0 0 * * * /a/b": "b",
		"#0 1 * * * /opt/off\n0 0 * * * /opt/on":                                          "on",
		"0 0 * * * cd /srv && FOO='a b' php bin/console app:clean --env=prod":             "console-app-clean",
		"0 0 * * * flock -w 5 /tmp/l -c '/opt/run.py --x'":                                "run",
		"0 0 * * * cd /app && bundle exec rake db:trim":                                   "rake-db-trim",
		"0 0 * * * if test -x /a; then /usr/sbin/b; fi":                                   "b",
		"0 0 * * * borg create ::x":                                                       "borg-create",
		"0 0 * * * a\"b c":                                                                "a-b-c",
		"0 0 * * * ...":                                                                   "job",
	} {
		if got := jobsOf(t, text+"\n")[0].name; got != want {
			t.Errorf("%q is called %q, want %q", text, got, want)
		}
	}
}

func TestOddSpacesAreNoPartOfASchedule(t *testing.T) {
	jobs := jobsOf(t, "  0\t0 * *  *\techo  a\n1 \r 1 1 1 echo b\n1 \u00a0 1 1 1 echo c\n")
	if jobs[0].schedule != "0 0 * * *" || jobs[0].command[2] != "echo  a" || jobs[1].lost == "" || jobs[2].lost == "" {
		t.Errorf("got %+v", jobs)
	}
}

func TestTheUserColumnIsFoundWhereItIs(t *testing.T) {
	const line = "0 0 * * * root /bin/true\n"
	for _, c := range []struct {
		file, text string
		want       bool
	}{
		{"/etc/crontab", "0 0 * * * deploy /bin/true\n", true},
		{"rootfs/etc/cron.d/app", "0 0 * * * deploy /bin/true\n", true},
		{"stdin", line, true},
		{"stdin", "# m h dom mon dow user command\n0 0 * * * deploy /bin/true\n", true},
		{"stdin", "# m h dom mon dow command\n" + line, false},
		{"stdin", line + "0 0 * * * deploy /bin/true\n", false},
		{"stdin", "#minute\thour\tmday\tmonth\twday\twho\tcommand\n*/11 * * * * operator /usr/libexec/save-entropy\n", true}, // of FreeBSD
		{"stdin", "# minute hour mday month wday command\n" + line, false},
		{"stdin", "0 5 * * * minecraft /srv/a\n0 6 * * * minecraft /srv/b\n" + line, true},
		{"stdin", line + line + "0 0 * * * deploy /bin/true\n", true},
		{"stdin", "*/11 * * * * operator /usr/libexec/save-entropy\n0 0 * * * _ntp x\n", true},
		{"stdin", "0 5 * * * git fetch\n0 6 * * * git gc\n0 7 * * * php x.php\n", false},
		{"stdin", line + line + "0 0 * * * /bin/true\n", false},
		{"stdin", line + "0 0 * * * echo\n0 0 * * * echo\n", false}, // no command behind a user
		{"stdin", "0 0 * * * /bin/true\n", false},
		{"stdin", "", false},
	} {
		if got := hasUserColumn(c.file, strings.Split(c.text, "\n")); got != c.want {
			t.Errorf("%s with %q: %v", c.file, c.text, got)
		}
	}
	no := false
	jobs, err := readCrontab(Input{"/etc/crontab", []byte(line)}, &no)
	if err != nil || jobs[0].command[2] != "root /bin/true" {
		t.Errorf("said to have no column: %q, %v", jobs[0].command, err)
	}
}
