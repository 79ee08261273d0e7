package view_test

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// told is a store that knows what a test tells it, at ten o'clock.
type told struct {
	state    service.Ledger
	replicas []service.Replica
	ticks    record // the rest of the state
	acts     []service.Act
	awaited  time.Time
}

// record is what Redis knows of the ticks of the job.
type record struct {
	service.Ledger
	Fates service.TickFates
}

var ten = time.Date(2026, 11, 23, 10, 0, 30, 0, time.UTC)

func (s *told) States(context.Context, []string) (map[string]service.Ledger, error) {
	l := s.ticks.Ledger
	l.Running, l.Waiting, l.Paused, l.PausedAll = s.state.Running, s.state.Waiting, s.state.Paused, s.state.PausedAll
	return map[string]service.Ledger{"j": l}, nil
}
func (s *told) Replicas(context.Context) ([]service.Replica, error) { return s.replicas, nil }
func (s *told) Now() (time.Time, bool)                              { return ten, true }
func (s *told) TickFates(context.Context, string) (service.TickFates, error) {
	return s.ticks.Fates, nil
}

func (s *told) Awaited(context.Context, string) (time.Time, error) { return s.awaited, nil }

func (s *told) Acts(context.Context, string, int) ([]service.Act, error) { return s.acts, nil }

