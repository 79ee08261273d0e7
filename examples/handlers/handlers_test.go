package handlers_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/solotick/solotick/examples/handlers"
	"github.com/solotick/solotick/internal/testing/needs"
	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/rig"
)

const secret = "s3cret"

// patience is for what must come, on a busy machine.
const patience = time.Minute

// failing is a store that fails for two keys.
type failing struct{ handlers.Memory }

var errAway = errors.New("the store is away")

func (s *failing) Begin(ctx context.Context, job, key string, token int64) (handlers.Verdict, *handlers.Answer, error) {
	if strings.HasSuffix(key, "/no-begin") {
		return 0, nil, errAway
	}
	return s.Memory.Begin(ctx, job, key, token)
}

func (s *failing) End(ctx context.Context, key string, token int64, a *handlers.Answer) error {
	if strings.HasSuffix(key, "/no-end") {
		return errAway
	}
	return s.Memory.End(ctx, key, token, a)
}

// goApp is the same small app as those of the other languages: it answers with the code of ?codes= that is next for the
// job, after ?take= milliseconds. A test can pretend to be another peer.
func goApp(t *testing.T) string {
	var mu sync.Mutex
	counts := map[string]int{}
	work := func(w http.ResponseWriter, r *http.Request) {
		job := r.Header.Get("Solotick-Job")
		mu.Lock()
		counts[job]++
		n := counts[job]
		mu.Unlock()
		take, _ := strconv.Atoi(r.FormValue("take"))
		time.Sleep(time.Duration(take) * time.Millisecond)
		codes := strings.Split(r.FormValue("codes"), ",")
		w.Header().Set("Content-Type", "application/json")
		code := codes[min(n, len(codes))-1]
		switch status, err := strconv.Atoi(code); {
		case code == "throw":
			panic("broken")
		case code == "torn":
			fmt.Fprint(w, "the beginning")
			panic("broken")
		case err == nil:
			if status == http.StatusServiceUnavailable {
				w.Header().Set("Retry-After", "7")
			}
			w.WriteHeader(status)
		}
		fmt.Fprintf(w, `{"n":%d}`, n)
		if code == "late" { // an error after the answer
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	store := &failing{}
	guarded := handlers.Middleware(secret, store, http.HandlerFunc(work))
	mux := http.NewServeMux()
	long(t, mux, store)
	mux.HandleFunc("POST /jobs/work", func(w http.ResponseWriter, r *http.Request) {
		if peer := r.Header.Get("Test-Peer"); peer != "" {
			r.RemoteAddr = net.JoinHostPort(peer, "1")
		}
		guarded.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /count", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprint(w, counts[r.FormValue("job")])
	})
	s := httptest.NewUnstartedServer(mux)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // the panics
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// language is an app in another language than Go.
type language struct {
	name, dir string
	needs     string
	try       []string // a command that fails if it is missing
	app       []string // the secret follows
}

// jars are those of Debian's libtomcat10-embed-java and libjakarta-annotation-api-java.
const jars = "/usr/share/java/tomcat10-embed-core.jar:/usr/share/java/jakarta-annotation-api.jar"

const needsPHP = "PHP 8 with pcntl and SQLite 3.35"

// php is a command that fails unless PHP has what the app needs, and this.
func php(more string) []string {
	return []string{"php", "-r", `if (PHP_VERSION_ID < 80000 || !function_exists("pcntl_exec")) exit(1);
		$has = (new PDO("sqlite::memory:"))->query("SELECT sqlite_version()")->fetchColumn();
		if (version_compare($has, "3.35", "<")) exit(1); ` + more}
}

func languages() []language {
	python := "/usr/bin/python3" // the one for which the system's packages are
	if _, err := os.Stat(python); err != nil {
		python = "python3"
	}
	return []language{
		{"express", "node", "express for node", []string{"node", "-e", "require('express')"}, []string{"node", "app.js", "express"}},
		{"fastify", "node", "fastify for node", []string{"node", "-e", "require('fastify')"}, []string{"node", "app.js", "fastify"}},
		{"Python", "python", "uvicorn for python3", []string{python, "-c", "import uvicorn, sqlite3"}, []string{python, "app.py"}},
		{"WSGI", "python", "python3", []string{python, "-c", "import wsgiref"}, []string{python, "wsgi_app.py"}},
		{"PHP", "php", needsPHP, php(""), []string{"php", "app.php", "plain"}},
		{"PSR-15", "php", needsPHP + ", and Nyholm's PSR-7", php(`require "Nyholm/Psr7/autoload.php";`),
			[]string{"php", "app.php", "psr15"}},
		{"Laravel", "php", needsPHP + ", and Symfony's HttpFoundation",
			php(`require "Symfony/Component/HttpFoundation/autoload.php";`), []string{"php", "app.php", "laravel"}},
		{"Rack", "ruby", "Puma for ruby", []string{"ruby", "-e", `require "rack"; require "puma"`}, []string{"ruby", "app.rb"}},
		{"Java", "java", "a JDK with Tomcat 10", []string{"sh", "-c", "command -v javac && ls " + strings.ReplaceAll(jars, ":", " ")}, nil},
	}
}

// command runs a command in a directory to its end.
func command(dir string, argv ...string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", argv[0], err, out)
	}
	return nil
}

// ready returns the command of the app, if the machine has what it needs.
func (l language) ready(t *testing.T) []string {
	t.Helper()
	needs.That(t, l.needs, command(l.dir, l.try...))
	files, _ := filepath.Glob(l.dir + "/*.*")
	for _, file := range files { // so that go test runs again when they change
		if _, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if l.app != nil {
		return l.app
	}
	classes, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"java", noPerfData, "-Djava.io.tmpdir=" + scratch, "-XX:TieredStopAtLevel=1", "-cp", jars + ":" + classes, "App"}
}

// named is the language of a name.
func named(name string) language {
	return languages()[slices.IndexFunc(languages(), func(l language) bool { return l.name == name })]
}

var address = regexp.MustCompile(`http://[0-9.:]+`)

// start starts an app in another language, which prints its address first.
func (l language) start(t *testing.T, argv []string) string {
	t.Helper()
	cmd := exec.Command(argv[0], append(argv[1:], secret)...)
	cmd.Dir, cmd.Stderr, cmd.Env = l.dir, os.Stderr, append(os.Environ(), "TMPDIR="+scratch)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // all processes of PHP's own server
		_ = cmd.Wait()
	})
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s did not start: %v", argv[0], err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // PHP's own server goes on to print
	return address.FindString(first)
}

