package browser

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/diagnosis"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/admin"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// hostile is text that an attacker may have put where the page shows it.
const hostile = "<img src=x onerror=alert(1)></script><b>\u202egnp.exe\x1b[2J ${x} {{y}}"

// act is a job of the scene. marks has one letter for each of its ticks up to now, the newest last: the replica that
// fired it (1, 2, 3), or f, t, i, d for one that failed, timed out, was interrupted or declined.
type act struct {
	name, keys string
	marks      string
}

var acts = []act{
	{"send-invoices", `schedule: "0 9 * * MON-FRI", timeZone: Europe/Berlin`, "1213113211232123112f"},
	{"sync-ledger", `schedule: "*/5 * * * *", description: "books <b>it</b>", owner: "team-ledger, #ledger", runbook: "https://wiki.example.com/ledger?a=<b>#fails", labels: {tier: gold}`, "1232112321f1ff2f1fff"},
	{"rebuild-search-index", `schedule: "0 * * * *"`, "1232t1121321132i12t1"},
	{"expire-carts", `schedule: "*/10 * * * *"`, "12321223112321312121"},
	{"charge-subscriptions", `schedule: "15 * * * *", guarantee: at-least-once`, "11232f21321213231212"},
	{"rotate-keys", `schedule: "0 3 * * *"`, "1231221312"},
	{"export-analytics", `schedule: "*/30 * * * *", concurrencyPolicy: Queue`, "31223121321321132231"},
	{"import-exchange-rates", `schedule: "*/15 * * * *"`, "2231312d131d22131231"},
	{"warm-cache", `schedule: "@every 1m", guarantee: every-replica`, ""},
	{"archive-audit-log", `schedule: "30 2 * * *"`, "132211323121"},
	{"send-reminders", `schedule: "0 8 * * *", timeZone: America/New_York`, "2131231212321231"},
	{"yearly-report", `schedule: "0 6 1 1 *"`, ""},
	{"purge-sessions", `schedule: "*/20 * * * *"`, "12331212312331212213"},
	{"refresh-materialized-views-of-the-reporting-database", `schedule: "5 * * * *"`, "13212313212132132121"},
	{"reconcile-payments", `schedule: "*/5 * * * *", guarantee: at-least-once`, "12i13212313212132132"},
	{"poll-mailbox", `schedule: "@every 30s"`, "12312332121231212321"},
	{"legacy-sync", `schedule: "0 4 * * *", suspend: true`, "2133"},
	{"check-certificates", `schedule: "0 7 * * MON"`, "12312"},
	{"thumbnail-backlog", `schedule: "*/2 * * * *"`, "12321233121231212312"},
	{"usage-metering", `schedule: "* * * * *"`, "32132112312313212312"},
	{"new-feature-rollout", `schedule: "0 12 * * *"`, ""},
	{"vat-report", `schedule: "0 5 1 * *", timeZone: Europe/Paris`, "2131"},
	{"clean-uploads", `schedule: "45 1 * * *"`, "22131231321"},
	{"dunning", `schedule: "0 10 * * TUE"`, "1231321"},
	{"resend-webhooks", `schedule: "*/3 * * * *"`, "123123f1232112321231"},
	{"score-leads", `schedule: "10 */2 * * *"`, "1132132132121321"},
	{"sitemap", `schedule: "20 0 * * *"`, "132132132"},
	{"compact-events", `schedule: "50 * * * *"`, "21323121321321321321"},
	{"sync-crm", `schedule: "*/12 * * * *"`, "12321233121231212312"},
	{"heartbeat", `schedule: "@every 10s"`, "12312312312312312312"},
}

// mood is how a service fares.
type mood string

const (
	calm    mood = "calm"    // a few jobs have failed at times
	trouble mood = "trouble" // one replica has another table, one is gone, and somebody writes hostile text
	allOK   mood = "all ok"
	failing mood = "ten failing"
	unready mood = "nobody ready"
	noRedis mood = "no Redis"
)

