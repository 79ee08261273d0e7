package rig

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// patience is for what must come, on a busy machine.
const patience = time.Minute

// call asks the app on a connection of its own, as a job does.
func call(url string) error {
	req, err := http.NewRequest(http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Solotick-Attempt", "2")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	answer, err := client.Do(req)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func startApp(t *testing.T) *App {
	t.Helper()
	app, err := StartApp()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	return app
}

func TestAShutDoorRefusesUntilItIsOpenAgainAtTheSameAddress(t *testing.T) {
	app := startApp(t)
	door, err := app.Open("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := door.URL("job", 0)
	door.Shut()
	if err := call(url); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("calling at a shut door: %v", err)
	}
	if err := call(app.URL("other", 0)); err != nil {
		t.Errorf("calling at another door: %v", err)
	}
	if err := door.Reopen(); err != nil {
		t.Fatal(err)
	}
	if err := call(url); err != nil {
		t.Errorf("calling at the door that is open again: %v", err)
	}
	if seen := app.Seen(); len(seen) != 2 || seen[1].Job != "job" || seen[1].Attempt != 2 || seen[1].Left {
		t.Errorf("the app was asked %+v", seen)
	}
}

func TestWhatIsAtWorkWhenADoorShutsIsAnswered(t *testing.T) {
	app := startApp(t)
	door, err := app.Open("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for n, take := 1, 100*time.Millisecond; ; n, take = n+1, 2*take {
		answered := make(chan error, 1)
		go func() { answered <- call(door.URL("job", take)) }()
		if err := Until(patience, "the call", func() bool { return app.Count() == n }); err != nil {
			t.Fatal(err)
		}
		door.Shut()
		met := app.Seen()[n-1].Ended.IsZero()
		if err := <-answered; err != nil {
			t.Errorf("the call that was at work: %v", err)
		}
		if met || t.Failed() {
			return
		}
		if err := door.Reopen(); err != nil { // the machine was slower than the call
			t.Fatal(err)
		}
	}
}

func TestADoorMayBeASocket(t *testing.T) {
	door, err := startApp(t).Open("unix", filepath.Join(t.TempDir(), "app.sock"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		door.Shut()
		if err := door.Reopen(); err != nil {
			t.Fatal(err)
		}
	}
	if want, got := "http://unix:"+door.addr+":/job?take=5ms", door.URL("job", 5*time.Millisecond); got != want {
		t.Errorf("called at %s, want %s", got, want)
	}
}

func TestACallerThatGoesHasLeft(t *testing.T) {
	app := startApp(t)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		_ = Until(patience, "the call", func() bool { return app.Count() == 1 })
		leave()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, app.URL("job", 10*patience), nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if answer, err := client.Do(req); err == nil {
		answer.Body.Close()
		t.Fatal("a call that takes ten minutes was answered at once")
	}
	if err := Until(patience, "the end of the call", func() bool { s := app.Seen(); return len(s) == 1 && !s[0].Ended.IsZero() }); err != nil {
		t.Fatal(err)
	}
	if !app.Seen()[0].Left {
		t.Error("the caller is gone, and has not left")
	}
}

func TestACallIsDeclinedAsItIsToldTo(t *testing.T) {
	app := startApp(t)
	for decline, want := range map[string]int{"true": http.StatusConflict, "false": http.StatusOK} {
		answer, err := http.Post(app.URL("job", 0)+"&decline="+decline, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("decline=%s: answered %s", decline, answer.Status)
		}
	}
}

func TestTheFirstAttemptsFailAsTheyAreToldTo(t *testing.T) {
	app := startApp(t)
	for _, fail := range []string{"1", "2"} { // the attempt is the second
		if err := call(app.URL("job", 0) + "&fail=" + fail); err != nil {
			t.Fatal(err)
		}
	}
	if err := call(app.URL("job", 0) + "&fail=x"); err != nil {
		t.Fatal(err)
	}
	if seen := app.Seen(); len(seen) != 2 || seen[0].Failed || !seen[1].Failed || len(app.Odd()) != 1 {
		t.Errorf("got %+v, %q", seen, app.Odd())
	}
}
