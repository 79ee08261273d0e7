package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
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
		root := a.root()
		if err := root.ParseFlags(args); err != nil {
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