// at is a time of that day.
func at(clock string) time.Time {
	t, err := time.Parse("15:04:05", clock)
	if err != nil {
		panic(err)
	}
	return time.Date(2026, 11, 23, t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

func ran(tick, outcome string, delay, took time.Duration) service.Entry {
	return service.Entry{Job: "j", Tick: at(tick), Run: "run-" + tick, Replica: "billing-1", Kind: "schedule", Attempt: 1, Outcome: outcome,
		Took: took, Ended: at(tick).Add(delay + took)}
}

func TestEveryTickCanSayWhatBecameOfIt(t *testing.T) {
	every, err := schedule.Parse("*/5 * * * *", schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ready := []service.Replica{{Name: "billing-1", Seen: ten}}
	since := at("06:00:00")
	known := func(fates ...service.Entry) record {
		return record{Ledger: service.Ledger{Born: since, Since: since, Tick: at("09:55:00")}, Fates: fates}
	}
	retried := ran("09:00:00", "succeeded", 41*time.Millisecond, 3200*time.Millisecond)
	retried.Attempt = 2
	failed := ran("09:00:00", "failed", 0, time.Second)
	failed.Detail, failed.Failed = "the app answered 500: boom", true
	overlapped := service.Entry{Tick: at("09:05:00"), First: at("09:05:00"), Count: 1, Outcome: "overlapped", Behind: "run-09:00:00"}
	missed := service.Entry{Tick: at("09:35:00"), First: at("09:05:00"), Count: 7, Outcome: "missed", Detail: "replica billing-1 skipped it: Redis did not answer"}
	again := ran("09:00:00", "succeeded", time.Hour, time.Second)
	again.Kind = "backfill"
	notStarted := ran("09:00:00", "not_started", 0, 0)
	notStarted.Detail = "connection refused"

	gap := known()
	gap.Gaps = []lock.Interval{{From: at("09:00:00"), To: at("09:55:00"), Fate: "missed"}} // whose ends were fired
	settledWords := func(tick string) string {
		return tick + " UTC was settled, and Redis keeps nothing of it: no app was ready yet, it came within a second of the job's registration, or Redis has lost data."
	}
	skips := func(tick string) []service.Replica {
		return []service.Replica{{Name: "billing-1", Seen: ten, Skips: map[string]service.Skip{"j": {Tick: at(tick), Reason: "no_slot", At: at(tick)}}}}
	}

	for _, c := range []struct {
		what string
		told told
		tick string
		fate string
		text string
	}{
		{"fired", told{ticks: known(retried)}, "09:00:00", "succeeded",
			"09:00:00 UTC was fired by billing-1 41 ms late, and attempt 2 succeeded after 3.2 s."},
		{"failed", told{ticks: known(failed)}, "09:00:00", "failed", "09:00:00 UTC was fired by billing-1, and failed after 1.0 s: the app answered 500: boom."},
		{"run again by hand", told{ticks: known(failed, again)}, "09:00:00", "failed",
			"09:00:00 UTC was fired by billing-1, and failed after 1.0 s: the app answered 500: boom. " +
				"An operator had it run again: succeeded after 1.0 s on billing-1, at 10:00:01 UTC."},
		{"run again by somebody", told{ticks: known(failed, again), acts: []service.Act{{Author: service.Author{By: "anna@ops"}, What: "rerun", Tick: at("09:00:00")}}},
			"09:00:00", "failed", "09:00:00 UTC was fired by billing-1, and failed after 1.0 s: the app answered 500: boom. " +
				"anna@ops had it run again: succeeded after 1.0 s on billing-1, at 10:00:01 UTC."},
		{"run again by somebody, and another tick by another", told{ticks: known(failed, again), acts: []service.Act{
			{Author: service.Author{By: "bob@ops"}, What: "rerun", Tick: at("09:05:00")},
			{Author: service.Author{By: "anna@ops"}, What: "rerun", Tick: at("09:00:00")}}},
			"09:00:00", "failed", "09:00:00 UTC was fired by billing-1, and failed after 1.0 s: the app answered 500: boom. " +
				"anna@ops had it run again: succeeded after 1.0 s on billing-1, at 10:00:01 UTC."},
		{"backfilled by somebody", told{ticks: known(failed, again), acts: []service.Act{
			{Author: service.Author{By: "anna@ops"}, What: "pause", Tick: at("09:00:00")},
			{Author: service.Author{By: "carl@ops"}, What: "backfill", Tick: at("09:00:00")}}},
			"09:00:00", "failed", "09:00:00 UTC was fired by billing-1, and failed after 1.0 s: the app answered 500: boom. " +
				"carl@ops had it run again: succeeded after 1.0 s on billing-1, at 10:00:01 UTC."},
		{"backfilled, and else forgotten", told{ticks: known(again, ran("09:50:00", "succeeded", 0, time.Second))}, "09:00:00", "unknown",
			settledWords("09:00:00") + " An operator had it run again: succeeded after 1.0 s on billing-1, at 10:00:01 UTC."},
		{"fired within a millisecond", told{ticks: known(ran("09:00:00", "succeeded", time.Millisecond-1, time.Second))}, "09:00:00", "succeeded",
			"09:00:00 UTC was fired by billing-1, and succeeded after 1.0 s."},
		{"fired a millisecond late", told{ticks: known(ran("09:00:00", "succeeded", time.Millisecond, 24*time.Hour))}, "09:00:00", "succeeded",
			"09:00:00 UTC was fired by billing-1 1 ms late, and succeeded after 1 day."},
		{"observed", told{ticks: known(ran("09:00:00", "observed", 0, time.Second))}, "09:00:00", "observed",
			"09:00:00 UTC was taken by billing-1, which called nothing, because the job is observed only."},
		{"claimed, and never begun", told{ticks: known(ran("09:00:00", "interrupted", 0, 0))}, "09:00:00", "interrupted",
			"09:00:00 UTC was claimed by billing-1, and ended as interrupted."},
		{"paused", told{ticks: known(service.Entry{Tick: at("09:10:00"), First: at("09:05:00"), Count: 2, Outcome: "paused"}), acts: []service.Act{
			{Author: service.Author{By: "bob@ops", Reason: "later"}, What: "pause", At: at("09:06:00")},
			{Author: service.Author{By: "anna@ops", Reason: "migration"}, What: "pause", At: at("09:01:00"), Until: at("11:00:00")}}}, "09:10:00", "paused",
			"09:10:00 UTC was not fired: the job was paused by anna@ops until 11:00:00 UTC (migration), with 1 other from 09:05:00 UTC to 09:10:00 UTC."},
		{"paused, and another pause was over", told{ticks: known(service.Entry{Tick: at("09:05:00"), First: at("09:05:00"), Count: 1, Outcome: "paused"}), acts: []service.Act{
			{Author: service.Author{By: "bob@ops", All: "x"}, What: "pause", At: at("09:02:00"), Until: at("09:03:00")},
			{Author: service.Author{By: "anna@ops"}, What: "pause", At: at("09:01:00")}}}, "09:05:00", "paused",
			"09:05:00 UTC was not fired: the job was paused by anna@ops."},
		{"paused, and another pause ended at that instant", told{
			ticks: known(service.Entry{Tick: at("09:05:00"), First: at("09:05:00"), Count: 1, Outcome: "paused"}), acts: []service.Act{
				{Author: service.Author{By: "bob@ops", All: "x"}, What: "pause", At: at("09:02:00"), Until: at("09:05:00")},
				{Author: service.Author{By: "anna@ops"}, What: "pause", At: at("09:01:00")}}}, "09:05:00", "paused",
			"09:05:00 UTC was not fired: the job was paused by anna@ops."},
		{"paused, and another pause was resumed", told{ticks: known(service.Entry{Tick: at("09:05:00"), First: at("09:05:00"), Count: 1, Outcome: "paused"}), acts: []service.Act{
			{What: "resume", At: at("09:03:00")},
			{Author: service.Author{By: "bob@ops"}, What: "pause", At: at("09:02:00")},
			{Author: service.Author{By: "anna@ops", All: "x"}, What: "pause", At: at("09:01:00")}}}, "09:05:00", "paused",
			"09:05:00 UTC was not fired: the job was paused by anna@ops."},
		{"cancelled between two replicas", told{ticks: known(service.Entry{Tick: at("09:05:00"), Run: "r", Outcome: "cancelled"})}, "09:05:00", "cancelled",
			"09:05:00 UTC waited for a replica that could start it, and was cancelled."},
		{"not started", told{ticks: known(notStarted)}, "09:00:00", "not_started", "09:00:00 UTC could not be started by any replica: connection refused."},
		{"overlapped", told{ticks: known(ran("09:00:00", "succeeded", 0, 6*time.Minute), overlapped)}, "09:05:00", "overlapped",
			"09:05:00 UTC was skipped: the run of 09:00:00 UTC was still going on on billing-1."},
		{"missed", told{ticks: known(missed)}, "09:10:00", "missed",
			"09:10:00 UTC was missed, with 6 others from 09:05:00 UTC to 09:35:00 UTC: replica billing-1 skipped it: Redis did not answer."},
		{"a run in a gap", told{ticks: known(missed, ran("09:10:00", "succeeded", 0, time.Second))}, "09:10:00", "succeeded",
			"09:10:00 UTC was fired by billing-1, and succeeded after 1.0 s."},
		{"the shortest interval", told{ticks: known(overlapped, missed)}, "09:05:00", "overlapped",
			"09:05:00 UTC was skipped: a run of the job was still going on, or another tick was waiting for its end."},
		{"the shortest interval, whichever was counted first", told{ticks: known(missed, overlapped)}, "09:05:00", "overlapped",
			"09:05:00 UTC was skipped: a run of the job was still going on, or another tick was waiting for its end."},
		{"counted twice", told{ticks: known(ran("09:00:00", "interrupted", 0, 0), ran("09:00:00", "succeeded", time.Minute+200*time.Millisecond, time.Second))}, "09:00:00", "succeeded",
			"09:00:00 UTC was fired by billing-1 1m0s late, and succeeded after 1.0 s."},
		{"no tick", told{ticks: known()}, "09:03:00", "no_tick", `09:03:00 UTC is no tick of "*/5 * * * *": the next is 09:05:00 UTC.`},
		{"running", told{ticks: known(), state: service.Ledger{Running: []service.RunState{{Run: "r", Since: at("09:50:00"),
			Record: lock.Record{Tick: at("09:50:00"), Replica: "billing-2", Kind: "schedule"}}}}}, "09:50:00", "running",
			"09:50:00 UTC is running on billing-2 since 09:50:00 UTC."},
		{"only a run by hand has its time", told{ticks: known(), state: service.Ledger{
			Running: []service.RunState{{Run: "r", Record: lock.Record{Tick: at("09:50:00"), Replica: "billing-2", Kind: "manual"}}},
			Waiting: []lock.Due{{Tick: at("09:50:00"), Kind: "manual"}}}}, "09:50:00", "unknown", settledWords("09:50:00")},
		{"handed over", told{ticks: known(), state: service.Ledger{Waiting: []lock.Due{{Tick: at("09:50:00"), Kind: "handover", Refused: []string{"a", "b"}}}}},
			"09:50:00", "waiting", "09:50:00 UTC waits for its run: these replicas could not start it: a, b."},
		{"taken over", told{ticks: known(), state: service.Ledger{Waiting: []lock.Due{{Tick: at("09:50:00"), Kind: "takeover"}}}},
			"09:50:00", "waiting", "09:50:00 UTC waits for its run: its run was cut short, and it is run again."},
		{"to be backfilled", told{ticks: known(), state: service.Ledger{Waiting: []lock.Due{{Tick: at("09:50:00"), Kind: "backfill"}}}},
			"09:50:00", "waiting", "09:50:00 UTC waits for its run: an operator asked for it."},
		{"to be taken", told{ticks: known(), state: service.Ledger{Waiting: []lock.Due{{Tick: at("09:50:00"), Kind: "catchup"}}}},
			"09:50:00", "waiting", "09:50:00 UTC waits for its run: a replica takes it next."},
		{"queued behind two runs", told{ticks: known(), state: service.Ledger{Waiting: []lock.Due{{Tick: at("09:50:00"), Kind: "catchup"}},
			Running: []service.RunState{{Record: lock.Record{Tick: at("09:40:00"), Replica: "billing-2"}}, {Record: lock.Record{Tick: at("09:45:00"), Replica: "billing-3"}}}}},
			"09:50:00", "waiting", "09:50:00 UTC waits for its run: the run of 09:40:00 UTC on billing-2 is still going on."},
		{"refused by all", told{ticks: known(), state: service.Ledger{Waiting: []lock.Due{{Tick: at("09:50:00"), Kind: "handover", Rounds: 1,
			Refused: []string{"~b"}}}}}, "09:50:00", "waiting", "09:50:00 UTC waits for its run: no replica that took it could start it."},
		{"behind a run", told{ticks: record{Ledger: service.Ledger{Born: since, Since: since, Tick: at("09:50:00"), Behind: []service.Behind{{Tick: at("09:55:00")}}}},
			state: service.Ledger{Running: []service.RunState{{Record: lock.Record{Tick: at("09:50:00"), Replica: "billing-2"}}}}}, "09:55:00", "waiting",
			"09:55:00 UTC came due while the run of 09:50:00 UTC on billing-2 was still going on. It is fired only if that run turns out to have been dead."},
		{"not counted yet", told{ticks: record{Ledger: service.Ledger{Born: since, Since: since, Tick: at("09:55:00"),
			Gaps: []lock.Interval{{From: at("09:00:00"), To: at("09:55:00"), Fate: "missed"}}}}}, "09:20:00", "missed", "09:20:00 UTC was missed."},
		{"at the beginning of a gap", told{ticks: gap}, "09:00:00", "unknown", settledWords("09:00:00")},
		{"at the end of a gap", told{ticks: gap}, "09:55:00", "unknown", settledWords("09:55:00")},
		{"still to come", told{ticks: known(), replicas: ready}, "10:05:00", "future", "10:05:00 UTC has not come yet: it is due in 4m30s."},
		{"nobody is there", told{ticks: known()}, "10:00:00", "unclaimed",
			"10:00:00 UTC has come due, and no replica has claimed it. No replica is running: nothing fires until one starts."},
		{"nobody is alive", told{ticks: known(), replicas: []service.Replica{{Name: "billing-1", Seen: ten.Add(-time.Hour)}}}, "10:00:00", "unclaimed",
			"10:00:00 UTC has come due, and no replica has claimed it. No replica is running: nothing fires until one starts."},
		{"a replica has skipped it", told{ticks: known(), replicas: skips("10:00:00")}, "10:00:00", "unclaimed",
			"10:00:00 UTC has come due, and no replica has claimed it. Replica billing-1 skipped 10:00:00 UTC: no_slot."},
		{"a replica has skipped an older one, which was claimed", told{ticks: known(), replicas: skips("09:55:00")}, "10:00:00", "unclaimed",
			"10:00:00 UTC has come due, and no replica has claimed it."},
		{"nobody is ready", told{ticks: known(), replicas: []service.Replica{{Name: "billing-1", Seen: ten, Ready: "the app answered 503"}}}, "10:00:00", "unclaimed",
			"10:00:00 UTC has come due, and no replica has claimed it. No replica takes ticks (billing-1: the app answered 503)."},
		{"it is paused", told{ticks: known(), replicas: ready, state: service.Ledger{Paused: &service.Pause{At: at("09:58:00"), Until: at("11:00:00"), Reason: "migration"}}},
			"10:00:00", "unclaimed", "10:00:00 UTC has come due, and no replica has claimed it. " +
				"The job is paused since 09:58:00 UTC until 11:00:00 UTC: migration. solotick resume j ends the pause at once."},
		{"before it was known", told{ticks: known()}, "05:55:00", "unknown",
			"05:55:00 UTC came before Redis knew the job with this schedule, at 06:00:00 UTC: it has no fate."},
		{"when it became known", told{ticks: known()}, "06:00:00", "unknown",
			"06:00:00 UTC came before Redis knew the job with this schedule, at 06:00:00 UTC: it has no fate."},
		{"one of two is ready", told{ticks: known(), replicas: []service.Replica{{Name: "billing-1", Seen: ten, Ready: "the app answered 503"},
			{Name: "billing-2", Seen: ten}}}, "10:00:00", "unclaimed", "10:00:00 UTC has come due, and no replica has claimed it."},
		{"all jobs are paused", told{ticks: known(), replicas: ready, state: service.Ledger{PausedAll: &service.Pause{At: at("09:58:00"), By: "anna@ops"}}},
			"10:00:00", "unclaimed", "10:00:00 UTC has come due, and no replica has claimed it. " +
				"The job is paused by anna@ops since 09:58:00 UTC. It fires again after solotick resume --all."},
		{"before it was known, and backfilled", told{ticks: known(service.Entry{Tick: at("05:55:00"), Run: "r", Replica: "billing-1", Kind: "backfill",
			Outcome: "succeeded", Ended: at("10:00:00"), Took: time.Second})}, "05:55:00", "unknown",
			"05:55:00 UTC came before Redis knew the job with this schedule, at 06:00:00 UTC: it has no fate. " +
				"An operator had it run again: succeeded after 1.0 s on billing-1, at 10:00:00 UTC."},
		{"too long ago", told{ticks: known(ran("09:50:00", "succeeded", 0, time.Second))}, "08:00:00", "unknown",
			"08:00:00 UTC is too long ago, or the app of the new job was not ready yet: Redis has fates from 09:50:00 UTC on."},
		{"Redis knows nothing", told{}, "09:00:00", "unknown",
			"09:00:00 UTC is not known: Redis does not know the job. A replica makes it known when it starts."},
		{"how it stands while it succeeds", told{ticks: known(ran("09:50:00", "succeeded", 0, time.Second), ran("09:55:00", "succeeded", 0, time.Second)),
			replicas: ready}, "", "stands",
			"The last tick, 09:55:00 UTC, was fired by billing-1, and succeeded after 1.0 s. The next tick is 10:05:00 UTC, in 4m30s."},
		{"how it stands while it is paused", told{ticks: known(), replicas: ready, state: service.Ledger{Paused: &service.Pause{At: at("09:58:00")}}},
			"", "stands", "The job is paused since 09:58:00 UTC. It fires again after solotick resume j."},
		{"how it stands", told{ticks: known(ran("09:50:00", "succeeded", 0, time.Second), failed), replicas: ready}, "", "stands",
			"The last tick, 09:00:00 UTC, was fired by billing-1, and failed after 1.0 s: the app answered 500: boom. " +
				"The last success was 09:50:00 UTC. The next tick is 10:05:00 UTC, in 4m30s."},
	} {
		j := config.Job{Name: "j", Schedule: every, TimeZone: "UTC"}
		var tick time.Time
		if c.tick != "" {
			tick = at(c.tick)
		}
		w, err := view.Explain(t.Context(), &c.told, &config.Table{}, j, tick)
		if err != nil {
			t.Fatal(err)
		}
		if w.Fate != c.fate || w.Text != c.text {
			t.Errorf("%s: %s:\n%s\nwant %s:\n%s", c.what, w.Fate, w.Text, c.fate, c.text)
		}
	}
}

func TestATickOfTheSameDayOfAnotherYearHasItsDate(t *testing.T) {
	every, err := schedule.Parse("*/5 * * * *", schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	known := &told{ticks: record{Ledger: service.Ledger{Born: at("06:00:00"), Since: at("06:00:00"), Tick: at("10:00:00")}}}
	j := config.Job{Name: "j", Schedule: every, TimeZone: "UTC"}
	w, err := view.Explain(t.Context(), known, &config.Table{}, j, at("09:00:00").AddDate(-1, 0, 0))
	const want = "2025-11-23 09:00:00 UTC came before Redis knew the job with this schedule, at 06:00:00 UTC: it has no fate."
	if err != nil || w.Text != want {
		t.Errorf("%v, %v; want %s", w, err, want)
	}
}

func TestAnExcludedTickSaysByWhichCalendar(t *testing.T) {
	monday := at("00:00:00") // 2026-11-23
	day := schedule.Day(monday.Unix() / (24 * 60 * 60))
	holidays, err := schedule.NewDays("holidays", []schedule.Span{{From: day, To: day}}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	never, err := schedule.NewDays("never", []schedule.Span{{From: day + 1, To: day + 1}}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rules      schedule.Rules
		fate, text string
	}{
		{schedule.Rules{Exclude: []*schedule.Days{never, holidays}}, "excluded",
			"09:00:00 UTC is excluded: calendar holidays has 2026-11-23. The next tick is 2026-11-25 09:00:00 UTC."},
		{schedule.Rules{Exclude: []*schedule.Days{never, holidays}, OnExcluded: schedule.PreviousIncluded}, "excluded",
			"09:00:00 UTC is excluded: calendar holidays has 2026-11-23. Its tick moved to 2026-11-22 09:00:00 UTC."},
		{schedule.Rules{Include: []*schedule.Days{never}}, "excluded",
			"09:00:00 UTC is excluded: 2026-11-23 is no day of never. The next tick is 2026-11-24 09:00:00 UTC."},
		{schedule.Rules{Every: schedule.Every{Weeks: 2, From: day - 7}}, "excluded",
			"09:00:00 UTC is excluded: every keeps one week of 2, counted from 2026-11-16, and 2026-11-23 is in another. The next tick is 2026-11-30 09:00:00 UTC."},
		{schedule.Rules{Every: schedule.Every{Days: 3, From: day - 1}}, "excluded",
			"09:00:00 UTC is excluded: every keeps one day of 3, counted from 2026-11-22, and 2026-11-23 is in another. The next tick is 2026-11-25 09:00:00 UTC."},
		{schedule.Rules{Exclude: []*schedule.Days{never}}, "unknown", "09:00:00 UTC is not known: Redis does not know the job. A replica makes it known when it starts."},
	} {
		j := config.Job{Name: "j", TimeZone: "UTC", Days: config.Days{Every: c.rules.Every}}
		if len(c.rules.Include) > 0 {
			j.Days.Include = []string{"never"}
		}
		if j.Schedule, err = schedule.Parse("0 9 * * *", schedule.Options{Rules: c.rules}); err != nil {
			t.Fatal(err)
		}
		w, err := view.Explain(t.Context(), &told{}, &config.Table{}, j, at("09:00:00"))
		if err != nil {
			t.Fatal(err)
		}
		if w.Fate != c.fate || w.Text != c.text {
			t.Errorf("%s: %s\nwant %s: %s", w.Fate, w.Text, c.fate, c.text)
		}
	}
}

// Redis may hold any names of replicas and operators, and a terminal shows them.
func TestWhyHasNoControlCharacters(t *testing.T) {
	every, err := schedule.Parse("*/5 * * * *", schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	bad := ran("09:00:00", "failed", time.Second, time.Second)
	bad.Replica, bad.Failed = "billing\x1b[2J\n-1", true
	s := &told{replicas: []service.Replica{{Name: "billing-1", Seen: ten}},
		ticks: record{Ledger: service.Ledger{Born: at("06:00:00"), Since: at("06:00:00"), Tick: at("09:55:00")}, Fates: []service.Entry{bad}}}
	s.state.Paused = &service.Pause{By: "an\x1b[31m\nna", Reason: "x", At: at("09:58:00")}
	for _, tick := range []time.Time{at("09:00:00"), {}} {
		w, err := view.Explain(t.Context(), s, &config.Table{}, config.Job{Name: "j", Schedule: every}, tick)
		if err != nil || !strings.Contains(w.Text, map[bool]string{true: "an [31m na", false: "billing [2J -1"}[tick.IsZero()]) ||
			strings.ContainsFunc(w.Text, unicode.IsControl) {
			t.Errorf("%q, %v", w.Text, err)
		}
	}
}

// explained is why of a tick of a job with these expressions and options, in the world that is told.
func explained(t *testing.T, s told, j config.Job, expr string, o schedule.Options, tick time.Time) *view.Why {
	t.Helper()
	var err error
	if j.Schedule, err = schedule.Parse(expr, o); err != nil {
		t.Fatal(err)
	}
	j.Name = "j"
	w, err := view.Explain(t.Context(), &s, &config.Table{}, j, tick)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWhatBecameOfATickIsInFieldsToo(t *testing.T) {
	never, known := ran("09:00:00", "interrupted", time.Minute, 0), func(e ...service.Entry) told {
		return told{ticks: record{Ledger: service.Ledger{Born: at("06:00:00"), Since: at("06:00:00"), Tick: at("09:55:00")}, Fates: e}}
	}
	never.Detail = "boom"
	every := func(s told) *view.Why {
		return explained(t, s, config.Job{}, "*/5 * * * *", schedule.Options{}, at("09:00:00"))
	}
	for what, c := range map[string]struct{ got, want *view.Why }{
		"a run": {every(known(ran("09:00:00", "succeeded", 41*time.Millisecond, 3200*time.Millisecond))), &view.Why{Fate: "succeeded",
			Run: "run-09:00:00", Replica: "billing-1", Kind: "schedule", Attempt: 1, DelayMS: 41, DurationMS: 3200}},
		"a claim": {every(known(never)), &view.Why{Fate: "interrupted", Run: "run-09:00:00", Replica: "billing-1", Kind: "schedule", Attempt: 1,
			Detail: "boom"}}, // when it would have begun is not known
		"missed ticks": {every(known(service.Entry{First: at("08:55:00"), Tick: at("09:10:00"), Count: 4, Outcome: "missed", Detail: "boom"})),
			&view.Why{Fate: "missed", First: view.Stamp(at("08:55:00")), Last: view.Stamp(at("09:10:00")), Ticks: 4, Detail: "boom"}},
	} {
		c.want.Job, c.want.Tick, c.want.Text = "j", view.Stamp(at("09:00:00")), c.got.Text
		if *c.got != *c.want {
			t.Errorf("%s: %+v\nwant %+v", what, c.got, c.want)
		}
	}
}

func TestEachOutcomeHasItsWords(t *testing.T) {
	for outcome, want := range map[string]string{
		"succeeded": "succeeded", "failed": "failed", "timed_out": "timed out", "lost_lock": "lost its lock", "replaced": "was replaced by a newer tick",
		"declined": "was declined by the app, which was at this work already,", "interrupted": "was interrupted", "cancelled": "was cancelled",
		"shutdown": "was cut short by a shutdown",
	} {
		s := told{ticks: record{Fates: []service.Entry{ran("09:00:00", outcome, 0, time.Second)}}}
		w := explained(t, s, config.Job{}, "*/5 * * * *", schedule.Options{}, at("09:00:00"))
		if want = "09:00:00 UTC was fired by billing-1, and " + want + " after 1.0 s."; w.Text != want || w.Fate != outcome {
			t.Errorf("%s: %s\nwant %s", w.Fate, w.Text, want)
		}
	}
}

func TestATickIsExplainedByItsJob(t *testing.T) {
	monday := schedule.Day(at("00:00:00").Unix() / (24 * 60 * 60))
	holidays, err := schedule.NewDays("holidays", []schedule.Span{{From: monday, To: monday}}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	known := told{replicas: []service.Replica{{Name: "billing-1", Seen: ten}}, ticks: record{
		Ledger: service.Ledger{Born: at("06:00:00"), Since: at("06:00:00"), Tick: at("09:55:00")}, Fates: []service.Entry{ran("09:00:00", "succeeded", 0, time.Second)}}}
	for _, c := range []struct {
		what, expr string
		options    schedule.Options
		job        config.Job
		tick       time.Time
		text       string
	}{
		{"of another zone", "*/5 * * * *", schedule.Options{}, config.Job{TimeZone: "Europe/Berlin"}, at("09:00:00"),
			"10:00:00 CET was fired by billing-1, and succeeded after 1.0 s."},
		{"suspended", "*/5 * * * *", schedule.Options{}, config.Job{Suspend: true}, at("10:00:00"),
			"10:00:00 UTC is not fired: the table suspends the job."},
		{"suspended, as it stands", "*/5 * * * *", schedule.Options{}, config.Job{Suspend: true}, time.Time{},
			"The table suspends j: it has no ticks until suspend is removed. The last tick, 09:00:00 UTC, was fired by billing-1, and succeeded after 1.0 s."},
		{"over", "@at 2026-11-23T09:00:00Z", schedule.Options{}, config.Job{}, at("09:03:00"),
			`09:03:00 UTC is no tick of "@at 2026-11-23T09:00:00Z", and there is none after it.`},
		{"over, as it stands", "@at 2026-11-23T09:00:00Z", schedule.Options{}, config.Job{}, time.Time{},
			"The last tick, 09:00:00 UTC, was fired by billing-1, and succeeded after 1.0 s. There is no further tick."},
		{"the last one is excluded", "0 8 * * *", schedule.Options{End: at("12:00:00"), Rules: schedule.Rules{Exclude: []*schedule.Days{holidays}}},
			config.Job{}, at("08:00:00"), "08:00:00 UTC is excluded: calendar holidays has 2026-11-23. There is no tick after it."},
		{"of every replica", "*/5 * * * *", schedule.Options{}, config.Job{Guarantee: config.EveryReplica}, at("09:00:00"),
			"09:00:00 UTC is fired by each replica for itself, and has no fate of its own: solotick history j shows the runs."},
	} {
		if w := explained(t, known, c.job, c.expr, c.options, c.tick); w.Text != c.text {
			t.Errorf("%s: %s\nwant %s", c.what, w.Text, c.text)
		}
	}
}
