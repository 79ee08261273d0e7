package service_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/sidecar/service"
)

func TestAReplicasHeartbeatIsReadAsItWasSent(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a, b := w.Replica("a"), w.Replica("b")
		at := w.Now().Truncate(time.Millisecond).UTC()
		sent := service.Replica{Name: "z", Version: "v1", Table: "abc", Offset: -1500 * time.Microsecond, Ready: "draining",
			Skips: map[string]service.Skip{job: {Tick: w.Tick(1).UTC(), Reason: "overlap", At: at}}}
		w.Must(a.Service.Beat(w.Context(), sent))
		w.Must(b.Service.Beat(w.Context(), service.Replica{Name: "y"}))
		got, err := a.Service.Replicas(w.Context())
		if err != nil || len(got) != 2 || got[0].Name != "y" {
			w.Fatalf("%+v, %v", got, err)
		}
		z := got[1]
		if age := z.Seen.Sub(at); age < -time.Millisecond || age > 2*time.Second {
			w.Errorf("seen at %s, sent after %s", z.Seen, at)
		}
		if !maps.Equal(z.Skips, sent.Skips) || z.Name != "z" || z.Version != "v1" || z.Table != "abc" || z.Offset != sent.Offset || z.Ready != "draining" {
			w.Errorf("%+v, want %+v", z, sent)
		}
		w.Must(a.Service.Leave(w.Context(), "z"))
		if got, err := a.Service.Replicas(w.Context()); err != nil || len(got) != 1 {
			w.Errorf("after z left: %+v, %v", got, err)
		}
		if err := a.Service.Beat(w.Context(), service.Replica{Name: "two words"}); err == nil {
			w.Error("a name of two words was taken")
		}
	})
}

func TestEachFieldOfAHeartbeatIsTold(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		s := w.Replica("a").Service
		at := w.Now().Truncate(time.Millisecond).UTC()
		ran := service.Entry{Job: job, Tick: at, Run: "r", Outcome: "failed", Ended: at.Add(time.Second), Took: time.Second, Failed: true}
		sent := service.Replica{Name: "z", Version: "v1", Table: "abc", Observe: true, Offset: time.Microsecond, Local: true, Ready: "app",
			Reload: "broken", Skips: map[string]service.Skip{}, Ran: map[string]service.Entry{job: ran}, Process: "p", Environment: "staging", Twin: true}
		w.Must(s.Beat(w.Context(), sent))
		w.Must(s.Beat(w.Context(), service.Replica{Name: "a"}))
		all, err := s.Replicas(w.Context())
		if err != nil || len(all) != 2 || all[0].Name != "a" || len(all[0].Ran) != 0 {
			w.Fatalf("%+v, %v", all, err)
		}
		sent.Seen = all[1].Seen
		if !reflect.DeepEqual(all[1], sent) {
			w.Errorf("\n%+v, want\n%+v", all[1], sent)
		}
		w.Must(w.Admin.HSet(w.Context(), "solotick:{svc}:replicas", "z", "<xml>").Err())
	})
}

func TestWhatOperatorsReadIsKeptApartFromHeartbeats(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		skipped := service.Replica{Name: "z", Skips: map[string]service.Skip{job: {Tick: w.Tick(1).UTC(), Reason: "overlap", At: w.Tick(1).UTC()}}}
		w.Must(a.Service.Beat(w.Context(), skipped))
		if beats, err := a.Service.Heartbeats(w.Context()); err != nil || len(beats) != 1 || len(beats[0].Skips) != 0 {
			w.Errorf("%+v, %v", beats, err)
		}
		w.Must(a.Service.Beat(w.Context(), service.Replica{Name: "z"})) // another process of that name
		if all, err := a.Service.Replicas(w.Context()); err != nil || len(all) != 1 || len(all[0].Skips) != 0 {
			w.Errorf("of the process before it: %+v, %v", all, err)
		}
		w.Must(a.Service.Beat(w.Context(), skipped))
		w.Must(a.Service.Leave(w.Context(), "z"))
		if n := w.Admin.Exists(w.Context(), "solotick:{svc}:replicas", "solotick:{svc}:reports").Val(); n != 0 {
			w.Errorf("%d keys are left", n)
		}
	})
}

func TestMoreHeartbeatsThanAServiceMayHaveAreRefused(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		var beats []any
		for i := range service.MaxReplicas {
			beats = append(beats, fmt.Sprint("r", i), fmt.Sprintf(`{"seen":%d}`, w.Now().UnixMilli()))
		}
		w.Must(w.Admin.HSet(w.Context(), "solotick:{svc}:replicas", beats...).Err())
		if all, err := a.Service.Replicas(w.Context()); err != nil || len(all) != service.MaxReplicas {
			w.Errorf("as many as there may be: %d, %v", len(all), err)
		}
		w.Must(a.Service.Beat(w.Context(), service.Replica{Name: "a"}))
		if _, err := a.Service.Replicas(w.Context()); !errors.Is(err, service.ErrTooMany) {
			w.Errorf("one more: %v", err)
		}
		w.Must(w.Admin.HSet(w.Context(), "solotick:{svc}:replicas", "a", fmt.Sprintf(`{"seen":%d}`, w.Now().Add(-25*time.Hour).UnixMilli())).Err())
		if _, err := a.Service.Replicas(w.Context()); !errors.Is(err, service.ErrTooMany) {
			w.Errorf("a forgotten one: %v", err)
		}
		if all, err := a.Service.Replicas(w.Context()); err != nil || len(all) != service.MaxReplicas {
			w.Errorf("it was not removed: %d, %v", len(all), err)
		}
	})
}

