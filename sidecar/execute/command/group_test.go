package command

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/solotick/solotick/sidecar/execute"
)

// played makes an executor of a shell script in which "$self" is the test binary.
func (l *lifelines) played(script string, grace time.Duration) execute.Executor {
	return sh(script, Options{
		KillGrace: grace,
		Env:       []string{"PATH=" + os.Getenv("PATH"), "LIFELINE=" + l.path, "self=" + os.Args[0], noRaceExit},
	})
}

// pid is what the script has written to "$LIFELINE.pid".
func (l *lifelines) pid(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(l.path + ".pid")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// begin executes in the background.
func begin(t *testing.T, e execute.Executor) (stop func(error), result func() execute.Result) {
	return beginRun(t, e, aRun())
}

func beginRun(t *testing.T, e execute.Executor, r execute.Run) (stop func(error), result func() execute.Result) {
	ctx, cancel := contextWithCause(t)
	results := make(chan execute.Result, 1)
	go func() { results <- e.Execute(ctx, r) }()
	return func(cause error) { cancel(cause) }, func() execute.Result {
		t.Helper()
		select {
		case res := <-results:
			return res
		case <-time.After(patience):
			t.Fatal("Execute does not return")
			panic("unreachable")
		}
	}
}

func TestACanceledCommandIsTerminatedAndItsLastWordsAreKept(t *testing.T) {
	l := newLifelines(t)
	stop, result := begin(t, l.played(`trap 'echo bye; exit 0' TERM; ROLE=hold NAME=child "$self" & wait; wait`, time.Hour))
	child := l.next(t, "child")
	stop(errLockLost)
	res := result()
	wantCause(t, res)
	if res.Code != 0 || res.Output != "bye" {
		t.Errorf("%+v", res)
	}
	child.gone(t)
}

func TestACommandThatIgnoresTermIsKilled(t *testing.T) {
	l := newLifelines(t)
	stop, result := begin(t, l.played(`ROLE=deaf NAME=main exec "$self"`, 50*time.Millisecond))
	main := l.next(t, "main")
	stop(errLockLost)
	res := result()
	wantCause(t, res)
	if res.Code != -1 {
		t.Errorf("%+v", res)
	}
	main.gone(t)
}

// A run whose lock is lost must be over before its lease is, whatever grace it would have otherwise.
func TestACommandThatIgnoresTermIsKilledEarlyOnceItsLeaseIsOver(t *testing.T) {
	for name, asked := range map[string]int64{"before it is told to end": 0, "in its grace": 3} {
		t.Run(name, func(t *testing.T) {
			l := newLifelines(t)
			var times atomic.Int64
			r := aRun()
			r.Lasts = func(time.Duration) bool { return times.Add(1) <= asked }
			stop, result := beginRun(t, l.played(`ROLE=deaf NAME=main exec "$self"`, time.Hour), r)
			main := l.next(t, "main")
			stop(errLockLost) // in the grace, the lease ends after the context, which keeps its first cause
			wantCause(t, result())
			main.gone(t)
		})
	}
}

func TestAGrandchildThatIgnoresTermIsKilledWithTheGroup(t *testing.T) {
	l := newLifelines(t)
	stop, result := begin(t, l.played(`ROLE=deaf NAME=grandchild "$self" & wait`, 50*time.Millisecond))
	grandchild := l.next(t, "grandchild")
	stop(errLockLost)
	wantCause(t, result())
	grandchild.gone(t)
}

func TestAGrandchildHasTheWholeGraceAlsoWhenItsShellDiesAtOnce(t *testing.T) {
	l := newLifelines(t)
	stop, result := begin(t, l.played(`echo $$ > "$LIFELINE.pid"; ROLE=tidy NAME=grandchild "$self" & wait`, time.Hour))
	grandchild := l.next(t, "grandchild")
	stop(errLockLost)
	grandchild.expect(t, "term")
	awaitExit(l.pid(t))
	for range 1000 { // long enough for a signal that should not come
		io.WriteString(grandchild, "ping\n")
		grandchild.expect(t, "ping")
	}
	grandchild.CloseWrite()
	grandchild.expect(t, "done")
	wantCause(t, result())
	grandchild.gone(t)
}

func TestAStoppedCommandHearsOfTheEnd(t *testing.T) {
	l := newLifelines(t)
	stop, result := begin(t, l.played(`echo $$ > "$LIFELINE.pid"; ROLE=tidy NAME=main exec "$self"`, time.Hour))
	main := l.next(t, "main")
	if err := syscall.Kill(l.pid(t), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stop(errLockLost)
	main.expect(t, "term")
	main.CloseWrite()
	wantCause(t, result())
}

func TestWhatIsLeftInTheGroupIsKilledAtTheEnd(t *testing.T) {
	l := newLifelines(t)
	if err := syscall.Mkfifo(l.path+".go", 0o600); err != nil {
		t.Fatal(err)
	}
	_, result := begin(t, l.played(`ROLE=deaf NAME=left "$self" & read wait < "$LIFELINE.go"; echo over`, time.Hour))
	left := l.next(t, "left")
	if err := os.WriteFile(l.path+".go", []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	res := result()
	wantStatus(t, res, execute.Succeeded)
	if res.Output != "over\n(the command left processes in its group when it ended, and they were killed: 1)" {
		t.Errorf("%+v", res)
	}
	left.gone(t)
}

func TestAProcessThatLeftTheGroupHoldsNobodyUpAndLivesOn(t *testing.T) {
	l := newLifelines(t)
	_, result := begin(t, l.played(`ROLE=escape exec "$self"`, 0))
	escaped := l.next(t, "escaped")
	res := result() // though the output is still open
	wantStatus(t, res, execute.Succeeded)
	if res.Output != "escaped" {
		t.Errorf("%+v", res)
	}
	escaped.alive(t)
	escaped.CloseWrite()
	escaped.gone(t)
}

func TestTheEndOfTheContextAfterTheEndOfTheCommandChangesNothing(t *testing.T) {
	ctx, cancel := contextWithCause(t)
	res := sh("exit 3", Options{}).Execute(ctx, aRun())
	cancel(errLockLost)
	wantStatus(t, res, execute.Failed)
}

func TestACommandDiesWithItsSidecarButNotWithAThreadOfIt(t *testing.T) {
	l := newLifelines(t)
	sidecar := exec.Command(os.Args[0])
	sidecar.Env = []string{"ROLE=sidecar", "LIFELINE=" + l.path, noRaceExit}
	sidecar.Stderr = os.Stderr
	out, err := sidecar.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sidecar.Start(); err != nil {
		t.Fatal(err)
	}
	defer sidecar.Wait()
	defer sidecar.Process.Kill()
	defer time.AfterFunc(patience, func() { sidecar.Process.Kill() }).Stop() // it waits for all its commands to be there
	if said, err := bufio.NewReader(out).ReadString('\n'); said != "threads have ended\n" {
		t.Fatalf("the sidecar said %q: %v", said, err)
	}
	var jobs []*lifeline
	for range playedJobs {
		jobs = append(jobs, l.next(t, "job"))
	}
	for _, job := range jobs {
		job.alive(t)
	}
	if err := sidecar.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs {
		job.gone(t)
	}
}