// marks are those of an act in a mood.
func (m mood) marks(n int, marks string) string {
	if m == calm || m == trouble || m == noRedis {
		return marks
	}
	marks = strings.NewReplacer("f", "1", "t", "2", "i", "3").Replace(marks)
	if m == failing && len(marks) > 3 && n%3 == 0 {
		return marks[:len(marks)-3] + "fff"
	}
	return marks
}

// scene is a service in every state, and its status page.
type scene struct {
	t      *testing.T
	mini   *miniredis.Miniredis
	rdb    redis.UniversalClient
	table  *config.Table
	names  []string
	remark string // in what people and apps wrote
	store  *service.Store
	now    time.Time
	url    string
	mood   mood
	away   atomic.Bool // the page's server answers nothing
	redis  atomic.Pointer[view.Trouble]
}

// newScene plays the scene.
func newScene(t *testing.T, m mood, names ...string) *scene {
	s := &scene{t: t, mini: miniredis.RunT(t), names: names, now: time.Now().UTC(), remark: "no such customer", mood: m}
	if m == trouble {
		s.remark = hostile
	}
	s.rdb = lock.NewClient(redis.UniversalOptions{Addrs: []string{s.mini.Addr()}}, 10*time.Second)
	t.Cleanup(func() { _ = s.rdb.Close() })
	var text strings.Builder
	text.WriteString("service: billing\njobs:\n")
	for _, a := range acts {
		fmt.Fprintf(&text, "  - {name: %s, %s, http: {url: \"http://127.0.0.1:8080/jobs\"}}\n", a.name, a.keys)
	}
	var err error
	s.table, err = config.Parse("table.yaml", []byte(text.String()), func(string) (string, bool) { return "", false })
	s.must(err)
	born := s.at(-5 * 365 * 24 * time.Hour)
	for _, a := range acts {
		if a.marks != "" {
			_, err := born.Locks.Register(t.Context(), a.name, "")
			s.must(err)
		}
	}
	_, err = born.Locks.Register(t.Context(), service.TimerJobs, "")
	s.must(err)
	_, err = s.at(-time.Hour).Locks.Register(t.Context(), "yearly-report", "")
	s.must(err)
	s.past()
	s.present()
	s.mini.SetTime(s.now)
	if m == calm || m == noRedis {
		s.mini.SetTime(time.Time{}) // from now on it runs; else no tick comes due any more, which nobody would fire
	}
	s.store, err = service.New(s.rdb, "billing", lock.Options{Timeout: 10 * time.Second})
	s.must(err)
	_, err = s.store.SetTimer(t.Context(), "invoice-4711-reminder", s.now.Add(26*time.Hour), []byte("{}"))
	s.must(err)
	s.beats()
	if m == noRedis {
		s.loseRedis()
	}
	api := admin.API(admin.Options{Replica: s, Name: names[0], Store: s.store, Log: slog.New(slog.DiscardHandler)})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.away.Load() {
			panic(http.ErrAbortHandler)
		}
		api.ServeHTTP(w, r)
	}))
	s.url = web.URL
	t.Cleanup(web.Close)
	return s
}

func (s *scene) Table() *config.Table        { return s.table }
func (s *scene) Jobs() []config.Job          { return s.table.Jobs }
func (s *scene) Drain(context.Context) error { return nil }

func (s *scene) Ask(context.Context, string, time.Time, callback.Executor) (view.Granted, error) {
	return view.Granted{}, nil
}

func (s *scene) WhyIdle() error              { return nil }
func (s *scene) RedisTrouble() *view.Trouble { return s.redis.Load() }