// An answer of Redis has 8 MiB at most, and of all reports one MiB is kept.
func TestOfMoreReportsThanAnAnswerMayHaveAMiBIsRead(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		const many, size = 100, 100 << 10
		for i := range many {
			name := fmt.Sprintf("r%02d", i)
			w.Must(a.Service.Beat(w.Context(), service.Replica{Name: name}))
			report := fmt.Sprintf(`{"skips":{"job":{"tick":%d}},"later":%q}`, i+1, strings.Repeat("x", size))
			w.Must(w.Admin.HSet(w.Context(), "solotick:{svc}:reports", name, report).Err())
		}
		all, err := a.Service.Replicas(w.Context())
		if err != nil || len(all) != many {
			w.Fatalf("%d replicas, %v", len(all), err)
		}
		read := 0
		for i, r := range all {
			if skip, ok := r.Skips["job"]; ok {
				read++
				if skip.Tick.UnixMilli() != int64(i+1) {
					w.Errorf("%s has skipped %v", r.Name, r.Skips)
				}
			}
		}
		if read != 10 {
			w.Errorf("%d reports are read, want 10", read)
		}
	})
}

// The reports alone tell how every-replica jobs fare, so those of replicas that have gone must not keep the others out.
func TestTheReportsOfReplicasThatLiveAreReadFirst(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		report := func(name string, seen time.Time, size int) {
			w.Must(w.Admin.HSet(w.Context(), "solotick:{svc}:replicas", name, fmt.Sprintf(`{"seen":%d}`, seen.UnixMilli())).Err())
			text := fmt.Sprintf(`{"skips":{"job":{"tick":1}},"later":%q}`, strings.Repeat("x", size))
			w.Must(w.Admin.HSet(w.Context(), "solotick:{svc}:reports", name, text).Err())
		}
		for i := range 20 {
			report(fmt.Sprintf("gone%02d", i), w.Now().Add(-time.Hour), 100<<10)
		}
		report("lives", w.Now(), 50<<10)
		all, err := a.Service.Replicas(w.Context())
		if err != nil || len(all) != 21 || all[20].Name != "lives" || len(all[20].Skips) != 1 {
			w.Errorf("%+v, %v", all, err)
		}
	})
}

func TestSilentReplicasAreSeenForADay(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		a := w.Replica("a")
		w.Must(a.Service.Beat(w.Context(), service.Replica{Name: "old", Skips: map[string]service.Skip{job: {}}}))
		w.Pass(24*time.Hour - time.Second)
		w.Must(a.Service.Beat(w.Context(), service.Replica{Name: "young"}))
		if got, err := a.Service.Replicas(w.Context()); err != nil || len(got) != 2 {
			w.Errorf("after almost a day: %+v, %v", got, err)
		}
		w.Pass(time.Minute)
		got, err := a.Service.Replicas(w.Context())
		if err != nil || len(got) != 1 || got[0].Name != "young" {
			w.Errorf("after more than a day: %+v, %v", got, err)
		}
		if n := w.Admin.HLen(w.Context(), "solotick:{svc}:replicas").Val(); n != 1 {
			w.Errorf("%d are kept", n)
		}
		if n := w.Admin.HLen(w.Context(), "solotick:{svc}:reports").Val(); n != 0 {
			w.Errorf("%d are kept of what operators read", n)
		}
	})
}

func TestAReplicaThatWasDrainingIsNotSilentButGone(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		a := w.Replica("a")
		w.Must(a.Service.Beat(w.Context(), service.Replica{Name: "died", Ready: "the app does not answer"}))
		w.Must(a.Service.Beat(w.Context(), service.Replica{Name: "killed", Ready: service.Draining}))
		for _, left := range []string{"died killed", "died"} {
			var names []string
			all, err := a.Service.Heartbeats(w.Context())
			for _, r := range all {
				names = append(names, r.Name)
			}
			if got := strings.Join(names, " "); err != nil || got != left {
				w.Errorf("seen are %s, %v, want %s", got, err, left)
			}
			w.Pass(service.HeartbeatTimeout + time.Second)
		}
	})
}

func TestOfMoreThanAHundredSkipsTheNewestAreKept(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		a := w.Replica("a")
		skips := map[string]service.Skip{}
		for n := range 250 {
			skips[fmt.Sprint("job-", n)] = service.Skip{Reason: "overlap", At: w.Tick(n)}
		}
		w.Must(a.Service.Beat(w.Context(), service.Replica{Name: "a", Skips: skips}))
		got, err := a.Service.Replicas(w.Context())
		w.Must(err)
		if n := len(got[0].Skips); n != 100 {
			w.Errorf("%d are kept", n)
		}
		for n := 150; n < 250; n++ {
			if _, ok := got[0].Skips[fmt.Sprint("job-", n)]; !ok {
				w.Fatalf("that of tick %d is not kept", n)
			}
		}
	})
}

func TestOfMoreThanAHundredRunsTheFailedAndTheNewestAreKept(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		s := w.Replica("a").Service
		ran := map[string]service.Entry{}
		for n := range 250 {
			ran[fmt.Sprint("job-", n)] = service.Entry{Ended: w.Tick(n), Failed: n < 30}
		}
		w.Must(s.Beat(w.Context(), service.Replica{Name: "a", Ran: ran}))
		all, err := s.Replicas(w.Context())
		w.Must(err)
		if n := len(all[0].Ran); n != 100 {
			w.Errorf("%d are kept", n)
		}
		for n := range 250 {
			if _, kept := all[0].Ran[fmt.Sprint("job-", n)]; kept != (n < 30 || n >= 180) {
				w.Fatalf("that of tick %d is kept: %t", n, kept)
			}
		}
	})
}
