package nemesis

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	outliving = job{name: "outliving", every: time.Second, all: true}
	queueing  = job{name: "queueing", every: time.Second, take: 2 * time.Second, queue: true}
	told      = job{name: "told", every: 10 * time.Second, take: 2 * time.Second, ttl: longLease}
	toldAgain = job{name: "told", every: 10 * time.Second, take: 2 * time.Second, ttl: longLease, again: true}
	retrying  = job{name: "retrying", every: 10 * time.Second, take: time.Second, fails: 2, ttl: longLease}
)

func TestATickThatOutlivesAnOutageIsFiredAfterIt(t *testing.T) {
	s := newScene(outliving)
	s.fire(0)
	s.strike(stalled, theRedis, .5, 2.9)
	s.fire(3)
	s.judged(t, "lost", "lost")
	s.run(1, 2.91, 2.92, succeeded)
	s.run(2, 2.93, 2.94, succeeded)
	if got := s.judged(t); got.late != 1 || got.fired != 4 {
		t.Errorf("got %+v", got)
	}
}

func TestOnlyTheNewestTickOfAStallHasAChance(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 3)
	s.strike(stalled, theRedis, .5, 2.4)
	if got := s.judged(t); got.outages != 2 || got.excused != 0 {
		t.Errorf("got %+v", got)
	}
	s.record.strikes[0].to = at(2.2) // time enough to fire the second
	s.judged(t, "lost")
}

func TestATickThatIsDueSoonAfterAStallIsExcused(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 2, 3)
	s.strike(stalled, theRedis, .1, .5)
	s.record.strikes[0].to = at(.9)
	s.judged(t, "lost") // it had a second
	s.strike(stalled, theRedis, 1.6, 1.9)
	if got := s.judged(t); got.outages != 1 {
		t.Errorf("got %+v", got)
	}
	s.record.strikes[0].to = at(.2)
	s.judged(t, "lost") // Redis had answered for long
}

func TestATickOfTheTimeWithoutRedisIsNoExcuseOfItsOwn(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 3)
	s.strike(away, theRedis, .9, 3)
	if got := s.judged(t); got.outages != 2 || got.excused != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestARunOfAStaleTickIsFound(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 3)
	s.run(1, 2.2, 2.205, succeeded)
	s.strike(stalled, theRedis, .9, 2.19)
	s.judged(t, "started although a newer tick was due", "lost")
	s.requests[2].Kind = "catchup"
	s.judged(t, "started although a newer tick was due", "lost")
	s.requests[2].Kind = "schedule"
	s.strike(stopped, "r1", .9, 2.19) // it had claimed it in time
	s.judged(t)
	s.job.all, s.jobs[0].all = true, true
	s.record.strikes = s.record.strikes[:1]
	s.judged(t, "lost") // worth firing, as the other one is
}

// A claim that Redis carried out in time is run, however late the answer comes; under at-least-once alone.
func TestATickThatRedisStoodStillWithIsRunLateUnderAtLeastOnce(t *testing.T) {
	for _, c := range []struct {
		job     job
		from    float64 // of the standstill
		claimed float64
		want    []string
	}{
		{again, 0.6, 0.5, nil},
		{again, 1.6, 0.5, []string{"started although a newer tick was due"}},
		{again, 0.6, 1.45, []string{"started although a newer tick was due"}},
		{brief, 0.6, 0.5, []string{"started although a newer tick was due"}},
	} {
		s := newScene(c.job)
		s.strike(stalled, theRedis, c.from, c.from+.8)
		s.run(0, 1.5, 1.55, succeeded).Token = at(c.claimed).UnixMilli()
		s.fire(2, 3)
		s.judged(t, c.want...)
	}
}

// A replica that had no answer gives back what it may have won.
func TestATickThatAReplicaHadNoAnswerForIsRunLate(t *testing.T) {
	s := newScene(again)
	s.fire(0)
	s.run(1, 3.41, 3.42, succeeded).Replica = "r2"
	s.run(3, 3.43, 3.44, succeeded).Kind = "catchup"
	s.judged(t, "lost", "started although a newer tick was due")
	s.withoutAnswer = func(job string, tick time.Time) bool { return tick.Equal(at(2)) }
	s.judged(t, "lost", "started although a newer tick was due")
	s.withoutAnswer = func(job string, tick time.Time) bool { return tick.Equal(at(1)) }
	s.judged(t, "lost", "started although a newer tick was due")
	s.strike(stalled, theRedis, 1.2, 1.3)
	s.judged(t, "lost")
}

