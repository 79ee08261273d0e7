package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tries runs `solotick try` with a table of these jobs.
func tries(t *testing.T, jobs string, args ...string) (code int, out, errOut string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "table.yaml")
	if err := os.WriteFile(file, []byte("service: shop\njobs:\n"+jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	code = commandLine(append([]string{"try", "-c", file, "--replica", "mine"}, args...), &o, &e)
	return code, o.String(), e.String()
}

func TestATriedCallIsTheCallOfAReplicaAndIsShown(t *testing.T) {
	t.Setenv(redisVariable, "redis://:hunter2@127.0.0.1:1/0") // nobody listens there, and nobody is asked
	t.Setenv("TOKEN", "hunter2")
	var got *http.Request
	var body string
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		got, body = r, string(data)
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/job?again=hunter2", http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprint(w, "{\"sent\": 3}\nbye\x1b[2J\n")
	}))
	defer app.Close()
	job := fmt.Sprintf(`  - {name: mail, schedule: "@hourly", suspend: true, http: {url: "%s/moved?key=${TOKEN}",
      headers: {Authorization: "Bearer ${TOKEN}", X-Team: ops}, body: '{"dry": "hunter2"}'}}
`, app.URL)
	code, out, errOut := tries(t, job, "mail")
	if code != 0 || errOut != "" {
		t.Fatalf("exit code %d, %s%s", code, out, errOut)
	}
	if strings.Contains(out, "hunter2") {
		t.Errorf("it shows a secret:\n%s", out)
	}
	want := `^POST ` + app.URL + `/moved\?\*\*\*
  Idempotency-Key: "shop/mail/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
  Solotick-Service: shop
  Solotick-Job: mail
  Solotick-Tick: \S{24}
  Solotick-Run: [-0-9a-f]{36}
  Solotick-Attempt: 1
  Solotick-Replica: mine
  Solotick-Kind: manual
  Authorization: \*\*\*
  Content-Type: application/json
  User-Agent: solotick/\S+
  X-Team: \*\*\*
  a body of 18 bytes
POST ` + app.URL + `/job\?\*\*\*
(?s:.*)
answer
  \{"sent": 3\}
  bye␛\[2J
succeeded after \d+(\.\d)?m?s: the app answered 200
$`
	if !regexp.MustCompile(want).MatchString(out) {
		t.Errorf("it shows\n%s", out)
	}
	// The header fields shown are those that were sent.
	shown := map[string]string{}
	for line := range strings.Lines(out) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			shown[name] = value
		}
	}
	for name := range got.Header {
		switch value := got.Header.Get(name); {
		case name == "Authorization" && value == "Bearer hunter2", name == "X-Team" && value == "ops", name == "Content-Length", name == "Connection":
		case shown[name] != value:
			t.Errorf("%s: %q was sent, and %q is shown", name, value, shown[name])
		}
	}
	if body != `{"dry": "hunter2"}` || got.Header.Get("Solotick-Fencing-Token") != "" || got.Header.Get("Solotick-Job") != "mail" {
		t.Errorf("sent were %q and %v", body, got.Header)
	}
}

