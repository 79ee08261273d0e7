package main

import (
	"testing"
	"time"

	"github.com/solotick/solotick/internal/toy"
)

var start0 = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

// calls are those of an app for which everything went well from second 0 to 20.
func goodCalls(skip func(job string, second int) bool) []toy.Call {
	every := map[string]int{"heartbeat": 1, "sync-stock": 4, queueing: 6, reported: 5, "charge-cards": 8, "import-feed": 9}
	var calls []toy.Call
	for job, n := range every {
		first := int(start0.Unix()) % n
		if first > 0 {
			first = n - first
		}
		for s := first; s <= 20; s += n {
			if !skip(job, s) {
				calls = append(calls, toy.Call{Job: job, Replica: "one", Tick: start0.Add(time.Duration(s) * time.Second), Attempt: 1, Code: 200})
			}
		}
	}
	return calls
}

func counted(t *testing.T, calls []toy.Call, unmet map[tickOf]reasons, cut map[tickOf]bool) Tally {
	t.Helper()
	got, err := count(calls, unmet, cut, start0, start0.Add(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func none(string, int) bool { return false }

func TestEachTickThatTheAppGotOnceIsCountedOnce(t *testing.T) {
	got := counted(t, goodCalls(none), nil, nil)
	if got.Due < 21 || got.Once != got.Due || !got.Kept() {
		t.Errorf("got %+v", got)
	}
}

func TestWhatTheAppGotTwiceIsADouble(t *testing.T) {
	calls := goodCalls(none)
	again := calls[0]
	again.Replica = "two"
	if got := counted(t, append(calls, again), nil, nil); got.Doubles != 1 || got.Once != got.Due || got.Kept() {
		t.Errorf("a tick that was fired twice: %+v", got)
	}
	warm := toy.Call{Job: everywhere, Replica: "one", Tick: start0, Attempt: 1}
	other := warm
	other.Replica = "two"
	if got := counted(t, append(calls, warm, other), nil, nil); got.Doubles != 0 {
		t.Errorf("one run on each of two replicas: %+v", got)
	}
	if got := counted(t, append(calls, warm, warm), nil, nil); got.Doubles != 1 {
		t.Errorf("two runs on one replica: %+v", got)
	}
	second := calls[0]
	second.Attempt = 2
	if got := counted(t, append(calls, second), nil, nil); got.Doubles != 0 {
		t.Errorf("a second attempt: %+v", got)
	}
	if got := counted(t, append(calls, second, second), nil, nil); got.Doubles != 1 {
		t.Errorf("a second attempt, twice: %+v", got)
	}
}

func TestWhatTheAppNeverGotIsLostUnlessThereWasAReason(t *testing.T) {
	at := 3
	k := tickOf{"heartbeat", start0.Add(3 * time.Second).UnixMilli()}
	calls := goodCalls(func(job string, s int) bool { return job == "heartbeat" && s == at })
	if got := counted(t, calls, nil, nil); got.Lost != 1 || got.Once != got.Due-1 || got.Kept() || len(got.Wrong) != 1 {
		t.Errorf("fired by nobody: %+v", got)
	}
	if got := counted(t, calls, map[tickOf]reasons{k: {"fired_elsewhere": true}}, nil); got.Lost != 1 {
		t.Errorf("everybody says that another one fired it: %+v", got)
	}
	if got := counted(t, calls, map[tickOf]reasons{k: {"overlap": true}}, nil); got.Overlap != 1 || !got.Kept() {
		t.Errorf("the job still ran: %+v", got)
	}
	if got := counted(t, calls, nil, map[tickOf]bool{k: true}); got.CutOff != 1 || !got.Kept() {
		t.Errorf("its replica was killed: %+v", got)
	}
	taken := toy.Call{Job: "heartbeat", Replica: "two", Kind: "takeover", Tick: start0.Add(3 * time.Second), Attempt: 2, Code: 200}
	if got := counted(t, append(calls, taken), nil, nil); got.Once != got.Due || got.Takeovers != 1 || !got.Kept() {
		t.Errorf("taken over before the first call: %+v", got)
	}
}

func TestTicksOutsideOfTheTimeAreNotCounted(t *testing.T) {
	calls := append(goodCalls(none),
		toy.Call{Job: "heartbeat", Tick: start0.Add(-time.Second), Attempt: 1}, toy.Call{Job: "heartbeat", Tick: start0.Add(-time.Second), Attempt: 1},
		toy.Call{Job: "heartbeat", Tick: start0.Add(21 * time.Second), Attempt: 1})
	if got := counted(t, calls, nil, nil); got.Once != got.Due || !got.Kept() {
		t.Errorf("got %+v", got)
	}
	// Doubles count at any time.
	if got := counted(t, append(calls, calls[len(calls)-1]), nil, nil); got.Once != got.Due || got.Doubles != 1 {
		t.Errorf("a double after the last tick that is counted: %+v", got)
	}
	got, err := count(nil, nil, nil, start0.Add(time.Second), start0)
	if err != nil || got.Due != 0 || !got.Kept() {
		t.Errorf("a demo that ended before it began: %+v, %v", got, err)
	}
}