func TestARunThatBeganAfterATickIsNoExcuseForIt(t *testing.T) {
	s := newScene(outliving)
	s.fire(0, 2, 3)
	s.run(.5, 1.05, 1.5, succeeded)
	s.requests[3].Tick, s.history[3].tick = at(0), at(0)
	s.requests, s.history = slices.Delete(s.requests, 0, 1), slices.Delete(s.history, 0, 1)
	if got := s.judged(t); got.overlaps != 1 { // it was claimed before
		t.Errorf("got %+v", got)
	}
	s.requests[2].Arrived = at(1.4) // on a busy machine
	if got := s.judged(t); got.overlaps != 1 {
		t.Errorf("got %+v", got)
	}
	s.requests[2].Token = at(1.15).UnixMilli()
	s.judged(t, "lost")
}

func TestUnderQueueATickWaitsUnlessAnotherOneDoes(t *testing.T) {
	s := newScene(queueing)
	s.run(0, .002, 2.5, succeeded)
	s.run(3, 3, 3.1, succeeded)
	s.judged(t, "lost", "lost")
	s.run(1, 2.501, 2.6, succeeded)
	if got := s.judged(t); got.overlaps != 1 {
		t.Errorf("got %+v", got)
	}
	s = newScene(queueing)
	s.fire(1, 3)
	late := s.run(0, 2.5, 2.6, succeeded)
	s.judged(t, "lost") // nothing was in the way of the tick that waited
	late.Kind = "handover"
	if got := s.judged(t); got.overlaps != 1 {
		t.Errorf("behind a tick that was handed on: got %+v", got)
	}
}

func TestTheEndOfARunIsRecordedAfterAStallThatItsLeaseOutlives(t *testing.T) {
	s := newScene(told)
	s.to = at(9)
	s.run(0, .002, 2, interrupted)
	s.requests[0].Left = false
	s.history[0].at = at(12)
	s.strike(stalled, theRedis, .05, 5.8)
	s.strike(drained, "r1", .05, 8)
	s.judged(t, "its end was not recorded")
	s.record.strikes[0].to = at(7.5)
	if got := s.judged(t); got.drained != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestALeaseIsAsOldAsItsLastRenewalWhenRedisStandsStill(t *testing.T) {
	s := newScene(told)
	s.to = at(9)
	s.run(0, .002, 5, interrupted)
	s.requests[0].Left = false
	s.history[0].at = at(20)
	s.strike(stalled, theRedis, 4, 7.5)
	s.judged(t, "its end was not recorded")
	s.record.strikes[0].to = at(9.5)
	s.judged(t)
}

func TestARunThatSucceededWhileRedisStoodStillIsNotRunAgain(t *testing.T) {
	s := newScene(toldAgain)
	s.to = at(9)
	s.run(0, .002, 2, interrupted)
	s.requests[0].Left = false
	s.history[0].at = at(12)
	next := s.run(0, 12.1, 14.1, succeeded)
	next.Attempt, next.Kind, s.history[1].attempt = 2, "takeover", 2
	s.strike(stalled, theRedis, .05, 5.8)
	s.strike(drained, "r1", .05, 8)
	s.judged(t, "its end was not recorded", "double")
	s.record.strikes[0].to = at(7.5)
	s.judged(t)
}

func TestADrainExplainsNothingByItself(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 2, 3)
	s.settle(1, 3.05, "x", interrupted)
	s.strike(drained, "r1", .99, 2)
	s.judged(t, "lost", "taken over from a replica that nothing had happened to")
}

// attempt is one more call of the last run, which answers by an error.
func (s *scene) attempt(number int, arrived, ended float64, fails bool) {
	last := s.requests[len(s.requests)-1]
	last.Attempt, last.Arrived, last.Ended, last.Failed = number, at(arrived), at(ended), fails
	s.requests = append(s.requests, last)
}

func TestTheAttemptsOfARunAreOneRun(t *testing.T) {
	s := newScene(retrying)
	s.to = at(9)
	s.run(0, .002, 1, succeeded).Failed = true
	s.attempt(3, 2, 3, false) // the second found no app
	s.history[0].attempt, s.history[0].at = 3, at(3.001)
	if got := s.judged(t); got.fired != 1 || got.doubles != 0 {
		t.Errorf("got %+v", got)
	}
	s.requests[0].Failed = false // nothing was to be tried again
	s.judged(t, "settled other than once", "token did not grow", "double")
}

