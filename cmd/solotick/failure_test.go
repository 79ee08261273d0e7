package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/solotick/solotick/sidecar/service"
)

func TestEveryRefusalHasTheExitCodeOfTheRule(t *testing.T) {
	codes := map[service.Kind]int{
		service.NoRun: exitProblem, service.NoFailure: exitProblem, service.NoTimer: exitProblem,
		service.NotAdmitted: exitProblem, service.Taken: exitProblem,

		service.Invalid: exitUsage, service.NoReason: exitUsage, service.Future: exitUsage, service.NoJob: exitUsage, service.EveryReplica: exitUsage,
		service.OtherWay: exitUsage,

		service.Unavailable: exitCannot, service.Unanswered: exitCannot, service.Unregistered: exitCannot, service.Full: exitCannot,
		service.Partial: exitCannot,
	}
	for kind := service.Unavailable; kind <= service.Partial; kind++ {
		want, decided := codes[kind]
		if !decided {
			t.Errorf("no rule decides the exit code of kind %d", kind)
		}
		if got := operatorFailure(&service.Refusal{Kind: kind, Message: "no", Err: errors.New("no")}).code; got != want {
			t.Errorf("kind %d ends with %d, want %d", kind, got, want)
		}
	}
}

// A failure can name what is written in Redis, such as a replica.
func TestAFailureHasNoControlCharacters(t *testing.T) {
	var out strings.Builder
	(&failure{err: errors.New("live replicas: a\x1b[2J\nhint: b\r"), hint: "c\u009bm"}).tell(&out)
	if want := "error: live replicas: a [2J hint: b\nhint: c m\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