// client sends each request once: on a connection that is used again, Go's own would repeat one that has an
// Idempotency-Key.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// caller calls an app as a replica does, for a job of its own.
type caller struct {
	*testing.T
	language, app, job string
	path               string // "" = /jobs/work
}

// answer is what came back; the status is 0 if the app broke off.
type answer struct {
	status     int
	kind, wait string // Content-Type, Retry-After
	body       string
}

func (c *caller) call(query, key string, token int, headers ...string) answer {
	c.Helper()
	r, err := http.NewRequest(http.MethodPost, c.app+cmp.Or(c.path, "/jobs/work")+"?"+query, nil)
	if err != nil {
		c.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + secret, "Solotick-Job": c.job, "Idempotency-Key": c.job + "/" + key,
		"Solotick-Fencing-Token": strconv.Itoa(token)} {
		r.Header.Set(name, value)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	got, err := client.Do(r)
	if err != nil {
		return answer{}
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		return answer{}
	}
	return answer{got.StatusCode, got.Header.Get("Content-Type"), got.Header.Get("Retry-After"), string(body)}
}

// wants makes a call whose answer has a status.
func (c *caller) wants(status int, what, query, key string, token int, headers ...string) answer {
	c.Helper()
	got := c.call(query, key, token, headers...)
	if got.status != status {
		c.Errorf("%s: answered %d %s, want %d", what, got.status, got.body, status)
	}
	return got
}

// impatient asks again soon: a process of PHP's own server may take a question, and answer it after a call that lasts.
var impatient = &http.Client{Timeout: 500 * time.Millisecond}

// count is how often the work of the job was done.
func (c *caller) count() int {
	c.Helper()
	for deadline := time.Now().Add(patience); ; {
		n, err := c.counted()
		if err == nil {
			return n
		}
		if !os.IsTimeout(err) || time.Now().After(deadline) {
			c.Fatal(err)
		}
	}
}

func (c *caller) counted() (n int, err error) {
	got, err := impatient.Get(c.app + "/count?job=" + c.job)
	if err != nil {
		return 0, err
	}
	defer got.Body.Close()
	err = json.NewDecoder(got.Body).Decode(&n)
	return n, err
}

func (c *caller) wantsCount(want int) {
	c.Helper()
	if n := c.count(); n != want {
		c.Errorf("the work was done %d times, want %d", n, want)
	}
}

// TestAMiddleware checks the middleware of each language, in an app that it starts once.
func TestAMiddleware(t *testing.T) {
	t.Parallel()
	checks := []struct {
		name  string
		check func(*caller)
	}{
		{"admits-the-replica-alone", admitsTheReplicaAlone},
		{"runs-again-after-a-failure-and-never-after-a-success", runsAgainAfterAFailureAndNeverAfterASuccess},
		{"keeps-no-answer-that-only-accepts-the-work", keepsNoAnswerThatOnlyAcceptsTheWork},
		{"passes-an-answer-on-whole", passesAnAnswerOnWhole},
		{"declines-what-is-under-way-until-a-greater-token", declinesWhatIsUnderWayUntilAGreaterToken},
		{"fails-when-its-store-is-away", failsWhenItsStoreIsAway},
		{"answers-a-real-replica", answersARealReplica},
	}
	run := func(t *testing.T, language, app string) {
		for _, c := range checks {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.check(&caller{T: t, language: language, app: app, job: c.name})
			})
		}
	}
	t.Run("Go", func(t *testing.T) {
		t.Parallel()
		run(t, "Go", goApp(t))
	})
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			run(t, l.name, l.start(t, l.ready(t)))
		})
	}
}