// The replica that takes a run over counts on behind its attempts.
func TestAnAttemptOfARunThatWasTakenOverIsNotMadeAgain(t *testing.T) {
	for first, want := range map[int][]string{2: {"double"}, 3: nil} {
		job := retrying
		job.again = true
		s := newScene(job)
		s.to = at(9)
		s.run(0, .002, 1, interrupted).Failed = true
		s.attempt(2, 1.5, 2, false)
		s.requests[1].Left, s.history[0].attempt, s.history[0].at = true, 2, at(11.5)
		s.strike(killed, "r1", 2, 2.5)
		next := s.run(0, 12, 13, succeeded)
		next.Attempt, next.Kind, next.Failed, next.Left = first, "takeover", true, false
		s.attempt(first+1, 13.5, 14.5, false)
		s.history[1].attempt, s.history[1].at = first+1, at(14.501)
		s.judged(t, want...)
	}
}

func TestTheAttemptsThatAreLeftAreMadeInADrain(t *testing.T) {
	s := newScene(retrying)
	s.to = at(9)
	s.run(0, .002, 1, failed).Failed = true
	s.strike(drained, "r1", .1, 6)
	s.judged(t, "attempts left")
	s.strike(refused, "r1", .9, 3) // those that are left find no app
	s.judged(t)
	s.record.strikes = s.record.strikes[:1]
	s.attempt(2, 1.5, 2.5, true)
	s.attempt(3, 3, 4, true)
	s.history[0].attempt, s.history[0].at = 3, at(4.001)
	s.judged(t)
}

func TestATickThatOneHealthyReplicaCouldStartIsPrompt(t *testing.T) {
	s := newScene(rare)
	s.to = at(9)
	s.run(0, 2.1, 2.2, succeeded).Kind = "handover"
	s.strike(refused, "r1", -1, 5)
	s.judged(t, "started late")
	s.strike(refused, "r2", .5, .7) // the healthy one was not so all the time
	s.judged(t)
	s.record.strikes = nil // nobody refused it
	s.judged(t)
}

func TestATickThatWentRoundUntilTheNextOneWasDueIsLost(t *testing.T) {
	s := newScene(brief)
	s.strike(refused, "r1", -1, 9)
	s.fire(0, 1, 3)
	s.settle(2, 2.01, "x", handedOver)
	s.settle(2, 3.01, "y", notStarted)
	s.judged(t, "lost")
}

func TestAppsThatAllRefuseExcuseTicksOfThatTimeAlone(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 3)
	s.strike(refused, "r1", .8, 1.2)
	s.strike(refused, "r2", .9, 1.2)
	s.judged(t, "lost") // the one after it
	s.record.strikes[0].to, s.record.strikes[1].to = at(1.8), at(1.8)
	if got := s.judged(t); got.outages != 1 || got.excused != 1 || got.exposed != 2 { // the second one came just after it
		t.Errorf("got %+v", got)
	}
}

// Each cause may excuse its own share of the ticks of a class, and no more.
func TestTooManyExcusesAreFound(t *testing.T) {
	for why, bound := range bounds {
		for ticks, most := range map[int]int{10: bound.few, 100_000: 100 * bound.perMille} {
			s := newScene(brief)
			v := &verdict{byClass: map[string]*tally{"faults": {ticks: ticks, exposed: ticks}, "others": {ticks: 1 << 30, exposed: 1 << 30}}}
			c := &court{trial: s.trial, verdict: v, job: brief}
			for range most {
				c.excuse(why, at(1))
			}
			want := leniency{"faults", why, most, ticks, most}
			if got := v.leniencies(); len(got) != 1 || got[0] != want {
				t.Errorf("%s: got %+v, want %+v", why, got, want)
			}
			c.excuse(why, at(1))
			if got := v.leniencies(); got[0].n <= got[0].most {
				t.Errorf("%s: one more of %d ticks is not found: %+v", why, ticks, got)
			}
		}
	}
}

// Under at-least-once another replica runs what a claimant that stood still gives back, under the kind that it had, and
// ticks of that time are refused behind it.
func TestATickThatIsGivenBackIsRunLate(t *testing.T) {
	s := newScene(again)
	s.fire(0)
	s.run(1, 3.41, 3.42, succeeded).Replica = "r2"
	s.run(3, 3.43, 3.44, succeeded).Kind = "catchup"
	s.judged(t, "lost", "started although a newer tick was due")
	s.strike(stopped, "r1", .99, 3.4)
	if got := s.judged(t); got.overlaps != 1 {
		t.Errorf("got %+v", got)
	}
	s.record.strikes[0] = strike{stopped, "r1", at(.5), at(3.4)} // it was another one's to claim
	s.judged(t, "lost", "started although a newer tick was due")
	s.record.strikes[0] = strike{stopped, "r1", at(.99), at(4)} // it cannot have given it back
	s.judged(t, "lost", "started although a newer tick was due")
}

