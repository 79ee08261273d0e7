package service_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/sidecar/service"
)

const actsKey = "solotick:{svc}:acts"

// by is the author of the requests of these tests.
var by = service.Author{By: "anna@ops", Reason: "incident 7"}

// told writes an act in one line.
func told(a service.Act) string {
	return strings.TrimRight(fmt.Sprintf("%s %s %s %d %s", a.By, a.What, strings.Join(a.Jobs, "+"), a.Count, a.Reason), " ")
}

func TestEachRequestByHandIsAnAct(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born(job, "another")
		s := w.Replica("a").Service.As(by)
		until := w.Now().Add(time.Hour).Truncate(time.Millisecond)
		began := w.Now().Add(-time.Second)
		w.Must(s.Pause(w.Context(), job, "migration", until))
		_, err := s.Resume(w.Context(), job)
		w.Must(err)
		_, err = s.Resume(w.Context(), job) // which was not paused, so this is no act
		w.Must(err)
		d, err := s.Trigger(w.Context(), job, uuid.NewString())
		w.Must(err)
		_, err = s.Backfill(w.Context(), job, []time.Time{w.Tick(1), w.Tick(2)}, uuid.NewString(), false)
		w.Must(err)
		w.Must(s.Pause(w.Context(), "another", "x", time.Time{}))
		_, err = s.Resume(w.Context(), "another")
		w.Must(err)
		acts, err := s.Acts(w.Context(), "", 100)
		w.Must(err)
		var got []string
		for _, a := range acts {
			got = append(got, told(a))
			if a.At.Before(began) || a.At.After(w.Now().Add(time.Second)) {
				w.Errorf("%s at %s, and it is %s", told(a), a.At, w.Now())
			}
		}
		want := []string{"anna@ops resume another 0 incident 7", "anna@ops pause another 0 x",
			"anna@ops backfill job 2 incident 7", "anna@ops trigger job 0 incident 7", "anna@ops resume job 0 incident 7", "anna@ops pause job 0 migration"}
		for i := range want {
			want[i] = strings.Replace(want[i], " job ", " "+job+" ", 1)
		}
		if !slices.Equal(got, want) {
			w.Fatalf("the acts are %q\nwant %q", got, want)
		}
		if !acts[5].Until.Equal(until) || !acts[3].Tick.Equal(d.Tick) || !acts[2].Tick.Equal(w.Tick(1).Truncate(time.Millisecond)) {
			w.Errorf("pause until %s, trigger of %s, backfill from %s", acts[5].Until, acts[3].Tick, acts[2].Tick)
		}
		acts, err = s.Acts(w.Context(), "another", 2)
		if err != nil || len(acts) != 2 || acts[0].What != "resume" || acts[1].What != "pause" {
			w.Errorf("of one job: %+v, %v", acts, err)
		}
	})
}

func TestAnActTellsWhatItsScriptAnswered(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		s := w.Replica("a").Service
		for _, fields := range [][]any{
			{"act", `{"what":"cancel","job":"a"}`, "made", "2"}, // so many waited
			{"act", `{"what":"cancel","job":"a"}`, "made", "6f-1 6f-2"},
			{"act", `{"what":"trigger","job":"a"}`, "made", "7000"},
			{"act", `{"what":"backfill","job":"a","tick":5000}`, "made", "3"},
			{"act", "<xml>"}, {"act", `{"what":"dance"}`}, // of other versions
		} {
			w.Must(w.Admin.Do(w.Context(), append([]any{"xadd", actsKey, "*"}, fields...)...).Err())
		}
		acts, err := s.Acts(w.Context(), "", 100)
		var got []string
		for _, a := range acts {
			got = append(got, fmt.Sprint(a.What, a.Jobs, " ", a.Count, a.Runs, " ", max(a.Tick.UnixMilli(), 0)))
		}
		if want := "backfill[a] 3 [] 5000, trigger[a] 0 [] 7000, cancel[a] 0 [6f-1 6f-2] 0, cancel[a] 2 [] 0"; err != nil || strings.Join(got, ", ") != want {
			w.Errorf("%s, %v, want %s", strings.Join(got, ", "), err, want)
		}
	})
}