func admitsTheReplicaAlone(c *caller) {
	for what, headers := range map[string][]string{"no secret": {"Authorization", ""}, "an empty one": {"Authorization", "Bearer "},
		"another": {"Authorization", "Bearer s3creT"}, "a part": {"Authorization", "Bearer s3c"}, "more": {"Authorization", "Bearer s3cret1"}} {
		if got := c.wants(http.StatusForbidden, what, "", "k", 1, headers...); !strings.Contains(got.body, "the secret is missing or wrong") {
			c.Errorf("%s: answered %q", what, got.body)
		}
	}
	for _, peer := range []string{"192.0.2.1", "10.0.0.1", "2001:db8::1", "fe80::1%eth0", "::ffff:192.0.2.1", "128.0.0.1", "app.example.com"} {
		if got := c.wants(http.StatusForbidden, "the peer "+peer, "", "k", 1, "Test-Peer", peer); !strings.Contains(got.body, "only the replica beside this app") {
			c.Errorf("the peer %s: answered %q", peer, got.body)
		}
	}
	if c.language == "Rack" { // so that a router finds the job all the same
		for _, path := range []string{"//jobs/work", "/%6Aobs/work", "/jobs%2Fwork", "/x/../jobs/work", "/./jobs/work",
			"/%2e/jobs/work", "/%5Cjobs/work", "/jobs/../jobs/work", "/jobs/../x"} {
			c.path = path
			c.wants(http.StatusForbidden, "the path "+path, "", "k", 1, "Authorization", "")
		}
		c.path = ""
	}
	if c.language == "Python" || c.language == "Rack" { // some servers put the root before the path, and some do not
		c.wants(http.StatusForbidden, "another root", "", "k", 1, "Authorization", "", "Test-Root", "/api")
	}
	c.wants(http.StatusBadRequest, "no key", "", "", 1, "Idempotency-Key", "")
	c.wants(http.StatusBadRequest, "no job", "", "k", 1, "Solotick-Job", "")
	for _, token := range []string{"x", "-1", "1e3"} {
		c.wants(http.StatusBadRequest, "the token "+token, "", "k", 1, "Solotick-Fencing-Token", token)
	}
	c.wantsCount(0)
	for n, peer := range []string{"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"} {
		c.wants(http.StatusOK, "the peer "+peer, "codes=200", strconv.Itoa(n), 1, "Test-Peer", peer)
	}
	c.wants(http.StatusOK, "a job without tokens", "codes=200", "none", 1, "Solotick-Fencing-Token", "")
}

