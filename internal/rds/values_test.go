package rds

import (
	"strings"
	"testing"
	"time"
)

func TestARecordHoldsOneWord(t *testing.T) {
	for text, good := range map[string]bool{"": false, " ": false, "a b": false, "a\tb": false, "a\n": false, "a": true, "a-b_c.d": true, "ä": true} {
		if err := OneWord("job", text); (err == nil) != good || err != nil && !strings.HasPrefix(err.Error(), `job "`) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestNoTimeIsNoMillisecond(t *testing.T) {
	for ms, at := range map[int64]time.Time{0: {}, 1: time.UnixMilli(1).UTC(), -1: time.UnixMilli(-1).UTC(), 1_800_000_000_123: time.UnixMilli(1_800_000_000_123).UTC()} {
		if Millis(at) != ms || FromMillis(ms) != at {
			t.Errorf("%d is %s, and %s is %d", ms, FromMillis(ms), at, Millis(at))
		}
	}
}

func TestAnUnexpectedAnswerIsRepeatedInPartOnly(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		answer any
		want   string
	}{
		{long, `unexpected answer "` + long[:100] + `"`}, {[]any{long, "y"}, `unexpected answer "` + long[:100] + `", the first of 2`},
		{int64(7), "unexpected answer 7"}, {[]any{}, "unexpected answer of another kind"}, {nil, "unexpected answer of another kind"},
	} {
		if got := Unexpected(c.answer).Error(); got != c.want {
			t.Errorf("%.150s\nwant %s", got, c.want)
		}
	}
}

func TestRetriesWaitFrom50MillisecondsTo2Seconds(t *testing.T) {
	for try, want := range map[int]time.Duration{0: 50 * time.Millisecond, 1: 100 * time.Millisecond, 5: 1600 * time.Millisecond, 6: 2 * time.Second,
		1000: 2 * time.Second} {
		if got := Backoff(try); got != want {
			t.Errorf("try %d: %s, want %s", try, got, want)
		}
	}
}

func TestWhatAnOperatorAskedForIsConfirmed(t *testing.T) {
	done, all := NewScript("return 1", WhatIsDone), NewScript("return 1", AllAnswers)
	for code, want := range map[string]bool{"OK": true, "SET": true, "DELETED": true, "UNKNOWN": false, "FULL": false} {
		if answer := []any{code, int64(1)}; done.promised(answer) != want || !all.promised(answer) {
			t.Errorf("%s: confirmed %t and %t", code, done.promised(answer), all.promised(answer))
		}
	}
	if all.promised(nil) || all.promised([]any{}) || all.promised("OK") {
		t.Error("an answer without a code is confirmed")
	}
}

// Each TIME is a command more that Redis runs.
func TestAScriptAsksForTheTimeIfItNeedsIt(t *testing.T) {
	without, with := NewScript("return 1", Unconfirmed), NewScript("return now", Unconfirmed)
	if without.Source != "return 1" || with.Source != prelude+"return now" {
		t.Errorf("%q, %q", without.Source, with.Source)
	}
	if again := NewScript(with.Source, Unconfirmed); again.Source != with.Source {
		t.Errorf("of another script: %q", again.Source)
	}
}