func TestARequestThatIsRepeatedIsOneAct(t *testing.T) {
	onOperatorsLoss(t, func(w *redisworld.World, loss lossy.Action) {
		a := w.Replica("a")
		s := a.Service.As(by)
		w.Must(w.Admin.Del(w.Context(), actsKey).Err())
		for _, sha := range []string{service.AskSHA, service.PauseSHA} {
			a.Proxy.On(lossy.Script(sha), 1, loss)
		}
		_, err := s.Trigger(w.Context(), job, uuid.NewString())
		w.Must(err)
		w.Must(s.Pause(w.Context(), job, "why", time.Time{}))
		acts, err := s.Acts(w.Context(), "", 100)
		if err != nil || len(acts) != 2 || acts[0].What != "pause" || acts[1].What != "trigger" {
			w.Errorf("the acts are %+v, %v", acts, err)
		}
	})
}

func TestTheRequestsOfACommandForAllJobsAreOneAct(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born("x", "y", "z")
		s := w.Replica("a").Service
		for _, id := range []string{"first", "second"} {
			for _, name := range []string{"x", "y", "z"} {
				all := s.As(service.Author{By: "anna@ops", All: id})
				w.Must(all.Pause(w.Context(), name, "incident", time.Time{}))
			}
		}
		for limit, want := range map[int]string{1: "[x y z]", 2: "[x y z][x y z]", 9: "[x y z][x y z]"} {
			acts, err := s.Acts(w.Context(), "", limit)
			w.Must(err)
			got := ""
			for _, a := range acts {
				got += fmt.Sprint(a.Jobs)
			}
			if got != want {
				w.Errorf("at most %d: %s, want %s", limit, got, want)
			}
		}
	})
}

func TestActsHaveABoundAndAreNotWorthAFailedRequest(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		s := w.Replica("a").Service.As(by)
		for range 1300 {
			w.Must(s.Pause(w.Context(), job, "", time.Time{}))
		}
		if n := w.Admin.XLen(w.Context(), actsKey).Val(); n < 1000 || n > 1200 {
			w.Errorf("Redis keeps %d acts", n)
		}
		w.Must(w.Admin.Set(w.Context(), actsKey, "no stream", 0).Err()) // to which nothing can be added, as when memory is full
		w.Must(s.Pause(w.Context(), job, "all the same", time.Time{}))
		_, err := s.Trigger(w.Context(), job, uuid.NewString())
		w.Must(err)
		if note := w.Field("paused"); !strings.HasSuffix(note, " all the same\nanna@ops") {
			w.Errorf("the note is %q", note)
		}
	})
}

func TestAPauseTellsWhoPausedUnlessItIsOfAnOlderVersion(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		paused := func() service.Pause {
			states, err := a.Service.States(w.Context(), []string{job})
			w.Must(err)
			return *states[job].Paused
		}
		w.Must(a.Service.As(service.Author{By: " anna\n@ops "}).Pause(w.Context(), job, "two\nwords", time.Time{}))
		if p := paused(); p.By != "anna @ops" || p.Reason != "two words" {
			w.Errorf("paused by %q: %q", p.By, p.Reason)
		}
		w.Must(w.Admin.HSet(w.Context(), ledger, "paused", "0 5 two words").Err())
		if p := paused(); p.By != "" || p.Reason != "two words" || p.At.UnixMilli() != 5 {
			w.Errorf("of an older version: %+v", p)
		}
	})
}

func TestAnAuthorIsShort(t *testing.T) {
	name := func(n int) service.Field { return service.Field{Name: "--by", Text: strings.Repeat("ä", n)} }
	why := func(n int) service.Field { return service.Field{Name: "--reason", Text: strings.Repeat("ä", n)} }
	if err := service.CheckAuthor(name(service.MaxBy), why(service.MaxReason)); err != nil {
		t.Error(err)
	}
	for _, err := range []error{service.CheckAuthor(name(service.MaxBy+1), why(0)), service.CheckAuthor(name(1), why(service.MaxReason+1))} {
		var r *service.Refusal
		if !errors.As(err, &r) || r.Kind != service.Invalid || !strings.Contains(r.Message, "1 characters, at most") {
			t.Errorf("too long: %v", err)
		}
	}
}