// runsAgainAfterAFailureAndNeverAfterASuccess is what a key is for.
func runsAgainAfterAFailureAndNeverAfterASuccess(c *caller) {
	const repeats = 100
	codes := strings.Repeat("500,", repeats) + "throw,torn,404,201"
	for n := range repeats {
		c.wants(http.StatusInternalServerError, "a failure", "codes="+codes, "k", 7)
		if got := c.count(); got != n+1 {
			c.Fatalf("repeat %d: the work was done %d times", n, got)
		}
	}
	c.wants(http.StatusInternalServerError, "an exception", "codes="+codes, "k", 7)
	torn := c.wants(http.StatusInternalServerError, "a body that breaks off", "codes="+codes, "k", 7)
	if c.language == "express" && !strings.HasSuffix(torn.body, "</html>\n") { // its error handler adds to the body
		c.Errorf("an error page has the length of another body: %q", torn.body)
	}
	missing := c.wants(http.StatusNotFound, "not found", "codes="+codes, "k", 7)
	if c.language == "Java" && !strings.Contains(missing.body, "HTTP Status 404") { // the container makes it
		c.Errorf("an error has the page %q", missing.body)
	}
	first := c.wants(http.StatusCreated, "at last", "codes="+codes, "k", 7)
	for range repeats {
		if again := c.call("codes="+codes, "k", 7); again != first {
			c.Fatalf("repeated it is %v, and was %v", again, first)
		}
	}
	c.wantsCount(repeats + 4)
	if other := c.wants(http.StatusCreated, "another tick", "codes="+codes, "l", 7); other.body == first.body {
		c.Errorf("another tick has the answer of the first: %v", other)
	}
}

// keepsNoAnswerThatOnlyAcceptsTheWork: a repeated call would never learn how the work ended.
func keepsNoAnswerThatOnlyAcceptsTheWork(c *caller) {
	for range 2 {
		c.wants(http.StatusAccepted, "a job with async", "codes=202", "k", 7, "Solotick-Callback", "http://127.0.0.1:9748/v1/runs/r")
	}
	c.wantsCount(2)
	for range 2 {
		c.wants(http.StatusAccepted, "a job without async, whose run a 202 ends", "codes=202", "l", 7)
	}
	c.wantsCount(3)
}

// passesAnAnswerOnWhole: also the headers of an answer that is not kept. An error after a success changes nothing of
// it.
func passesAnAnswerOnWhole(c *caller) {
	if got := c.wants(http.StatusServiceUnavailable, "a failure", "codes=503", "k", 1); got.wait != "7" || got.kind[:16] != "application/json" || got.body != `{"n":1}` && got.body != `{"n": 1}` {
		c.Errorf("a failure is passed on as %v", got)
	}
	if c.language == "Go" || c.language == "express" || c.language == "fastify" { // the others have no error after an answer
		if first := c.call("codes=503,late", "late", 1); c.language == "Go" && first.status != http.StatusOK {
			c.Errorf("an error after the answer: answered %v", first)
		}
		if again := c.wants(http.StatusOK, "repeated", "codes=503,late", "late", 1); again.body != `{"n":2}` {
			c.Errorf("the answer before an error is kept as %v", again)
		}
	}
	if c.language == "WSGI" { // an error in the midst of an answer replaces it
		if got := c.wants(http.StatusInternalServerError, "an error after the beginning", "codes=503,redone", "redone", 1); got.body != "broken" {
			c.Errorf("an answer that replaced another one is %q", got.body)
		}
	}
	if slices.Contains([]string{"PHP", "PSR-15", "Laravel"}, c.language) { // after these, no code of the handler runs, nor what caught an exception
		const codes = "codes=503,fatal,exit,200"
		c.wants(http.StatusInternalServerError, "a fatal error", codes, "ended", 1)
		if c.language != "PHP" { // there, exit is an end like any other
			c.wants(http.StatusInternalServerError, "exit", codes, "ended", 1)
		}
		for range 2 {
			if got := c.wants(http.StatusOK, "the end", codes, "ended", 1); c.language == "PHP" && got.body != `{"n":3}` {
				c.Errorf("exit: answered %v", got)
			}
		}
	}
	if c.language == "Java" {
		for range 2 { // nor is it kept
			c.wants(http.StatusInternalServerError, "an answer that would come later", "codes=503,async", "async", 1)
		}
	}
}