func TestATriedCommandGetsTheEnvironmentOfARun(t *testing.T) {
	t.Setenv(redisVariable, "redis://:hunter2@127.0.0.1:1/0")
	t.Setenv("TOKEN", "hunter2")
	code, out, errOut := tries(t, `  - {name: tidy, schedule: "@hourly", exec: {command: [sh, -c, "env; echo oops >&2; exit 3"], env: {TOKEN: "${TOKEN}", MINE: yes-mine}}}
`, "tidy")
	if code != exitProblem || errOut != "" {
		t.Errorf("exit code %d, %s", code, errOut)
	}
	begin, printed, _ := strings.Cut(out, "\n| ")
	if !strings.HasPrefix(begin, "sh with 2 arguments\n  SOLOTICK_IDEMPOTENCY_KEY=\"shop/tidy/") ||
		!strings.HasSuffix(begin, "SOLOTICK_KIND=manual\n  MINE=***\n  TOKEN=***") || strings.Contains(begin, "hunter2") {
		t.Errorf("it shows\n%s", begin)
	}
	for line := range strings.Lines(begin) { // what is shown is what the command got
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "SOLOTICK_") && !strings.Contains(printed, line) {
			t.Errorf("%s is not in its environment", line)
		}
	}
	if !strings.Contains(printed, "| MINE=yes-mine\n") || strings.Contains(printed, redisVariable) || strings.Contains(printed, "FENCING") {
		t.Errorf("its environment:\n%s", printed)
	}
	// Two pipes carry the two streams, so the order of their lines is not known.
	if !strings.Contains(out, "\n| oops\n") || !regexp.MustCompile(`\nfailed after \d+(\.\d)?m?s: the command exited with code 3\n$`).MatchString(out) {
		t.Errorf("its end:\n%s", out)
	}
}

func TestATriedJobThatNeverBegan(t *testing.T) {
	for job, want := range map[string]string{
		`exec: {command: [/no/such/file]}`:      `^/no/such/file\n(  .*\n)+not_started: starting the command: .*no such file`,
		`http: {url: "http://127.0.0.1:1/job"}`: `^POST http://127.0.0.1:1/job\n(  .*\n)+not_started: calling the app: .*refused`,
	} {
		code, out, errOut := tries(t, `  - {name: x, schedule: "@hourly", `+job+"}\n", "x")
		if code != exitProblem || !regexp.MustCompile(want).MatchString(out) || errOut != "" {
			t.Errorf("%s: exit code %d, %s%s", job, code, out, errOut)
		}
	}
}

func TestATryRunsNothingThatATableDoesNotSay(t *testing.T) {
	const job = `  - {name: x, schedule: "@hourly", exec: {command: ["true"]%s}}` + "\n"
	for name, row := range map[string]struct {
		more, arg, says string
		code            int
	}{
		"another name":      {"", "other", `^error: the table has no job "other"\nhint: without names, solotick next shows all jobs\n$`, exitUsage},
		"a name misspelt":   {"", "xx", `^error: the table has no job "xx"\nhint: did you mean "x"\?\n$`, exitUsage},
		"no time":           {"", "x --tick soon", `^error: --tick "soon" is not a time\n`, exitUsage},
		"an unset variable": {`, env: {A: "${NOT_SET_HERE}"}`, "x", `NOT_SET_HERE(.|\n)*error: \S+ has 1 problem\n$`, exitProblem},
		"a bad output":      {"", "x -o yaml", `^error: --output "yaml"`, exitUsage},
		"no name":           {"", "", `^error: try takes the name of one job`, exitUsage},
	} {
		code, out, errOut := tries(t, fmt.Sprintf(job, row.more), strings.Fields(row.arg)...)
		if code != row.code || out != "" || !regexp.MustCompile(row.says).MatchString(errOut) {
			t.Errorf("%s: exit code %d, %s%s", name, code, out, errOut)
		}
	}
}

func TestATryCanHaveATick(t *testing.T) {
	var key string
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key = r.Header.Get("Idempotency-Key")
		w.WriteHeader(http.StatusAccepted)
	}))
	defer app.Close()
	job := fmt.Sprintf(`  - {name: mail, schedule: "0 9 * * *", timeZone: Europe/Berlin, http: {url: %q}}`+"\n", app.URL)
	code, out, errOut := tries(t, job, "mail", "--tick", "2027-03-28 09:00")
	if code != 0 || key != `"shop/mail/2027-03-28T07:00:00.000Z"` {
		t.Errorf("exit code %d, key %s\n%s%s", code, key, out, errOut)
	}
	if !strings.HasSuffix(out, "the app answered 202, which ends the run: with http.async the app ends it by itself\n") {
		t.Errorf("it says nothing of the answer 202:\n%s", out)
	}
}
