package lock

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// at is an instant of n milliseconds.
func at(n int64) time.Time { return time.UnixMilli(n).UTC() }

func TestARecordIsReadFieldByField(t *testing.T) {
	const record = "1 2 3 4 Queue 15000 takeover:key 5 6 7 8 1 a replica"
	want := Record{Tick: at(1), Token: 2, Prev: at(3), Claimed: at(4), Policy: Queue, TTL: 15 * time.Second, Kind: "takeover", Key: "key",
		Attempt: 5, Retries: 6, Rounds: 7, Deaths: 8, Again: true, Replica: "a replica"}
	if got, err := ParseRecord(record); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	words := strings.SplitN(record, " ", 13)
	for i := range words {
		broken := append(append(append([]string{}, words[:i]...), "x"), words[i+1:]...)
		_, err := ParseRecord(strings.Join(broken, " "))
		if number := i != 4 && i != 6 && i != 12; (err != nil) != number {
			t.Errorf("field %d is x: %v", i, err)
		}
		if _, err := ParseRecord(strings.Join(words[:i], " ")); err == nil {
			t.Errorf("a record of %d fields was read", i)
		}
	}
	for again, want := range map[string]bool{"0": false, "1": true, "2": false} { // of another version
		words[11] = again
		if got, err := ParseRecord(strings.Join(words, " ")); err != nil || got.Again != want {
			t.Errorf("run again when cut short %s: %t, %v", again, got.Again, err)
		}
	}
	if r, ok := ParseRunning("run job", 7); !ok || r.Run != "run" || r.Job != "job" || !r.Renewed(0).Equal(at(7)) || !r.Renewed(5*time.Millisecond).Equal(at(2)) {
		t.Errorf("an entry of the set of runs: %+v, %t", r, ok)
	}
	if r, ok := ParseRunning("another's", 7); ok {
		t.Errorf("an entry of another version: %+v", r)
	}
}

func TestAnswersTellWhatTheirCodeHas(t *testing.T) {
	reply := func(code Code) []any {
		return []any{string(code), int64(1), int64(2), int64(3), int64(4), "b", int64(6), "7-9 ", int64(8)}
	}
	for _, code := range []Code{Won, Fired, Overlap, Locked, Queued, Waits, Free, Paused, Held, Gone, Early, Gap, Lost, Stale} {
		want := Answer{Code: code, Now: at(1), Prev: at(2), Overlap: at(3), PausedTo: at(4), Holder: "b", Gaps: "7-9 ", Born: at(8)}
		switch code {
		case Won:
			want.Token, want.Since, want.Overlap = 6, at(3), time.Time{}
		case Paused:
			want.Until = at(6)
		}
		if got, err := parseAnswer(reply(code)); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", code, got, err, want)
		}
	}
	for _, bad := range [][]any{nil, reply(Won)[:8], append(reply(Won), int64(9)), append([]any{"WON", "x"}, reply(Won)[2:]...)} {
		if got, err := parseAnswer(bad); err == nil {
			t.Errorf("%v was read as %+v", bad, got)
		}
	}
}

func TestWhatIsHeardOfAClaim(t *testing.T) {
	want := Heard{Running: Running{Run: "run", Job: "job", leaseEnd: 27}, Tick: at(12), Since: time.Second,
		Answer: Answer{Code: Fired, Prev: at(12), Holder: "b", Born: at(8)}}
	if got, ok := ParseHeard("job 12 8 b run 27", time.Second); !ok || got != want {
		t.Errorf("%+v, %t, want %+v", got, ok, want)
	}
	for _, bad := range []string{"", "job 12 8 b", "job 12 8 b run 27 more", "job x 8 b run 27", "job 12 x b run 27", "job 12 8 b run x"} {
		if got, ok := ParseHeard(bad, 0); ok {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
}

func TestOnlyWhatWasWrittenForOneTickHasIt(t *testing.T) {
	for _, c := range []struct {
		fate     string
		from, to int64
		want     bool
	}{
		{Overlapped, 9, 11, true}, {"interrupted", 9, 11, true}, {Overlapped, 9, 12, false}, {Overlapped, 9, 10, false},
		{Missed, 9, 11, false}, {PausedTick, 9, 11, false}, {Displaced, 9, 11, false},
	} {
		tick, ok := Interval{at(c.from), at(c.to), c.fate}.Tick()
		if ok != c.want || ok && !tick.Equal(at(10)) {
			t.Errorf("%s from %d to %d: %s, %t", c.fate, c.from, c.to, tick, ok)
		}
	}
}

func TestWhoRefusedATickIsSaid(t *testing.T) {
	for _, c := range []struct {
		d    Due
		want string
	}{
		{Due{Refused: []string{"a", "b"}}, "these replicas could not start it: a, b"},
		{Due{Rounds: 1, Refused: []string{"a"}}, "no replica that took it could start it"},
	} {
		if got := c.d.RefusedBy(); got != c.want {
			t.Errorf("%+v: %s", c.d, got)
		}
	}
}

func TestWhatNoReplicaCouldClaimIsNoDueMember(t *testing.T) {
	good := Due{Tick: at(1), Job: "a", Kind: "manual", Attempt: 1, Nonce: "n"}
	for what, spoil := range map[string]func(*Due){
		"": func(*Due) {}, "one that refused it": func(d *Due) { d.Refused = []string{"b"} },
		"the last tick": func(d *Due) { d.Tick = at(endOfTime - 1) }, "a key": func(d *Due) { d.Kind, d.Key = "backfill", "k" },
	} {
		d := good
		spoil(&d)
		if got, err := ParseDue(d.Member()); err != nil || !reflect.DeepEqual(got, d) {
			t.Errorf("%s: %q is read as %+v, %v", what, d.Member(), got, err)
		}
	}
	for what, spoil := range map[string]func(*Due){
		"no tick": func(d *Due) { d.Tick = time.Time{} }, "a tick too far": func(d *Due) { d.Tick = at(endOfTime) }, "a tick before 1970": func(d *Due) { d.Tick = at(-1) },
		"attempts below none": func(d *Due) { d.Attempt = -1 }, "rounds below none": func(d *Due) { d.Rounds = -1 }, "deaths below none": func(d *Due) { d.Deaths = -1 },
		"a key of two words": func(d *Due) { d.Key = "k k" }, "an unknown kind": func(d *Due) { d.Kind = "other" },
	} {
		d := good
		if spoil(&d); d.check() == nil {
			t.Errorf("%s: %+v is good", what, d)
		}
	}
}