// declinesWhatIsUnderWayUntilAGreaterToken: while calls work. If the machine is so busy that they end too soon, longer
// ones are tried.
func declinesWhatIsUnderWayUntilAGreaterToken(c *caller) {
	for round, take := 0, 2*time.Second; !declines(c, round, take); round++ {
		if take *= 3; take > 2*patience {
			c.Fatal("calls end too soon")
		}
	}
}

// declines reports whether the calls lasted for as long as it asked.
func declines(c *caller, round int, take time.Duration) bool {
	before, token, suffix := c.count(), 5+10*round, strconv.Itoa(round)
	begin := func(take time.Duration, token, count int) <-chan answer {
		end := make(chan answer, 1)
		go func() { end <- c.call(fmt.Sprintf("codes=200&take=%d", take.Milliseconds()), "k"+suffix, token) }()
		for len(end) == 0 && c.count() < count {
			time.Sleep(time.Millisecond)
		}
		return end
	}
	old := begin(take, token, before+1)
	second := c.call("", "k"+suffix, token)
	later := begin(take*5/2, token+1, before+2)
	none := c.call("codes=200", "none"+suffix, 0, "Solotick-Fencing-Token", "")
	older := c.call("", "m"+suffix, token)
	lasted := len(old) == 0
	ended := <-old
	again := c.call("", "k"+suffix, token+1)
	lasted = lasted && len(later) == 0
	taken := <-later
	if !lasted && ended.status == http.StatusOK && taken.status == http.StatusOK {
		return false
	}
	for _, a := range []struct {
		what string
		got  answer
		want int
	}{
		{"a second call", second, http.StatusConflict},
		{"a takeover", taken, http.StatusOK},
		{"a run without a token", none, http.StatusOK},
		{"an older run", older, http.StatusPreconditionFailed},
		{"when the old run has ended", again, http.StatusConflict},
	} {
		if a.got.status != a.want {
			c.Errorf("%s: answered %d %s, want %d", a.what, a.got.status, a.got.body, a.want)
		}
	}
	if now := c.wants(http.StatusOK, "when the later run has ended", "", "k"+suffix, token+1); now.body != taken.body {
		c.Errorf("the answer of the old run counts: %v, and %v was answered", now, taken)
	}
	c.wantsCount(before + 3)
	return true
}

// failsWhenItsStoreIsAway: no work is done without a key, and no success is told that a repeat would not be told, too.
func failsWhenItsStoreIsAway(c *caller) {
	for key, count := range map[string]int{"no-begin": 0, "no-end": 1} {
		before := c.count()
		if got := c.call("codes=200", key, 1); got.status < 500 {
			c.Errorf("%s: answered %d", key, got.status)
		}
		c.wantsCount(before + count)
	}
	c.wants(http.StatusConflict, "the work may have been done", "codes=200", "no-end", 1)
	c.wants(http.StatusOK, "when the store is back", "codes=200", "k", 1)
}

// TestWorkGoesOnAfterItsAnswer: the key is under way until the work has ended. Other languages have handlers for that.
func TestWorkGoesOnAfterItsAnswer(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"WSGI", "Rack"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := named(name)
			goesOnAfterItsAnswer(&caller{T: t, language: name, app: l.start(t, l.ready(t)), job: "later"})
		})
	}
}

func goesOnAfterItsAnswer(c *caller) {
	end := func(ok string) {
		c.path = "/end"
		c.wants(http.StatusOK, "the end", "job=later&ok="+ok, "k", 5)
		c.path = ""
	}
	for _, ok := range []string{"no", "yes"} {
		c.wants(http.StatusAccepted, "a call", "codes=later", "k", 5, "Solotick-Callback", "http://127.0.0.1:9748/v1/runs/r")
		c.wants(http.StatusConflict, "while it works", "codes=later", "k", 5, "Solotick-Callback", "http://127.0.0.1:9748/v1/runs/r")
		end(ok)
	}
	c.wants(http.StatusOK, "when it has succeeded", "codes=later", "k", 5, "Solotick-Callback", "http://127.0.0.1:9748/v1/runs/r")
	c.wantsCount(2)
}