// OwnRuns are those of a replica that runs one job, and has run another.
func (s *scene) OwnRuns(job string) service.Ledger {
	tick := s.now.Add(-time.Minute).Truncate(time.Minute)
	switch job {
	case "export-analytics":
		return service.Ledger{Running: []service.RunState{{Run: "7f5d3b9a-2f60-4b57-8f0f-0d4f3c2b1a02", Since: tick, Record: lock.Record{Tick: tick, Kind: "schedule", Attempt: 1, Replica: s.names[0]}}}}
	case "usage-metering":
		return service.Ledger{Last: &service.Entry{Job: job, Tick: tick, Outcome: "failed", Failed: true, Replica: s.names[0], Ended: tick, Kind: "schedule", Attempt: 1}}
	}
	return service.Ledger{}
}

// loseRedis has Redis answer nothing of use, as the replica knows.
func (s *scene) loseRedis() {
	s.mini.SetError("LOADING Redis is loading the dataset in memory")
	s.redis.Store(&view.Trouble{Since: s.now.Add(-4 * time.Minute), Diagnosis: diagnosis.Diagnosis{Says: "does not answer", Reason: "i/o timeout", Hint: "is it running, and does a firewall let it through?"}})
}

func (s *scene) findRedis() {
	s.mini.SetError("")
	s.redis.Store(nil)
}

func (s *scene) must(err error) {
	if err != nil {
		s.t.Helper()
		s.t.Fatal(err)
	}
}

func (s *scene) state(job string) service.Ledger {
	s.t.Helper()
	states, err := s.store.States(s.t.Context(), []string{job})
	s.must(err)
	return states[job]
}

// at gives a Store at a time before now.
func (s *scene) at(d time.Duration) *service.Store {
	s.mini.SetTime(s.now.Add(d))
	store, err := service.New(s.rdb, "billing", lock.Options{Timeout: 10 * time.Second})
	s.must(err)
	return store
}

// run is one past run.
type run struct {
	job  string
	tick time.Time
	n    int // of the job
	mark byte
}

// ticks returns the newest n ticks of a job, the newest last. It leaves the ticks of the last seconds to the live runs.
func (s *scene) ticks(job, n int) []time.Time {
	next := s.table.Jobs[job].Schedule.Next
	for back := 10 * time.Minute; ; back *= 2 {
		var all []time.Time
		for t := next(s.now.Add(-back)); t.Before(s.now.Add(-8 * time.Second)); t = next(t) {
			all = append(all, t)
		}
		if len(all) >= n {
			return all[len(all)-n:]
		}
	}
}

// past plays the runs of all jobs in the order of time.
func (s *scene) past() {
	var all []run
	for n, a := range acts {
		marks := s.mood.marks(n, a.marks)
		ticks := s.ticks(n, len(marks))
		for i := range ticks {
			all = append(all, run{a.name, ticks[i], i, marks[i]})
		}
	}
	slices.SortStableFunc(all, func(a, b run) int { return a.tick.Compare(b.tick) })
	for i, r := range all {
		e := service.Entry{Attempt: 1, Outcome: "succeeded", Took: time.Duration(i*7919%4000+8) * time.Millisecond}
		by := s.names[(r.n*5+int(r.mark))%3]
		switch r.mark {
		case 'f':
			e.Outcome, e.Failed, e.Attempt, e.Detail = "failed", true, 3, "answered 502 Bad Gateway: upstream ledger-db: connection reset by peer"
			if r.job == "send-invoices" {
				e.Detail = "answered 500: " + s.remark
			}
		case 't':
			e.Outcome, e.Failed, e.Took, e.Detail = "timed_out", true, 5*time.Minute, "no answer within 5m0s"
		case 'i':
			e.Outcome, e.Failed = "interrupted", true
		case 'd':
			e.Outcome = "declined"
		default:
			by = s.names[int(r.mark-'1')%len(s.names)]
		}
		store := s.at(r.tick.Sub(s.now))
		l, a, err := store.Locks.Acquire(s.t.Context(), lock.Claim{Job: r.job, Tick: r.tick, Replica: by, TTL: 15 * time.Second, Attempt: e.Attempt})
		s.must(err)
		if l == nil {
			s.t.Fatalf("%s %s: %+v", r.job, r.tick, a)
		}
		e.Job, e.Tick, e.Run, e.Replica, e.Kind, e.Ended = r.job, r.tick, l.Run(), by, "schedule", r.tick.Add(e.Took)
		_, err = l.Finish(s.t.Context(), 0, e.Ending())
		s.must(err)
	}
}

