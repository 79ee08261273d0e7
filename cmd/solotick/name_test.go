package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

func TestAReplicaIsNamedByFlagThenPodThenHost(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flag, pod  string
		oneMachine bool
		want       string
	}{
		{"flag", "pod", true, "flag"},
		{"", "pod", true, "pod"},
		{"", "", false, host},
		{"", "", true, fmt.Sprintf("%s-%d", host, os.Getpid())},
	} {
		t.Setenv("POD_NAME", c.pod)
		a := &app{replica: c.flag}
		if got, err := a.replicaName(c.oneMachine); got != c.want || err != nil {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
	}
}

func TestTheReplicaFlagStandsForItsVariable(t *testing.T) {
	t.Setenv(replicaVariable, "variable")
	t.Setenv("POD_NAME", "pod")
	for want, args := range map[string][]string{"variable": {}, "flag": {"--replica", "flag"}} {
		a := &app{}
		run, _, err := a.root().Find([]string{"run"})
		if err == nil {
			err = run.ParseFlags(args)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := a.replicaName(false); got != want || err != nil {
			t.Errorf("%v: got %q, %v", args, got, err)
		}
	}
}

func TestANameThatIsNotOneWordIsRefused(t *testing.T) {
	for _, name := range []string{"two words", "tab\there", "bell\a", strings.Repeat("x", 254)} {
		a := &app{replica: name}
		if got, err := a.replicaName(false); err == nil {
			t.Errorf("%q was taken as %q", name, got)
		}
	}
}

func TestTwoProcessesOfAHostHaveDifferentNames(t *testing.T) {
	t.Setenv("POD_NAME", "")
	unnamed, service := &app{}, t.Name()
	first, free := unnamed.ownName("host", service)
	second, _ := unnamed.ownName("host", service)
	if want := fmt.Sprintf("host-%d", os.Getpid()); first != "host" || second != want {
		t.Errorf("the first is %q, the second %q, want host and %s", first, second, want)
	}
	if other, free := unnamed.ownName("host", service+" of another kind"); other != "host" {
		t.Errorf("a replica of another service is %q", other)
	} else {
		free()
	}
	if named, _ := (&app{replica: "host"}).ownName("host", service); named != "host" {
		t.Errorf("one that was named is %q", named)
	}
	free()
	again, free := unnamed.ownName("host", service)
	if again != "host" {
		t.Errorf("when the first has ended, the next is %q", again)
	}
	free()
	t.Setenv("POD_NAME", "host")
	if pod, _ := unnamed.ownName("host", service); pod != "host" {
		t.Errorf("a pod is %q", pod)
	}
}

// yearly is a table in which nothing happens; the parameters are the service and Redis' URL.
const yearly = `
service: %s
redis: {url: %q, timeout: 5s}
listen: ""
admin: ""
jobs:
  - {name: yearly, schedule: "@yearly", exec: {command: ["true"]}}
`

// The test follows the README: one table, three terminals, a Redis of one's own.
func TestProcessesThatWereGivenOneNameWarn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	table := fmt.Sprintf(yearly, "shop", s.URL())
	for _, r := range []*replica{launch(t, table, nil, "--replica", "one"), launch(t, table, nil, "--replica", "one")} {
		r.await("another process has the same name: give each its own name with --replica or POD_NAME", "replica", "one", "level", "WARN")
	}
}

func TestProcessesThatNobodyNamedHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	table := fmt.Sprintf(yearly, "shop-"+strings.ReplaceAll(s.Addr(), ":", "-"), s.URL())
	names := map[string]bool{}
	for range 3 {
		names[launch(t, table, nil).await("taking ticks").text("replica")] = true
	}
	if len(names) != 3 {
		t.Errorf("three processes have the names %v", names)
	}
}

// TestAReplicaDoesNotJoinThoseOfAnotherEnvironment: who has the service's name and the address of its Redis takes its
// ticks.
func TestAReplicaDoesNotJoinThoseOfAnotherEnvironment(t *testing.T) {
	t.Parallel()
	table := fmt.Sprintf(saying, redistest.Start(t).URL(), "said")
	begin := func(name, environment string) *replica {
		return launch(t, table, []string{environVariable + "=" + environment}, "--replica", name)
	}
	refused := func(name, environment string) {
		r := begin(name, environment)
		if code := r.wait(); code != exitCannot {
			t.Errorf("%q: exit code %d", environment, code)
		}
		r.await(fmt.Sprintf("this replica is of environment %q, and would take the ticks of \"production\"", environment))
	}
	first := begin("first", "production")
	first.await("fired") // its heartbeat came before
	refused("laptop", "")
	refused("staging", "staging")
	refused("first", "staging") // pods of two namespaces may have one name
	second := begin("second", "production")
	second.await("joined the other replicas of the service")
	for _, r := range []*replica{first, second} {
		r.stop()
	}
	laptop := begin("laptop", "") // nobody is there
	laptop.await("fired")
	third := begin("third", "production") // those that name none may be replaced by those that do
	third.await("joined the other replicas of the service")
	begin("last", "").await("joined the other replicas of the service") // one of its own is there
}

func TestAReplicaSaysThatThereAreTooManyToAskForTheirEnvironment(t *testing.T) {
	t.Setenv(environVariable, "staging")
	client := lock.NewClient(redis.UniversalOptions{Addrs: []string{redistest.Start(t).Addr()}}, patience)
	defer client.Close()
	store, err := service.New(client, "shop", lock.Options{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		replicas int
		says     string
	}{{service.MaxReplicas, ""}, {service.MaxReplicas + 1, "level=WARN msg=\"the heartbeats of the replicas could not be read\""}} {
		var beats []any
		for i := range c.replicas {
			beats = append(beats, i, fmt.Sprintf(`{"seen":%d}`, time.Now().UnixMilli()))
		}
		if err := client.HSet(t.Context(), "solotick:{shop}:replicas", beats...).Err(); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		if err := mayJoin(t.Context(), store, "one", slog.New(slog.NewTextHandler(&said, nil))); err != nil {
			t.Errorf("%d replicas: %v", c.replicas, err)
		}
		if got := said.String(); !strings.Contains(got, c.says) || c.says == "" && got != "" {
			t.Errorf("%d replicas: %q", c.replicas, got)
		}
	}
}