// TestTheStoreOfPHPFreesAndForgetsKeys: those of calls that died, and old ones.
func TestTheStoreOfPHPFreesAndForgetsKeys(t *testing.T) {
	t.Parallel()
	l := named("PHP")
	c := &caller{T: t, language: l.name, app: l.start(t, l.ready(t)), job: "dies"}
	ask := func(path, query string) {
		c.path = path
		c.wants(http.StatusOK, path, query, "k", 5)
		c.path = ""
	}
	dies := func(want int, what string) {
		c.wants(want, what, "codes=200", "no-end", 5, "Solotick-Replica", "one")
	}
	dies(http.StatusInternalServerError, "a call whose end is lost")
	ask("/started", "replica=two")
	dies(http.StatusConflict, "the app of another replica has started")
	ask("/started", "replica=one")
	dies(http.StatusInternalServerError, "its app has started")
	c.wantsCount(2)

	c.wants(http.StatusOK, "a call", "codes=200", "k", 5)
	ask("/forget", "keep=600")
	c.wants(http.StatusOK, "a repeat", "codes=200", "k", 5)
	c.wantsCount(3)
	ask("/forget", "keep=-5")
	c.wants(http.StatusOK, "a repeat of long ago", "codes=200", "k", 5)
	c.wantsCount(4)
	dies(http.StatusConflict, "what may be under way is not forgotten")
}

// TestTheStoreOfPHPHasTheSQLOfThePage: all but the table of keys, which here tells their age.
func TestTheStoreOfPHPHasTheSQLOfThePage(t *testing.T) {
	words := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(text)), " ")
	}
	store, page, n := words("php/solotick.php"), words("../../docs/handlers.md"), 0
	for _, block := range strings.Split(page, "```sql ")[1:] {
		statement, _, _ := strings.Cut(block, "; ```")
		if strings.HasPrefix(statement, "CREATE TABLE solotick_calls") || strings.HasPrefix(statement, "UPDATE balances") {
			continue
		}
		n++
		if !strings.Contains(store, statement) {
			t.Errorf("the store lacks %s", statement)
		}
	}
	if n != 6 {
		t.Errorf("the page has %d statements of the store", n)
	}
}

// answersARealReplica, which calls again after a failure, and works on each tick once.
func answersARealReplica(c *caller) {
	c.job = "work"
	redis := redistest.Start(c)
	one := replica(c.T, redis.URL(), "one", fmt.Sprintf(`schedule: "* * * * * *", retry: {limit: 3, backoff: 10ms}, `+
		`http: {url: "%s/jobs/work?codes=500,throw,200", idempotencyKey: uuid, headers: {Authorization: "Bearer ${SECRET}"}}`, c.app))
	var runs []struct {
		Outcome string
		Attempt int
	}
	for deadline := time.Now().Add(patience); len(runs) < 2; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.Fatal("the app was not called")
		}
		out, err := verb(c.T, one, "history", "-o", "json").Output()
		if err == nil {
			err = json.Unmarshal(out, &runs)
		}
		if err != nil {
			c.Fatalf("%v, %s", err, out)
		}
	}
	first := runs[len(runs)-1]
	if first.Outcome != "succeeded" || first.Attempt != 3 {
		c.Errorf("the first run: %+v", first)
	}
}

// TestAnEmptySecretIsRefused: as that of a variable that is not set.
func TestAnEmptySecretIsRefused(t *testing.T) {
	t.Run("Go", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("it is taken")
			}
		}()
		handlers.Middleware("", &handlers.Memory{}, nil)
	})
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			app := append([]string{"timeout", "60"}, l.ready(t)...)
			if err := command(l.dir, append(app, "")...); err == nil || !strings.Contains(err.Error(), "the secret is empty") {
				t.Errorf("it is taken: %v", err)
			}
		})
	}
}