// present plays the live runs, the waiting ticks and the pauses.
func (s *scene) present() {
	ctx := s.t.Context()
	starts := func(job, by string, ago time.Duration) {
		tick := s.now.Add(-ago).Truncate(time.Millisecond)
		l, a, err := s.at(-ago).Locks.Acquire(ctx, lock.Claim{Job: job, Tick: tick, Replica: by, TTL: time.Hour})
		s.must(err)
		if l == nil {
			s.t.Fatalf("%s: %+v", job, a)
		}
	}
	s.must(s.at(-47*time.Minute).Pause(ctx, "expire-carts", "database migration, ask #ops", s.now.Add(75*time.Minute)))
	s.must(s.at(-26*time.Hour).Pause(ctx, "sitemap", "the crawler is down: "+s.remark, time.Time{}))
	starts("poll-mailbox", s.names[2], 7*time.Second)
	starts("rebuild-search-index", s.names[1], 6*time.Second)
	starts("export-analytics", s.names[0], 5*time.Second)
	starts("thumbnail-backlog", s.names[0], 4*time.Second)
	_, err := s.at(-30*time.Second).Trigger(ctx, "export-analytics", "d8593ae8-b0c6-432f-9178-700b9b46c624")
	s.must(err)
	_, err = s.at(-20*time.Second).Backfill(ctx, "vat-report", []time.Time{s.now.AddDate(0, -5, 0), s.now.AddDate(0, -6, 0)}, "d8593ae8-b0c6-432f-9178-700b9b46c625", false)
	s.must(err)
}

// beats sends heartbeats until the test ends.
func (s *scene) beats() {
	overlap := map[string]service.Skip{"export-analytics": {Tick: s.now.Add(-50 * time.Second).Truncate(time.Second), Reason: "overlap", At: s.now.Add(-50 * time.Second)}}
	replicas := []service.Replica{
		{Name: s.names[0], Version: "v0.1.0", Table: s.table.Hash, Offset: 1250 * time.Microsecond, Skips: overlap},
		{Name: s.names[1], Version: "v0.1.0", Table: s.table.Hash, Offset: -340 * time.Microsecond, Skips: overlap},
		{Name: s.names[2], Version: "v0.1.0", Table: s.table.Hash, Offset: 4120 * time.Microsecond, Ready: "draining"},
	}
	switch s.mood {
	case allOK, failing, noRedis:
		replicas[2].Ready = ""
	case unready:
		for i := range replicas {
			replicas[i].Ready = "app not ready: http://127.0.0.1:8080/readyz answered 503"
		}
	case trouble:
		replicas[1].Table, replicas[1].Ready = "fbe0c2d19a44", "app not ready: http://127.0.0.1:8080/readyz answered 503"
		replicas[1].Offset = -2900 * time.Millisecond
		replicas[2].Ready = ""
		s.must(s.at(-4*time.Minute).Beat(s.t.Context(), replicas[2]))
		replicas = replicas[:2]
		s.mini.SetTime(s.now)
	}
	beat := func() error {
		for _, r := range replicas {
			if err := s.store.Beat(s.t.Context(), r); err != nil {
				return err
			}
		}
		return nil
	}
	s.must(beat())
	go func() {
		for beat() == nil || s.t.Context().Err() == nil { // Redis may be away for a while
			select {
			case <-time.After(2 * time.Second):
			case <-s.t.Context().Done():
				return
			}
		}
	}()
}
