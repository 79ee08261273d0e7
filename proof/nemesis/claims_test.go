package nemesis

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

var (
	claiming = job{name: "claiming", every: 5 * time.Second, take: time.Second, asks: true, async: true,
		ttl: asyncLease}
	leased = job{name: "leased", schedule: "@lease", take: time.Second, asks: true, async: true, ttl: asyncLease}
)

// claims is a scene of one job whose apps ask, for ticks at noon and five seconds later.
func claims(j job) *scene {
	s := newScene(j)
	s.to, s.left = at(5), at(60)
	return s
}

// asks is a question at a replica for a tick, and its answer.
func (s *scene) asks(replica string, tick, sent, answered float64, status int, reason string) *rig.Question {
	s.questions = append(s.questions, rig.Question{Job: s.job.name, Replica: replica, Tick: at(tick), Sent: at(sent),
		Answered: at(answered), Status: status, Reason: reason})
	return &s.questions[len(s.questions)-1]
}

// gets is a question of the app beside r1 that gets a tick, works, and reports that it succeeded.
func (s *scene) gets(tick, answered, ended float64) *rig.Request {
	s.asks("r1", tick, answered-.1, answered, 200, "")
	return s.work(tick, answered, ended)
}

// dies is a run of the app beside r1 that fell silent at an instant, and that was given up at another one. If it dies
// as it gets the answer, it never works.
func (s *scene) dies(tick, answered, died, until, reaped float64) *rig.Request {
	s.asks("r1", tick, answered-.1, answered, 200, "")
	q := s.cutOff(tick, answered, max(until, died), reaped)
	q.Work.Ended, q.Work.Until, q.Work.Died = time.Time{}, at(until), at(died)
	if died == answered {
		q.Work.Began, q.Work.Until = time.Time{}, time.Time{}
	}
	return q
}

// refused is how the apps of the others are answered.
func (s *scene) refused(tick float64) { s.asks("r2", tick, tick+2, tick+2.01, 409, "fired_elsewhere") }