// solotick is the binary.
func solotick(t *testing.T) string {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

var scratch string

var built = sync.OnceValues(func() (string, error) {
	root, err := rig.Root()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(scratch, "solotick")
	return binary, rig.Build(root, rig.Package, binary)
})

// noPerfData keeps Java from leaving a directory beside its temporary ones.
const noPerfData = "-XX:-UsePerfData"

// compiled is where the classes of the app in Java are.
var compiled = sync.OnceValues(func() (string, error) {
	classes := filepath.Join(scratch, "classes")
	return classes, command("java", "javac", "-J"+noPerfData, "-Xlint:all,-serial,-deprecation", "-Werror", "-cp", jars, "-d", classes, "SolotickFilter.java", "App.java")
})

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "solotick-handlers-"); err != nil {
		panic(err)
	}
	_ = flag.Set("test.parallel", "12") // they wait for apps and replicas
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// replica starts a replica of a service that calls an app.
func replica(t *testing.T, redis, name, job string) *exec.Cmd {
	t.Helper()
	return replicaOf(t, redis, name, fmt.Sprintf("admin: \"\"\njobs:\n  - {name: work, %s}\n", job))
}

// replicaOf starts a replica with a table, in which redis is the address and further keys. It is killed at the end.
func replicaOf(t *testing.T, redis, name, text string) *exec.Cmd {
	t.Helper()
	table := filepath.Join(t.TempDir(), "table.yaml")
	text = fmt.Sprintf("service: handlers\nredis: {url: %s}\nlisten: \"\"\n%s", redis, text)
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(solotick(t), "run", "-c", table, "--replica", name)
	cmd.Env = append(os.Environ(), "SECRET="+secret, rig.NoPlace)
	var written strings.Builder
	cmd.Stdout, cmd.Stderr = &written, &written
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s\n%s", name, written.String())
		}
	})
	return cmd
}

// verb is a command of an operator for the table of a replica.
func verb(t *testing.T, replica *exec.Cmd, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(solotick(t), append(args, replica.Args[2:4]...)...)
	cmd.Env = replica.Env
	return cmd
}

// TestTheWriteOfARunThatWasTakenOverIsRefused: a replica stands still for longer than its lease. Another one takes its
// run over. The old handler, which knows nothing of that, writes after the new one.
func TestTheWriteOfARunThatWasTakenOverIsRefused(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	var mu sync.Mutex
	var greatest int64 // of the writes: the fence of the system that the job writes to
	write := func(token int64) bool {
		mu.Lock()
		defer mu.Unlock()
		if token < greatest {
			return false
		}
		greatest = token
		return true
	}
	var calls atomic.Int64
	var once sync.Once
	began, written, refused := make(chan string, 1), make(chan struct{}), make(chan bool, 1)
	work := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strconv.ParseInt(r.Header.Get("Solotick-Fencing-Token"), 10, 64)
		if calls.Add(1) == 1 {
			began <- r.Header.Get("Solotick-Replica")
			<-written
			refused <- !write(token)
			return
		}
		if write(token) && r.Header.Get("Solotick-Kind") == "takeover" {
			once.Do(func() { close(written) })
		}
	})
	app := httptest.NewServer(handlers.Middleware(secret, &handlers.Memory{}, work))
	defer app.Close()
	job := fmt.Sprintf(`schedule: "* * * * * *", guarantee: at-least-once, timeout: 10m, lock: {ttl: 4s}, http: {url: %q, headers: {Authorization: "Bearer ${SECRET}"}}`, app.URL)
	replicas := map[string]*exec.Cmd{}
	for _, name := range []string{"one", "two"} {
		replicas[name] = replica(t, redis.URL(), name, job)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	holder := ""
	select {
	case holder = <-began:
	case <-ctx.Done():
		t.Fatal("the job did not begin")
	}
	if err := replicas[holder].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	select {
	case <-written: // the takeover has written
	case <-ctx.Done():
		t.Fatal("no replica took the run over")
	}
	if err := replicas[holder].Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if !<-refused {
		t.Error("the old run wrote after the new one")
	}
	mu.Lock()
	defer mu.Unlock()
	if greatest == 0 {
		t.Error("nothing was written")
	}
}

// TestTheSQLOfThePageDoesWhatItSays runs it in SQLite, also as the store of two copies of an app.
func TestTheSQLOfThePageDoesWhatItSays(t *testing.T) {
	t.Parallel()
	for _, l := range languages() {
		if l.name == "Python" {
			python := l.ready(t)[0]
			if _, err := os.ReadFile("../../docs/handlers.md"); err != nil { // so that go test runs again when it changes
				t.Fatal(err)
			}
			if err := command(l.dir, python, "sql_check.py", "../../../docs/handlers.md"); err != nil {
				t.Error(err)
			}
		}
	}
}
