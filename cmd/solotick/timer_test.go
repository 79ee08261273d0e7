package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

func TestATimerIsKeptAsItsFlagsSay(t *testing.T) {
	t.Chdir(t.TempDir())
	mini := miniredis.RunT(t)
	mini.SetTime(morning)
	for name, text := range map[string]string{"table.yaml": "service: billing\njobs: []\n", "body.json": "{\"invoice\": 4711}\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errOut bytes.Buffer
	args := []string{"timer", "set", "-c", "table.yaml", "--redis", "redis://" + mini.Addr(), "later", "--at", "2027-03-30", "--url", "http://127.0.0.1:8080/remind",
		"--method", "PUT", "--header", "X-Token: hunter2", "--body", "@body.json", "--retry", "3", "--timeout", "1m", "--guarantee", "at-least-once"}
	if code := (&app{out: &out, err: &errOut}).commandLine(args); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errOut)
	}
	rdb := lock.NewClient(redis.UniversalOptions{Addrs: []string{mini.Addr()}}, patience)
	defer rdb.Close()
	store, err := service.New(rdb, "billing", lock.Options{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"at":"2027-03-30T00:00:00Z","http":{"method":"PUT","url":"http://127.0.0.1:8080/remind","headers":{"X-Token":"hunter2"},"body":"{\"invoice\": 4711}\n"},"timeout":"1m","guarantee":"at-least-once","retry":{"limit":3}}`
	if source, _, err := store.Timer(t.Context(), "later"); err != nil || string(source) != want {
		t.Errorf("kept as %s, %v, want\n%s", source, err, want)
	}
}