// A run that was tried again is told by its first attempt: the others are its own.
func TestARunOfATickThatWasGivenBackMayBeTriedAgain(t *testing.T) {
	job := retrying
	job.every, job.again = 5*time.Second, true
	stale := "started although a newer tick was due"
	for name, c := range map[string]struct {
		first int // attempt of the run
		cut   bool
		ttl   time.Duration
		want  []string
	}{
		"given back":            {1, true, longLease, nil},
		"claimed late":          {1, false, longLease, []string{"lost", stale}},
		"not its first run":     {2, true, longLease, []string{"lost"}},
		"a lease after the cut": {1, true, ttl, []string{"lost"}},
	} {
		job.ttl = c.ttl
		s := newScene(job)
		s.to = at(10)
		q := s.run(0, 7.153, 7.853, succeeded)
		q.Replica, q.Attempt, q.Failed = "r2", c.first, true
		s.attempt(c.first+1, 8.214, 8.914, true)
		s.attempt(c.first+2, 9.95, 10.65, false)
		s.history[0].attempt, s.history[0].at = c.first+2, at(16.219)
		s.strike(stalled, theRedis, 8.376, 16.170)
		if c.cut {
			s.strike(cut, "r1", .041, 6.565)
		}
		t.Run(name, func(t *testing.T) { s.judged(t, c.want...) })
	}
}

// The run of a tick that was given back may die, too. The run that takes it over belongs to it.
func TestARunOfATickThatWasGivenBackMayDie(t *testing.T) {
	for name, c := range map[string]struct {
		cut   bool
		again int // attempt of the second run
		want  []string
	}{
		"given back":   {true, 2, nil},
		"claimed late": {false, 2, []string{"lost", "started although a newer tick was due"}},
		"claimed anew": {true, 1, []string{"double", "lost"}},
	} {
		s := newScene(job{name: "job", every: 5 * time.Second, take: 2 * time.Second, ttl: longLease, again: true})
		s.to = at(9)
		s.run(0, 6.116, 8.019, interrupted)
		s.history[0].at = at(17.5)
		next := s.run(0, 17.547, 19.548, succeeded)
		next.Replica, next.Kind, next.Attempt = "r2", "takeover", c.again
		s.history[1].attempt, s.history[1].kind = c.again, "takeover"
		s.strike(killed, "r1", 8.017, 20)
		if c.cut {
			s.strike(cut, "r2", -.013, 5.945)
		}
		t.Run(name, func(t *testing.T) { s.judged(t, c.want...) })
	}
}

func TestExcusesAreCountedWithTheirCause(t *testing.T) {
	s := newScene(brief)
	s.fire(0, 2, 3)
	s.strike(cut, "r1", .99, 1.5)
	if v := judge(s.trial); len(v.excuses) != 1 || v.excuses[0].cause != struck || v.excuses[0].class != "faults" {
		t.Errorf("got %+v", v.excuses)
	}
}

func TestTheTableSaysWhatAJobIs(t *testing.T) {
	text := table([]job{outliving, queueing, retrying}, "{}", "redis", "x", "", 0, func(job) string { return "http: {url: u}" })
	for _, want := range []string{"missed: all", "concurrencyPolicy: Queue", "retry: {limit: 3, backoff: 500ms}", "lock: {ttl: 9s}"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, text)
		}
	}
}

// A tick that outlives the next one is due again when it is given back, whatever happened to its replica.
func TestAStruckClaimantIsNoExcuseForATickThatOutlivesTheNextOne(t *testing.T) {
	for _, c := range []struct {
		job  job
		want []string
	}{{brief, nil}, {outliving, []string{"lost"}}} {
		s := newScene(c.job)
		s.fire(0, 2, 3)
		s.strike(cut, "r1", .99, 1.5)
		s.judged(t, c.want...)
		s.settle(1, 2.01, "x", notStarted)
		s.judged(t, c.want...)
	}
}

func TestARunWhoseLastAttemptsFindNoAppIsInTheWay(t *testing.T) {
	for _, struck := range []bool{true, false} {
		s := newScene(retrying)
		s.to = at(19)
		s.run(0, .002, 1, failed).Failed = true
		s.history[0].attempt, s.history[0].at = 3, at(12)
		if !struck {
			s.judged(t, "lost")
			continue
		}
		s.strike(refused, s.requests[0].Replica, 2, 13)
		if got := s.judged(t); got.overlaps != 1 || got.lost != 0 {
			t.Errorf("got %+v", got)
		}
	}
}