func TestOneOfTheAppsThatAskGetsTheTick(t *testing.T) {
	s := claims(claiming)
	s.gets(0, .002, 1)
	s.refused(0)
	s.gets(5, 7.4, 8.4)               // its clock is slow
	s.strike(refused, "r1", 4.9, 5.1) // which no app needs that asks
	if got := s.judged(t); got.fired != 2 || got.works != 2 || got.unasked != 0 || got.given != 2 || got.held != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestATickThatTwoAppsGetIsADouble(t *testing.T) {
	s := claims(claiming)
	s.gets(0, .002, 1)
	s.gets(5, 5.002, 6)
	s.gets(5, 6.5, 7.4).Replica = "r2"
	s.questions[2].Replica, s.history[2].replica = "r2", "r2"
	s.strike(cut, "r1", 4.9, 9) // excuses no double
	s.judged(t, "double")
	s.requests[2].Work.Began, s.requests[2].Arrived = at(5.9), at(5.9)
	s.requests[2].Token = at(5.9).UnixMilli()
	s.judged(t, "double", "two apps at work")
}

func TestATickThatNoAppAskedForIsNotLost(t *testing.T) {
	s := claims(claiming)
	s.gets(5, 5.002, 6)
	if got := s.judged(t); got.unasked != 1 || got.lost != 0 {
		t.Errorf("got %+v", got)
	}
	s.asks("r2", 0, 5.1, 5.2, 409, "superseded") // too late
	if got := s.judged(t); got.unasked != 1 {
		t.Errorf("got %+v", got)
	}
	s.settle(0, 4, "x", interrupted)
	s.judged(t, "claimed, and no app had asked", unharmed)
}

func TestARunIsOfAReplicaWhoseAppHadAsked(t *testing.T) {
	s := claims(claiming)
	s.gets(5, 5.002, 6)
	s.settle(0, 4, "x", interrupted)
	s.strike(killed, "r1", .01, 1)
	s.asks("r2", 0, 0, .1, 409, "fired_elsewhere")
	s.judged(t, "claimed, and no app had asked")
	s.asks("r1", 0, 4.5, 4.6, 409, "fired_elsewhere") // the run was over
	s.judged(t, "claimed, and no app had asked")
	s.questions[2].Sent = at(0)
	s.judged(t)
	s.questions[2].Tick = at(5)
	s.judged(t, "claimed, and no app had asked")
	s.questions[2].Now = true
	s.judged(t)
	s.questions[2].Answered = at(-1)
	s.judged(t, "claimed, and no app had asked")
}

func TestATickThatAnAppAskedForIsLostUnlessItsReplicaWasStruck(t *testing.T) {
	unclear := []string{"lost", "no clear answer, and nothing had happened"}
	for name, c := range map[string]struct {
		status   int
		reason   string
		sent     float64
		answered float64
		h        harm
		target   string
		from, to float64
		want     []string
	}{
		"refused":                        {409, "fired_elsewhere", 0, .1, cut, "r2", 0, 5, []string{"lost"}},
		"refused, from a slow clock":     {409, "fired_elsewhere", 2.5, 2.6, cut, "r2", 0, 5, []string{"lost"}},
		"another replica is no excuse":   {503, "redis_error", 0, .1, cut, "r2", 0, 5, unclear},
		"nor is the app's door":          {503, "redis_error", 0, .1, refused, "r1", 0, 5, unclear},
		"nor is a cut that was long ago": {503, "redis_error", 0, .1, cut, "r1", -5, -3, unclear},
		"its replica was cut off":        {503, "redis_error", 1, 4.9, cut, "r1", 0, 4, nil},
		"its replica was just back":      {503, "redis_error", 0, .1, cut, "r1", -3, -1, nil},
		"Redis was just back":            {503, "redis_error", 0, .1, away, theRedis, -3, -1, nil},
		"until there was time enough":    {503, "redis_error", 0, 4.9, cut, "r1", -.5, .9, []string{"lost"}},
		"its replica was killed":         {0, "", 1, 1.5, killed, "r1", 1.5, 2, nil},
		"its replica drained":            {503, "draining", .1, .2, drained, "r1", -2, 4, nil},
		"Redis stood still":              {503, "redis_error", 0, 5, stalled, theRedis, -1, 4.5, nil},
		"Redis was back in time":         {503, "redis_error", 0, 5, stalled, theRedis, -1, 4.2, []string{"lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := claims(claiming)
			s.gets(5, 6.002, 7)
			s.asks("r1", 0, c.sent, c.answered, c.status, c.reason)
			s.strike(c.h, c.target, c.from, c.to)
			got := s.judged(t, c.want...)
			if outage := c.target == theRedis; c.want == nil && (got.outages == 1) != outage ||
				got.lost+got.outages+got.excused != 1 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Its replica may have taken it for a question for another tick.
func TestAQuestionForTheTickNextToNowIsNotOwedAnAnswerAfterAStrike(t *testing.T) {
	for now, want := range map[bool][]string{true: nil, false: {"lost"}} {
		s := claims(claiming)
		s.gets(5, 5.002, 6)
		s.asks("r1", 0, -2, 4, 409, "fired_elsewhere").Now = now
		s.strike(stopped, "r1", -1, .4)
		s.judged(t, want...)
	}
}

// A replica that was cut off as it claimed the tick for its app gives it back later, and other apps are refused.
func TestAClaimWithoutAnAnswerExcusesTheRefusalOfTheOtherApps(t *testing.T) {
	for from, want := range map[float64][]string{2.3: nil, 0: {"lost"}} {
		s := claims(claiming)
		s.gets(5, 9.7, 9.9)
		s.asks("r1", 0, 2.4, 4.9, 503, "redis_error")
		s.asks("r2", 0, 2.5, 2.6, 409, "fired_elsewhere")
		s.strike(cut, "r1", from, 4)
		s.judged(t, want...)
	}
}

func TestAnAppIsRefusedForAReason(t *testing.T) {
	s := claims(claiming)
	s.gets(0, .002, 1)
	s.gets(5, 5.002, 6)
	s.asks("r2", 5, 5, 5.1, 409, "overlap")
	s.judged(t)
	s.questions[2].Reason = "paused"
	s.judged(t, "answered 409 paused")
	s.questions[2].Reason = "queued"
	s.judged(t, "answered 409 queued")
	s.questions[2].Status, s.questions[2].Reason = 422, ""
	s.judged(t, "answered 422 ")
	s.questions[2].Status, s.questions[2].Reason = 503, "not_asked"
	s.left = at(5.05)
	s.judged(t) // it was told to end
	s.left = at(60)
	s.judged(t, "no clear answer, and nothing had happened")
	s.strike(killed, "r2", 3, 3.5)
	s.judged(t)
}

func TestAnAppThatDiesEndsItsRunWhenItsTimeIsOver(t *testing.T) {
	for reaped, want := range map[float64][]string{
		1.35: {"over while its app could work"},
		1.5:  nil,
		3.3:  nil,
		3.5:  {"that its app had died was noticed late"},
	} {
		s := claims(claiming)
		s.dies(0, .002, .8, 1.4, reaped)
		s.gets(5, 5.002, 6)
		if got := s.judged(t, want...); got.died != 1 || got.stops != 0 {
			t.Errorf("got %+v", got)
		}
	}
	for reaped, want := range map[float64][]string{
		.5:  {"its app was taken for dead too soon"},
		1.1: nil,
		3.2: {"that its app had died was noticed late"},
	} {
		s := claims(claiming)
		s.dies(0, .002, .002, 0, reaped) // without a heartbeat
		s.gets(5, 5.002, 6)
		if got := s.judged(t, want...); got.died != 1 || got.works != 1 {
			t.Errorf("got %+v", got)
		}
	}
	s := claims(claiming)
	s.dies(0, .002, .8, 1.4, 1.5)
	s.history[0].outcome = succeeded
	s.gets(5, 5.002, 6)
	s.judged(t, "its app had died, and it is succeeded")
}

func TestAnAppThatGotATickMayBeginUnlessItsReplicaWasStruck(t *testing.T) {
	s := claims(claiming)
	q := s.gets(0, .002, .1)
	q.Work = rig.Work{Heartbeat: heartbeat, Stop: 410}
	q.Left, s.history[0].outcome = true, failed
	s.gets(5, 5.002, 6)
	s.judged(t, "its app could not begin, and nothing had happened")
	s.strike(stopped, "r1", .001, .002)
	s.judged(t)
}

// An answer that was held up is no leave to work.
func TestAnAppThatGetsItsAnswerLateMustNotBegin(t *testing.T) {
	for began, want := range map[float64][]string{0: nil, 5.6: {"two apps at work", "token did not grow"}} {
		s := claims(claiming)
		s.gets(5, 5.002, 7).Replica = "r2"
		s.questions[0].Replica, s.history[0].replica = "r2", "r2"
		q := s.dies(0, 5.5, 5.5, 0, 4.1)
		s.questions[1].Sent = at(-1)
		q.Token, q.Ended = at(0).UnixMilli(), at(5.51)
		q.Work = rig.Work{Heartbeat: heartbeat, Stop: 410}
		if began > 0 {
			q.Work.Began, q.Work.Until, q.Work.Ended = at(began), at(6), at(6)
			q.Ended = at(6)
			want = append(want, "over while its app could work")
		}
		s.strike(stopped, "r1", 0, 5.5)
		s.judged(t, want...)
	}
}

// The replica was whole, and so a second app must not even get its answer.
func TestNoAppIsGivenATickWhileAnotherOneCouldWork(t *testing.T) {
	s := claims(claiming)
	s.gets(0, .002, 5.5)
	s.dies(5, 5.2, 5.2, 0, 6.3)
	s.judged(t, "called while another app could work")
}

func TestALeaseHasOneHolderAtATime(t *testing.T) {
	for began, want := range map[float64][]string{2.4: {"two apps at work"}, 2.6: nil} {
		s := claims(leased)
		s.gets(0, .002, 1)
		s.dies(1.1, 1.3, 1.9, 2.5, 2.52) // the answer came late
		s.gets(began, began, 3.2).Replica = "r2"
		s.questions[2].Replica, s.history[2].replica = "r2", "r2"
		s.left = at(4)
		s.strike(stopped, "r1", 1.5, 2.7) // excuses no second holder
		if got := s.judged(t, want...); got.works != 3 || got.ticks != 0 || got.held != 3 || got.given != 0 {
			t.Errorf("got %+v", got)
		}
	}
}

func TestTheTokensOfALeaseGrow(t *testing.T) {
	s := claims(leased)
	s.left = at(4)
	s.gets(0, .002, 1)
	s.gets(1.1, 1.1, 2).Token = at(0).UnixMilli()
	s.judged(t, "token did not grow")
}

func TestALeaseThatAnAppAsksForHasAHolder(t *testing.T) {
	for name, c := range map[string]struct {
		sent, answered float64
		h              harm
		target         string
		from, to       float64
		found          bool
	}{
		"asked all the time":         {.5, 9, cut, "r1", 0, 9, true},
		"asked for too short a time": {6.5, 9, cut, "r1", 0, 9, false},
		"asked again":                {2, 4.5, cut, "r1", 0, 9, false},
		"its replica was struck":     {.5, 9, cut, "r2", 3, 4, false},
		"and whole for long enough":  {.5, 9, cut, "r2", .1, .2, true},
		"Redis was away":             {.5, 9, away, theRedis, 3, 4, false},
		"it holds the lease":         {.5, 1.2, cut, "r1", 0, 9, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := claims(leased)
			s.left = at(12)
			s.gets(0, .002, 1)
			s.gets(9, 9, 11)
			s.asks("r2", 0, c.sent, c.answered, 409, "overlap").Now = true
			s.strike(c.h, c.target, c.from, c.to)
			var want []string
			if c.found {
				want = []string{"a lease without a holder"}
			}
			s.judged(t, want...)
			s.questions, s.requests, s.history = s.questions[:1], s.requests[:1], s.history[:1]
			s.asks("r2", 0, c.sent, c.answered, 409, "overlap").Now = true // until the end
			s.judged(t, want...)
		})
	}
}

// A replica dies between its claim of a lease and the answer: nobody can have it before that run is taken over.
func TestALeaseThatADeadReplicaHadClaimedHasNoHolder(t *testing.T) {
	s := claims(leased)
	s.left = at(9)
	s.gets(0, .002, 1)
	s.gets(6, 6, 8)
	s.asks("r2", 0, .5, 6.5, 409, "overlap").Now = true
	s.history = append(s.history, entry{at: at(5.5), job: s.job.name, tick: at(1.2), run: "dead", replica: "r1", attempt: 1,
		outcome: interrupted})
	s.asks("r1", 0, 1.1, 1.26, 0, "").Now = true
	s.judged(t, "a lease without a holder", "no clear answer, and nothing had happened",
		"taken over from a replica that nothing had happened to")
	s.strike(killed, "r1", 1.25, 1.5)
	s.judged(t)
}

// keptClaims is a scene of a claim whose ticks have fates: the first of its run, the second of no run.
func keptClaims() *kept {
	k := &kept{claims(claiming), &ledger{newest: at(10), counted: map[string]int{}}}
	k.ledgers = map[string]*ledger{k.job.name: k.ledger}
	k.gets(0, .002, 1)
	k.ledger.fates = []fate{{at: at(1.001), what: succeeded, tick: at(0), run: "a"}}
	k.ledger.counted[succeeded] = 1
	k.row(missed, 5, 5)
	k.ledger.fates[1].count, k.ledger.fates[1].detail = 1, "no app asked for it"
	k.ledger.counted[missed] = 1
	return k
}

func TestATickThatNoAppAskedForIsMissed(t *testing.T) {
	k := keptClaims()
	if got := k.weighed(t); got.right != 2 {
		t.Errorf("got %+v", got)
	}
	k.says(5, overlapped)
	k.weighed(t, "overlapped, and no run was in its way")
	k = keptClaims()
	k.ledger.fates = append(k.ledger.fates, fate{at: at(2), what: failed, tick: at(0), run: "b"})
	k.ledger.counted[failed]++
	k.weighed(t, "more than one fate")
	k.forget(5)
	k.forget(0)
	k.weighed(t, "no fate", "no fate")
}

func TestATickThatNoAppAskedForHasNoFateUntilAnAppGetsALaterOne(t *testing.T) {
	k := keptClaims()
	k.forget(5)
	k.weighed(t, "no fate")
	k.ledger.newest = at(0)
	if got := k.weighed(t); got.excused != 1 {
		t.Errorf("got %+v", got)
	}
	k.gets(10, 10.002, 11)
	k.weighed(t, "no fate")
}

func TestATickThatNoAppAskedForSaysSo(t *testing.T) {
	const (
		died    = "the run of 2026-12-01T12:00:00.000Z on r1, which had died, was not over"
		started = "no replica claimed it before replica r1 started"
	)
	for _, detail := range []string{"", died, started} {
		k := keptClaims()
		k.ledger.fates[1].detail = detail
		k.weighed(t, "missed, and the reason is said to be: "+detail)
		k.asks("r2", 5, 5, 5.01, 409, "fired_elsewhere")
		k.weighed(t)
	}
	k := keptClaims()
	k.row(missed, 5, 10).count = 2 // ticks, of which one has a reason
	k.ledger.fates = slices.Delete(k.ledger.fates, 1, 2)
	k.ledger.counted[missed] = 2
	k.weighed(t)
	k = keptClaims()
	k.ledger.fates[1].detail = started
	k.strike(killed, "r1", 4.3, 4.6)
	k.strike(killed, "r1", 11.3, 11.6)
	k.weighed(t, "missed, and the reason is said to be: "+started)
	k.strike(killed, "r1", 5.3, 5.6)
	k.weighed(t)
	k = keptClaims()
	k.ledger.fates[1].detail = died
	k.history[0].outcome, k.history[0].at = interrupted, at(5.2)
	k.ledger.fates[0].what = interrupted
	k.ledger.counted = map[string]int{interrupted: 1, missed: 1}
	k.requests[0].Left, k.requests[0].Work.Report = true, ""
	k.weighed(t)
}

func TestTheRunsOfALeaseHaveOneFateEach(t *testing.T) {
	k := keptClaims()
	k.job.schedule, k.job.every = leased.schedule, 0
	k.gets(2, 2.002, 3)
	k.ledger.fates = append(k.ledger.fates[:1], fate{at: at(3.001), what: succeeded, tick: at(2), run: "b"})
	k.ledger.counted = map[string]int{succeeded: 2}
	k.weighed(t)
	k.row(overlapped, 2.001, 2.001) // another app asked at the same moment
	k.weighed(t, "overlapped, and no run was in its way")
	k.ledger.fates[2].tick, k.ledger.fates[2].first = at(1.6), at(1.6)
	k.says(1.6, missed)
	k.weighed(t, noLeaseMissed)
	k.strike(stalled, theRedis, 1.5, 1.7)
	k.weighed(t)
	k.ledger.fates = k.ledger.fates[:1]
	k.ledger.counted = map[string]int{succeeded: 1}
	k.weighed(t, "no fate")
}

func TestATickWhoseAppWasToldOfARunOverlaps(t *testing.T) {
	k := keptClaims()
	k.requests[0].Ended, k.requests[0].Work.Ended, k.history[0].at = at(6), at(6), at(6)
	k.weighed(t) // no app asked
	k.asks("r2", 10, 5, 5.01, 409, "overlap")
	k.asks("r2", 5, 5.1, 5.2, 409, "fired_elsewhere")
	k.weighed(t)
	k.asks("r2", 5, 5, 5.01, 409, "overlap")
	k.weighed(t, "missed, and a run was in its way")
	k.says(5, overlapped)
	k.weighed(t)
}

func TestAFailureThatAnAppReportedIsTheFateOfItsTick(t *testing.T) {
	k := keptClaims()
	q := &k.requests[0]
	q.Work.Report, q.Failed = failed, true
	k.says(0, failed)
	k.history[0].outcome = failed
	k.weighed(t)
	k.says(0, interrupted)
	k.history[0].outcome = interrupted
	k.weighed(t, "its app reported that it failed, and its fate is interrupted")
	k.strike(cut, "r1", .5, 2)
	k.weighed(t)
}

// granting is the API of a replica that gives its app each tick, and notes for which it was asked.
type granting struct {
	mu    sync.Mutex
	paths []string
}

func (g *granting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	path, asked := strings.CutPrefix(r.URL.Path, "/v1/jobs/")
	if !asked {
		return
	}
	g.paths = append(g.paths, path)
	tick := time.Now().UTC().Truncate(5 * time.Second)
	_ = json.NewEncoder(w).Encode(map[string]any{"tick": tick, "run": "r", "token": "x", "heartbeatMs": 1000})
}

// Each app asks, for ticks and for the lease, and the wait ends when all that was got is over.
func TestEachAppAsks(t *testing.T) {
	t.Parallel()
	app, err := rig.StartApp()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	g := &granting{}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	w := &world{t: t, app: app, jobs: []job{{name: "none", every: time.Second},
		{name: "claim", every: 20 * time.Millisecond, take: time.Millisecond, asks: true},
		{name: "lease", schedule: "@lease", take: time.Millisecond, asks: true}}}
	for _, name := range []string{"r1", "r2"} {
		d, err := app.Open("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		w.replicas = append(w.replicas, &replica{name: name, door: d, admin: server.Listener.Addr().String()})
	}
	ctx, stop := context.WithCancel(t.Context())
	over := w.ask(ctx, 1)
	met := func(name, job string) bool {
		return slices.ContainsFunc(app.Asked(), func(q rig.Question) bool {
			return q.Replica == name && q.Job == job && q.Status == http.StatusOK
		})
	}
	if err := rig.Until(patience, "all questions", func() bool {
		return met("r1", "claim") && met("r2", "claim") && met("r1", "lease") && met("r2", "lease")
	}); err != nil {
		t.Error(err)
	}
	stop()
	over()
	for _, q := range app.Seen() {
		if q.Ended.IsZero() {
			t.Errorf("it is not over: %+v", q)
		}
	}
	for _, path := range g.paths {
		if strings.HasPrefix(path, "none/") || strings.HasPrefix(path, "lease/") && path != "lease/ticks/now" {
			t.Errorf("asked for %s", path)
		}
	}
}
