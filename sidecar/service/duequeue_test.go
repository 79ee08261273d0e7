package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
)

// dueOf is a due member of the case's job.
func dueOf(kind string, n int) string {
	return lock.Due{Tick: time.UnixMilli(int64(n + 1)), Job: job, Kind: kind, Attempt: 1, Nonce: fmt.Sprint(n)}.Member()
}

// addMembers puts n members into a set of what is due, at the scores from 1 on.
func addMembers(w *redisworld.World, set string, n int, member func(n int) string) {
	w.Helper()
	var all []redis.Z
	for i := range n {
		all = append(all, redis.Z{Score: float64(i + 1), Member: member(i)})
	}
	for some := range slices.Chunk(all, 10_000) {
		w.Must(w.Admin.ZAdd(w.Context(), set, some...).Err())
	}
}

// TestHowEverManyTimersAreDueALookIsShortAndSeesAllElse is the morning after a day without replicas.
func TestHowEverManyTimersAreDueALookIsShortAndSeesAllElse(t *testing.T) {
	t.Parallel()
	redisworld.OnReal(t, func(w *redisworld.World) {
		w.Born()
		w.KnowsTimers()
		const many, wanted = 100_000, 257
		id := func(n int) string { return fmt.Sprintf("1 timer:order-%06d timer 1 0 0 nonce", n) }
		addMembers(w, dueTimers, many, id)
		// By their scores these lie in front of all timers, in the midst of them, and behind.
		var want []string
		for i, at := range []int64{1, many / 2, w.Now().UnixMilli()} {
			want = append(want, dueOf("backfill", i))
			w.Must(w.Admin.ZAdd(w.Context(), dueSet, redis.Z{Score: float64(at), Member: want[i]}).Err())
		}
		a := w.Replica("a")
		seen, err := a.Service.Look(w.Context(), wanted)
		w.Must(err)
		for n := range wanted {
			want = append(want, id(n))
		}
		var got []string
		for _, d := range seen.Due {
			got = append(got, d.Member())
		}
		if !slices.Equal(got, want) {
			w.Fatalf("sees %d members, from %q, want %d: the jobs' and the oldest timers", len(got), got[:min(len(got), 5)], len(want))
		}
		for _, d := range seen.Due[:3] {
			l, _ := a.Wins(a.ClaimOf(d))
			a.Finishes(l, 0)
		}
	})
}

func TestOfVeryMuchThatIsDueOfJobsALookSeesTheOldestAndTheNewest(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		for _, c := range []struct{ due, seen, newest int }{{4999, 4999, 4998}, {5000, 5000, 4999}, {5300, 5300, 5299}, {7000, 6000, 6999}} {
			w.Must(w.Admin.Del(w.Context(), dueSet).Err())
			addMembers(w, dueSet, c.due-300, func(n int) string { return dueOf("backfill", n) })
			for n := range 300 { // added in one step
				w.Must(w.Admin.ZAdd(w.Context(), dueSet, redis.Z{Score: 1e6, Member: dueOf("backfill", c.due-300+n)}).Err())
			}
			seen, err := a.Service.Look(w.Context(), 1)
			w.Must(err)
			members := map[string]bool{}
			for _, d := range seen.Due {
				members[d.Member()] = true
			}
			if len(seen.Due) != c.seen || len(members) != c.seen || !members[dueOf("backfill", 0)] || !members[dueOf("backfill", c.newest)] {
				w.Errorf("of %d sees %d, %d different, want %d, the first and the last among them", c.due, len(seen.Due), len(members), c.seen)
			}
		}
	})
}

// Another client may write members with very many refusals. Once a look has kept 300,000, it passes over those that
// have more.
func TestAMemberWithVeryManyRefusalsHidesNoLaterOne(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		const each = 30_000
		for n := range 12 {
			member := dueOf("handover", n)
			if n < 11 {
				member += strings.Repeat(" r", each)
			}
			w.Must(w.Admin.ZAdd(w.Context(), dueSet, redis.Z{Score: float64(n + 1), Member: member}).Err())
		}
		seen, err := a.Service.Look(w.Context(), 1)
		w.Must(err)
		var nonces []string
		for _, d := range seen.Due {
			nonces = append(nonces, d.Nonce)
		}
		if got := strings.Join(nonces, " "); got != "0 1 2 3 4 5 6 7 8 9 11" {
			w.Errorf("sees %s", got)
		}
	})
}

func TestALookTellsWhatComesDueNextOfTimersAndOfAllElse(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		now := w.Now().Truncate(time.Millisecond).UTC()
		looks := func(due int, next, nextTimer time.Time) []lock.Due {
			w.Helper()
			seen, err := a.Service.Look(w.Context(), 1)
			if err != nil || len(seen.Due) != due || !seen.Next.Equal(next) || !seen.NextTimer.Equal(nextTimer) {
				w.Fatalf("%+v, %v, want %d due, next %s, timers %s", seen, err, due, next, nextTimer)
			}
			return seen.Due
		}
		never, job, timer := time.Time{}, now.Add(30*time.Second), now.Add(time.Minute)
		a.Sets("x", timer, "", true)
		looks(0, never, timer)
		w.Must(w.Admin.ZAdd(w.Context(), dueSet, redis.Z{Score: float64(job.UnixMilli()), Member: dueOf("catchup", 0)}).Err())
		looks(0, job, timer)
		w.Pass(40 * time.Second)
		if d := looks(1, never, timer); d[0].Age != 10*time.Second {
			w.Errorf("then %+v", d)
		}
		w.Pass(21 * time.Second)
		if d := looks(2, never, never); d[1].Age != time.Second {
			w.Errorf("at last %+v", d)
		}
	})
}

func TestALookTellsHowManyMembersItPassedOverAmongTimers(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		addMembers(w, dueSet, 3, func(n int) string { return fmt.Sprint("another's ", n) })
		addMembers(w, dueTimers, 5, func(n int) string { return fmt.Sprint("another's timer ", n) })
		for timers, want := range map[int64]int64{1: 1, 4: 4, 10: 5} {
			if seen, err := a.Service.Look(w.Context(), timers); seen.Undecodable != want || len(seen.Due) != 0 || err != nil {
				w.Errorf("of %d: %+v, %v, want %d", timers, seen, err, want)
			}
		}
	})
}

// TestTimerThatIsHandedOnStaysAmongTimers: else they would hide what is due of jobs when there are many for an app that
// is away.
func TestTimerThatIsHandedOnStaysAmongTimers(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.KnowsTimers()
		a := w.Replica("a")
		a.Sets("x", w.Tick(0), "source", true)
		l, _ := a.Wins(a.ClaimOf(a.Sees()))
		if got, err := l.Handover(w.Context(), time.Minute, lock.Ending{}); got.Verdict != lock.OK || err != nil {
			w.Fatalf("handover: %s, %v", got.Verdict, err)
		}
		z, err := w.Admin.ZRangeWithScores(w.Context(), dueTimers, 0, -1).Result()
		if err != nil || len(z) != 1 || z[0].Score != float64(w.Now().Add(time.Minute).UnixMilli()) {
			w.Errorf("due: %v, %v", z, err)
		}
		w.Pass(time.Minute + time.Second)
		if d := a.Sees(); !strings.HasPrefix(d.Job, "timer:") || d.Age != time.Second {
			w.Errorf("%+v", d)
		}
	})
}
