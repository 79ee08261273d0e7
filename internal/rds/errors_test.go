package rds

import (
	"errors"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
)

// answer is an error as a Redis gave it.
type redisAnswer string

func (a redisAnswer) Error() string { return string(a) }
func (redisAnswer) RedisError()     {}

func TestRefusalsAreToldFromErrorsHalfWay(t *testing.T) {
	const sha = "f_69e3b0a6b1a1a1c2d3e4f5061728394a5b6c7d8e"
	for text, want := range map[string]bool{
		"READONLY You can't write against a read only replica.":                                                          true,
		"READONLY You can't write against a read only replica. script: " + sha + ", on @user_script:25.":                 true,
		"ERR Error running script (call to " + sha + "): @user_script:25: -READONLY You can't write against a read only": true,
		"ERR Error running script (call to " + sha + "): @user_script:25: -OOM command not allowed":                      true,
		"ERR Error running script (call to " + sha + "): @user_script:31: WRONGTYPE Operation against a key":             false,
		"ERR Error running script (call to " + sha + "): @user_script:31: attempt to index a nil value":                  false,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                                              false,
	} {
		if got := notRun(redisAnswer(text)); got != want {
			t.Errorf("%q: not run %v, want %v", text, got, want)
		}
	}
	if notRun(errors.New("READONLY, says somebody else")) {
		t.Error("an error that is not Redis' own counts as its refusal")
	}
}

func TestWhatWasNotSentAndWhatIsAnswered(t *testing.T) {
	for _, err := range []error{redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrClosed} {
		if !NeverSent(err) || !WithoutEffect(err) || !Answered(err) || NeverSent(&inFlightError{err}) || Answered(&inFlightError{err}) {
			t.Errorf("%v: of this request it was never sent, of another one nothing is known", err)
		}
	}
	for op, unsent := range map[string]bool{"dial": true, "read": false, "write": false} {
		if err := (&net.OpError{Op: op, Err: errors.New("gone")}); NeverSent(err) != unsent || Answered(err) != unsent {
			t.Errorf("%v: never sent %t, want %t", err, !unsent, unsent)
		}
	}
	if NeverSent(errUnconfirmed) || !Answered(errUnconfirmed) {
		t.Error("what Redis did and did not confirm was sent, and is answered")
	}
}
