package service_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// Replicas of other versions read the text: a field may be added, and none may be called otherwise.
func TestAnEntryIsWrittenInOneForm(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
	run := service.Entry{Job: "a", Tick: at(5000), Run: "r", Replica: "p", Kind: "manual", Attempt: 2, Outcome: "failed", Ended: at(9001),
		Took: 4 * time.Second, Detail: "<&>", Failed: true}
	want := lock.Ending{At: at(9001), Failed: true, Entry: `{"job":"a","run":"r","replica":"p","kind":"manual","attempt":2,"outcome":"failed",` +
		`"detail":"<&>","failed":true,"tick":5000,"ended":9001,"ms":4000}`}
	if got := run.Ending(); got != want {
		t.Errorf("a run:\n%+v, want\n%+v", got, want)
	}
	gone := service.Entry{Job: "a", Tick: at(5000), First: at(3000), Count: 3, Outcome: lock.Overlapped, Behind: "r"}
	booked := lock.Booking{Fate: lock.Overlapped, Ticks: 3, Entry: `{"job":"a","outcome":"overlapped","count":3,"behind":"r","tick":5000,"first":3000}`}
	if got := gone.Booking(); got != booked {
		t.Errorf("ticks that no replica fired:\n%+v, want\n%+v", got, booked)
	}
}

func TestOnlyARunOfTheScheduleHasAFate(t *testing.T) {
	for _, c := range []struct {
		job, kind, fate string
		again           bool
	}{
		{"a", "schedule", "succeeded", false}, {"a", "takeover", "succeeded", false}, {"a", "backfill", "succeeded", true},
		{"a", "manual", "", false}, {"timer:a", "timer", "", false}, {"timer:a", "backfill", "", false},
	} {
		e := service.Entry{Job: c.job, Kind: c.kind, Outcome: "succeeded"}
		if got := e.Ending(); got.Fate != c.fate || got.Again != c.again {
			t.Errorf("%s of %s: fate %q, again %t", c.kind, c.job, got.Fate, got.Again)
		}
	}
}

func TestFailuresComeFirstAndTheNewestOfThem(t *testing.T) {
	ended := func(n int64, failed bool) service.Entry {
		return service.Entry{Job: strings.Repeat("x", int(n)), Ended: time.Unix(n, 0), Failed: failed}
	}
	all := []service.Entry{ended(1, false), ended(2, true), ended(4, false), ended(3, true)}
	slices.SortFunc(all, service.ByFailure)
	var got []string
	for _, e := range all {
		got = append(got, e.Job)
	}
	if order := strings.Join(got, " "); order != "xxx xx xxxx x" {
		t.Errorf("the order is %s", order)
	}
}

func TestTheFateOfATickIsThatOfItsLastRunOrOfTheShortestInterval(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	gap := func(first, last int, outcome string) service.Entry {
		return service.Entry{First: at(first), Tick: at(last), Count: last - first + 1, Outcome: outcome, Kind: "gap"}
	}
	run := func(n int, id, kind string) service.Entry {
		return service.Entry{Tick: at(n), Run: id, Outcome: id, Kind: kind}
	}
	record := service.TickFates{gap(1, 9, "wide"), gap(3, 5, "narrow"), gap(2, 8, "middle"), run(5, "r1", "schedule"), gap(5, 5, "point"),
		run(5, "r2", "takeover"), run(5, "r3", "backfill"), gap(12, 13, "twin"), gap(13, 14, "other"), run(5, "r4", "backfill"), run(20, "r5", "backfill"), gap(5, 5, "late")}
	for n, want := range map[int]string{0: "", 1: "wide", 2: "middle", 3: "narrow", 4: "narrow", 5: "r2", 8: "middle", 9: "wide", 10: "", 13: "twin", 20: ""} {
		got := ""
		if e := record.Fate(at(n)); e != nil {
			got = e.Outcome
		}
		if got != want {
			t.Errorf("tick %d: %q, want %q", n, got, want)
		}
	}
	if again := record.Again(at(5)); len(again) != 2 || again[0].Run != "r3" || again[1].Run != "r4" || len(record.Again(at(4))) != 0 {
		t.Errorf("again: %+v", again)
	}
	if e := record.Run("r4"); e == nil || e.Run != "r4" || record.Run("r6") != nil || record.Run("") != nil {
		t.Errorf("the run: %+v, and of no run %+v", e, record.Run(""))
	}
}

func TestTheTicksOfAJobAreReadInTheOrderInWhichTheyWereDecided(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		for n, outcome := range []string{"succeeded", "failed", "succeeded"} {
			settles(a, n, outcome)
		}
		w.Must(w.Admin.Do(w.Context(), "xadd", history, "*", "run", `{"tick":7000,"outcome":"handed_over"}`).Err()) // ends no tick
		w.Must(w.Admin.HSet(w.Context(), ledger, "open", " 5~<5:", "gaps", "10-20 ", "since", 77).Err())
		for _, text := range []string{"<xml>", `{"tick":9000,"first":8000,"count":2,"outcome":"overlapped","behind":"r","ended":9500}`} { // as settle.lua writes it
			w.Must(w.Admin.Do(w.Context(), "xadd", history, "*", "tick", text).Err())
		}
		states, err := a.Service.States(w.Context(), []string{job})
		w.Must(err)
		fates, err := a.Service.TickFates(w.Context(), job)
		w.Must(err)
		last := fates[len(fates)-1]
		ms := func(n int64) time.Time { return time.UnixMilli(n).UTC() }
		want := service.Entry{Job: job, Tick: ms(9000), First: ms(8000), Count: 2, Outcome: lock.Overlapped, Behind: "r", Ended: ms(9500)}
		if fates = fates[:len(fates)-1]; last != want {
			w.Errorf("the last: %+v, want %+v", last, want)
		}
		if got := written(w)(fates, nil); got != "succeeded 0, failed 1, succeeded 2" || fates[0].Job != job {
			w.Errorf("the fates: %s of %q", got, fates[0].Job)
		}
		if l := states[job]; len(l.Behind) != 1 || len(l.Gaps) != 1 || l.Since.UnixMilli() != 77 || l.Born.UnixMilli() != 1 || !l.Tick.Equal(w.Tick(2)) {
			w.Errorf("the ledger: %+v", l)
		}
	})
}
