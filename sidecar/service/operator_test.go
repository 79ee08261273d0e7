package service

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

// refused checks that err is a Refusal of that kind with that message and hint.
func refused(t *testing.T, err error, kind Kind, message, hint string) {
	t.Helper()
	var r *Refusal
	if !errors.As(err, &r) {
		t.Errorf("%v is no refusal: want %q", err, message)
	} else if r.Kind != kind || r.Message != message || r.Hint != hint {
		t.Errorf("kind %d, %q, hint %q\nwant %d, %q, hint %q", r.Kind, r.Message, r.Hint, kind, message, hint)
	}
}

func TestAPauseNeedsAReasonAndHasAtMostOneEnd(t *testing.T) {
	long := strings.Repeat("ä", MaxReason)
	for _, c := range []struct {
		reason, until, length string
		kind                  Kind
		message, hint         string
	}{
		{reason: "", until: "noon", length: "2h", kind: NoReason, message: "a pause needs a reason: others will wonder"},
		{reason: long + "ä", until: "noon", length: "2h", kind: Invalid,
			message: "--reason has 201 characters, at most 200 are kept"},
		{reason: "x", until: "noon", length: "2h", kind: Invalid, message: "--until and --for both say when the pause ends",
			hint: "leave one of them out"},
		{reason: long}, {reason: "x", until: "noon"}, {reason: "x", length: "2h"},
	} {
		err := CheckPause(Field{"--reason", c.reason}, Field{"--until", c.until}, Field{"--for", c.length})
		if c.message != "" {
			refused(t, err, c.kind, c.message, c.hint)
		} else if err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

const someTable = `
service: billing
jobs:
  - {name: reports, schedule: "*/5 * * * *", exec: {command: ["true"]}}
  - {name: tidy-up, schedule: "0 3 * * *", exec: {command: ["true"]}}
`

func table(t *testing.T) *config.Table {
	t.Helper()
	parsed, err := config.Parse("table.yaml", []byte(someTable), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestTheTicksOfABackfillAreOfThePastAndNotTooMany(t *testing.T) {
	reports := table(t).Jobs[0]
	now := time.Date(2027, 3, 28, 7, 20, 0, 0, time.UTC)
	moment := func(name, text string) Moment {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return Moment{Field{name, text}, at}
	}
	for _, c := range []struct {
		from, to      string
		ticks         string
		kind          Kind
		message, hint string
	}{
		{from: "2027-03-28T07:05:00Z", to: "2027-03-28T07:20:00Z", ticks: "07:05 07:10 07:15"}, // to is excluded, and may be now
		{from: "2027-03-28T09:05:01+02:00", to: "2027-03-28T07:15:01Z", ticks: "07:10 07:15"},
		{from: "2027-03-28T07:11:00Z", to: "2027-03-28T07:12:00Z"},
		{from: "2027-03-28T07:00:00Z", to: "2027-03-28T07:00:00Z", kind: Invalid,
			message: "--from 2027-03-28T07:00:00Z is not before --to 2027-03-28T07:00:00Z"},
		{from: "2027-03-28T07:00:00Z", to: "2027-03-28T07:20:01Z", kind: Future,
			message: "--to 2027-03-28T07:20:01Z is yet to come: Redis' clock is at 2027-03-28T07:20:00.000Z"},
		{from: "2027-03-20T00:00:00Z", to: "2027-03-28T00:00:00Z", kind: Invalid, hint: "go in steps: --to 2027-03-23T11:20:00Z",
			message: `job "reports" has more than 1000 ticks from 2027-03-20T00:00:00Z to 2027-03-28T00:00:00Z`},
	} {
		ticks, err := Ticks(reports, moment("--from", c.from), moment("--to", c.to), now)
		if c.message != "" {
			refused(t, err, c.kind, c.message, c.hint)
			continue
		}
		var got []string
		for _, tick := range ticks {
			got = append(got, tick.UTC().Format("15:04"))
		}
		if err != nil || strings.Join(got, " ") != c.ticks {
			t.Errorf("from %s to %s: %q, %v; want %q", c.from, c.to, got, err, c.ticks)
		}
	}
	most, err := Ticks(reports, moment("--from", "2027-03-20T00:00:00Z"), moment("--to", "2027-03-23T11:20:00Z"), now)
	if err != nil || len(most) != MaxBackfill {
		t.Errorf("in the step of the hint: %d ticks, %v", len(most), err)
	}
}

func TestWhatTheTableDoesNotAllowIsRefused(t *testing.T) {
	o := &Operator{Table: func() *config.Table { return table(t) }}
	timer, err := config.ParseTimer("made", []byte(`{"after": "1s", "http": {"url": "http://unix:/run/docker.sock:/containers/create"}}`), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p := o.Table().Admits(&timer.Job)
	if p == nil {
		t.Fatal("the table admits any socket")
	}
	refused(t, o.admits(&timer.Job), NotAdmitted, p.Message, p.Hint)
}

func TestAnIDThatNoTimerCanHaveIsRefusedWithoutRedis(t *testing.T) {
	o := &Operator{Table: func() *config.Table { return table(t) }}
	refused(t, o.DeleteTimer(t.Context(), "-x"), NoTimer, `no timer "-x" waits`, "")
	_, _, err := o.Timer(t.Context(), "a@9000") // a time of a schedule
	refused(t, err, NoTimer, `no timer "a@9000" waits`, "")
}

func TestATriggerIsAskedForWithAUUID(t *testing.T) {
	for _, id := range []string{"x", "d8593ae8b0c6432f9178700b9b46c624", "urn:uuid:d8593ae8-b0c6-432f-9178-700b9b46c624"} {
		_, err := (&Operator{}).Trigger(t.Context(), config.Job{Name: "reports"}, id)
		var r *Refusal
		if !errors.As(err, &r) || r.Kind != Invalid || r.Message != `"id" is not a UUID` || !strings.HasPrefix(r.Hint, "as ") {
			t.Errorf("id %q: %v", id, err)
		}
	}
}

func TestTheKindOfARefusalSaysWhatRedisAnswered(t *testing.T) {
	for answer, want := range map[error]Kind{
		ErrUnknownJob: Unregistered, ErrPast: Invalid, ErrTimerFired: Taken, ErrOtherRequest: Taken, ErrTooMany: Full,
		lock.ErrNoAnswer: Unanswered, errors.New("ERR out of order"): Unavailable,
	} {
		err := fmt.Errorf("triggering job %q: %w", "reports", answer)
		r := RefusalOf(err)
		if r.Kind != want || r.Message != err.Error() || !errors.Is(r, answer) || (r.Hint != "") != (want == Taken) {
			t.Errorf("%v is %+v, want kind %d", answer, r, want)
		}
		if again := RefusalOf(r); again != r {
			t.Errorf("a refusal is not kept: %+v", again)
		}
	}
	one := config.Problems{{Message: "at or after is missing", Hint: "after: 90s"}}
	refused(t, RefusalOf(one), Invalid, "at or after is missing", "after: 90s")
	refused(t, RefusalOf(append(one, one[0])), Invalid, "the body has 2 problems", "")
}
