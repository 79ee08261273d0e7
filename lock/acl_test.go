package lock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// reference is docs/redis.md.
func reference(t *testing.T) string {
	t.Helper()
	doc, err := os.ReadFile("../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

// aclLine is what the reference says of a user.
func aclLine(t *testing.T, user string) string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^user ` + user + ` .*$`).FindString(reference(t))
	if line == "" {
		t.Fatalf("docs/redis.md has no user %s", user)
	}
	return line
}

// rightFor is what the reference gives that user beside its line.
func rightFor(t *testing.T, what string) string {
	t.Helper()
	m := regexp.MustCompile("`(\\+[a-z|]+)` for " + what).FindStringSubmatch(reference(t))
	if m == nil {
		t.Fatalf("docs/redis.md has no right for %s", what)
	}
	return m[1]
}

// TestDocumentedUserCanDoAllThatIsNeededAndNothingElse has the user of the reference play the protocol, and one user
// fewer for each of its rights, who must come to grief.
func TestDocumentedUserCanDoAllThatIsNeededAndNothingElse(t *testing.T) {
	t.Parallel()
	line := aclLine(t, "solotick") + " " + rightFor(t, "`waitReplicas`")
	rights := regexp.MustCompile(`\+[a-z]+`).FindAllString(line, -1)
	if len(rights) < 15 {
		t.Fatalf("only %d rights: %s", len(rights), line)
	}
	// A user for each right, each for a service of its own, so that all can play on one server at the same time.
	users := []string{"user default on nopass ~* &* +@all"}
	for _, right := range append([]string{""}, rights...) {
		name := "solotick" + strings.TrimPrefix(right, "+")
		own := strings.ReplaceAll(strings.Replace(line, "user solotick", "user "+name, 1), "{billing}", "{"+name+"}")
		if right != "" {
			own = strings.Replace(own+" ", " "+right+" ", " ", 1)
		}
		users = append(users, strings.TrimSpace(own))
	}
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte(strings.Join(users, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	master := redistest.Start(t, "--aclfile", file, "--repl-diskless-sync-delay", "0")
	replica := redistest.Start(t, "--replicaof", "127.0.0.1", strconv.Itoa(master.Port()))
	replica.AwaitCopy(master)

	w := redisworld.OnServer(t, master)
	// denied reports whether Redis has refused that user the command.
	denied := func(user, command string) bool {
		all, err := w.Admin.ACLLog(context.Background(), 1000).Result()
		if err != nil {
			t.Error(err)
		}
		return slices.ContainsFunc(all, func(e *redis.ACLLogEntry) bool {
			return e.Username == user && e.Reason == "command" && strings.SplitN(e.Object, "|", 2)[0] == command
		})
	}
	// without has a user play that lacks the right, until it is refused.
	without := func(t *testing.T, right string) {
		command := strings.TrimPrefix(right, "+")
		user := "solotick" + command
		err := playAs(contextUntil(t, func() bool { return denied(user, command) }), t, master, user)
		if err == nil || !denied(user, command) {
			t.Errorf("it is not needed: %v", err)
		}
	}
	// EVAL is needed as long as no replica has made the scripts known, and PING when a subscription was
	// silent for a while.
	without(t, "+eval")
	w.Must(w.Admin.Do(t.Context(), "acl", "log", "reset").Err())
	if err := playAs(t.Context(), t, master, "solotick"); err != nil {
		t.Error(err)
	}
	if answer, err := master.Ask("ACL LOG"); err != nil || answer != "*0" {
		t.Errorf("something was refused: %s, %v", answer, err)
	}
	for _, right := range rights {
		if right != "+eval" && right != "+ping" {
			t.Run("without "+right, func(t *testing.T) {
				t.Parallel()
				without(t, right)
			})
		}
	}
}

// player plays all that a replica and an operator ask of Redis, as one user, and stops at the first that goes wrong.
type player struct {
	*lock.Store
	service *service.Store
	ctx     context.Context
	admin   redis.UniversalClient
	name    string       // of the service
	boot    atomic.Int64 // how far its clock has been put forward
	heard   chan struct{}
}

const playTTL = 15 * time.Second

func playAs(ctx context.Context, t *testing.T, server *redistest.Server, user string) error {
	w := redisworld.OnServer(t, server)
	rdb := lock.NewClient(redis.UniversalOptions{Addrs: []string{server.Addr()}, Username: user, Password: "PASSWORD"}, w.Timeout())
	t.Cleanup(func() { _ = rdb.Close() })
	p := &player{ctx: ctx, admin: w.Admin, name: user, heard: make(chan struct{}, 100)}
	s, err := service.New(rdb, user, lock.Options{Timeout: w.Timeout(), WaitReplicas: 1,
		Boottime: func() time.Duration { return time.Since(w.Start) + time.Duration(p.boot.Load()) }})
	if err != nil {
		return err
	}
	s.Locks.BeginShutdown() // who is refused has nothing to wait for
	p.service, p.Store = s, s.Locks

	listen, stop := context.WithCancel(ctx)
	var listening sync.WaitGroup
	listening.Go(func() {
		s.Listen(listen, func(job string) {
			if job != service.AnyJob {
				p.heard <- struct{}{}
			}
		}, func(lock.Heard) {})
	})
	defer listening.Wait()
	defer stop()
	for _, step := range []func() error{p.begins, p.runs, p.handsOn, p.catchesUp, p.takesOver, p.changes, p.operates, p.looks} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) key(name string) string { return "solotick:{" + p.name + "}:" + name }

func (p *player) begins() error {
	if err := p.Sync(p.ctx); err != nil {
		return err
	}
	if _, err := p.service.CheckServer(p.ctx); err != nil {
		return err
	}
	if _, err := p.Register(p.ctx, job, ""); err != nil {
		return err
	}
	channel := p.key("events")
	for p.admin.PubSubNumSub(p.ctx, channel).Val()[channel] == 0 {
		if p.ctx.Err() != nil {
			return errors.New("nobody listens")
		}
	}
	return p.admin.HSet(p.ctx, p.key("job:"+job), "tick", 1).Err() // the ledger is a second too young to be claimed from
}

func (p *player) claim(tick int64) lock.Claim {
	return lock.Claim{Job: job, Tick: time.UnixMilli(tick), Due: time.Now().Truncate(time.Millisecond), TTL: playTTL, Replica: "a",
		Run: uuid.NewString()}
}

func (p *player) wins(c lock.Claim) (*lock.Lease, error) {
	l, answer, err := p.Acquire(p.ctx, c)
	if l == nil {
		return nil, fmt.Errorf("claiming: %+v, %w", answer, err)
	}
	return l, nil
}

func (p *player) settled(settle func(context.Context) (lock.Settled, error)) error {
	if got, err := settle(p.ctx); err != nil || got.Verdict != lock.OK {
		return fmt.Errorf("settling: %s, %w", got.Verdict, err)
	}
	return nil
}

// ended is the end of a run that has failed, as the history keeps it.
func ended(run, outcome string) lock.Ending {
	e := service.Entry{Job: job, Run: run, Outcome: outcome, Failed: true}
	return e.Ending()
}

func (p *player) runs() error {
	l, err := p.wins(p.claim(10))
	if err != nil {
		return err
	}
	if _, answer, err := p.Acquire(p.ctx, p.claim(20)); err != nil || answer.Code != lock.Overlap {
		return fmt.Errorf("a second claim: %+v, %w", answer, err)
	}
	if err := l.Verify(p.ctx); err != nil {
		return err
	}
	err = p.settled(func(ctx context.Context) (lock.Settled, error) {
		return l.Finish(ctx, time.Minute, ended(l.Run(), "failed"))
	})
	if err != nil {
		return err
	}
	return l.Release(0)(p.ctx)
}

func (p *player) handsOn() error {
	l, err := p.wins(p.claim(30))
	if err != nil {
		return err
	}
	err = p.settled(func(ctx context.Context) (lock.Settled, error) { return l.Handover(ctx, 0, lock.Ending{}) })
	if err != nil {
		return err
	}
	select {
	case <-p.heard:
	case <-p.ctx.Done():
		return errors.New("no nudge came")
	}
	seen, err := p.service.Look(p.ctx, 10)
	if err != nil || len(seen.Due) != 1 {
		return fmt.Errorf("due: %v, %w", seen.Due, err)
	}
	c := p.claim(30)
	c.Member = seen.Due[0].Member()
	if l, err = p.wins(c); err != nil {
		return err
	}
	return p.settled(func(ctx context.Context) (lock.Settled, error) { return l.Finish(ctx, 0, lock.Ending{}) })
}

// catchesUp claims a list of ticks behind a missed one, drops them, and counts all three as missed.
func (p *player) catchesUp() error {
	c := p.claim(36)
	c.Older = pasts(time.UnixMilli(35), c.Tick)
	c.Before = time.UnixMilli(34)
	if _, answer, err := p.Acquire(p.ctx, c); err != nil || answer.Code != lock.Queued {
		return fmt.Errorf("claiming a list: %+v, %w", answer, err)
	}
	seen, err := p.service.Look(p.ctx, 10)
	if err != nil || len(seen.Due) != 2 {
		return fmt.Errorf("due after the list: %v, %w", seen.Due, err)
	}
	gaps := ""
	for _, d := range seen.Due {
		var dropped bool
		if dropped, gaps, err = p.Drop(p.ctx, d, lock.Missed); err != nil || !dropped {
			return fmt.Errorf("dropping %+v: %v, %w", d, dropped, err)
		}
	}
	if booked, err := p.Book(p.ctx, job, gaps, []lock.Booking{{Fate: lock.Missed, Ticks: 3, Entry: "{}"}}); err != nil || !booked {
		return fmt.Errorf("counting what was missed in %q: %v, %w", gaps, booked, err)
	}
	return nil
}

func (p *player) takesOver() error {
	c := p.claim(40)
	c.Again = true
	if _, err := p.wins(c); err != nil {
		return err
	}
	watch := p.NewWatcher()
	ttl := func(string) time.Duration { return playTTL }
	seen, err := p.service.Look(p.ctx, 10)
	if err != nil {
		return err
	}
	watch.Unchanged(seen.Runs, ttl)
	p.boot.Add(int64(playTTL))
	old := watch.Unchanged(seen.Runs, ttl)
	if len(old) != 1 {
		return fmt.Errorf("%d old runs", len(old))
	}
	_, done, err := watch.Reap(p.ctx, old[0], func(lock.Record) lock.Ending { return ended(old[0].Run, "interrupted") })
	if err != nil || !done {
		return fmt.Errorf("taking over: %v, %w", done, err)
	}
	seen, err = p.service.Look(p.ctx, 10)
	if err != nil || len(seen.Due) != 1 {
		return fmt.Errorf("due after the takeover: %v, %w", seen.Due, err)
	}
	dropped, _, err := p.Drop(p.ctx, seen.Due[0], "")
	if err != nil || !dropped {
		return fmt.Errorf("dropping: %v, %w", dropped, err)
	}
	return nil
}

// changes sets, lists, deletes and fires timers.
func (p *player) changes() error {
	if _, err := p.Register(p.ctx, service.TimerJobs, ""); err != nil {
		return err
	}
	for range 2 { // the second time where a deletion has left its mark
		if _, err := p.service.SetTimer(p.ctx, "x", time.UnixMilli(60), nil); err != nil {
			return err
		}
		if deleted, err := p.service.DeleteTimer(p.ctx, "x"); err != nil || !deleted {
			return fmt.Errorf("deleting a timer: %v, %w", deleted, err)
		}
	}
	if _, err := p.service.SetTimer(p.ctx, "y", time.UnixMilli(60), nil); err != nil {
		return err
	}
	if timers, err := p.service.Timers(p.ctx, 10); err != nil || len(timers) != 1 {
		return fmt.Errorf("timers: %v, %w", timers, err)
	}
	if timers, err := p.service.GroupTimers(p.ctx, "y", 10); err != nil || len(timers) > 0 {
		return fmt.Errorf("timers of a group: %v, %w", timers, err)
	}
	if _, _, err := p.service.Timer(p.ctx, "y"); err != nil {
		return err
	}
	seen, err := p.service.Look(p.ctx, 10)
	if err != nil || len(seen.Due) != 1 {
		return fmt.Errorf("due: %v, %w", seen.Due, err)
	}
	d := seen.Due[0]
	l, err := p.wins(lock.Claim{Job: d.Job, Tick: d.Tick, TTL: playTTL, Replica: "a", Member: d.Member()})
	if err != nil {
		return err
	}
	if err := p.settled(func(ctx context.Context) (lock.Settled, error) { return l.Finish(ctx, 0, lock.Ending{}) }); err != nil {
		return err
	}
	if _, _, err := p.service.Timer(p.ctx, "y"); !errors.Is(err, service.ErrNoTimer) {
		return fmt.Errorf("a timer that has fired: %w", err)
	}
	return p.repeats()
}

// repeats has a timer with a schedule come due, and deletes it.
func (p *player) repeats() error {
	if _, _, err := p.service.SetSeries(p.ctx, "z", time.UnixMilli(60), nil); err != nil {
		return err
	}
	seen, err := p.service.Look(p.ctx, 10)
	if err != nil || len(seen.Due) != 1 {
		return fmt.Errorf("due of a schedule: %v, %w", seen.Due, err)
	}
	read, err := p.service.Series(p.ctx, seen.Due)
	if err != nil {
		return err
	}
	one := service.Spring{Series: read[0], Tick: seen.Due[0].Tick, Next: time.UnixMilli(70)}
	one.Missed = service.Entry{Job: one.Of.Job, Outcome: lock.Missed, Count: 1}
	if codes, err := p.service.Spring(p.ctx, []service.Spring{one}); err != nil || codes[0] != service.SprungDue {
		return fmt.Errorf("a time of a schedule: %v, %w", codes, err)
	}
	if deleted, err := p.service.DeleteTimer(p.ctx, "z"); err != nil || !deleted {
		return fmt.Errorf("deleting a schedule: %v, %w", deleted, err)
	}
	return nil
}

func (p *player) operates() error {
	if err := p.service.Pause(p.ctx, job, "a reason", time.Time{}); err != nil {
		return err
	}
	if paused, err := p.service.Resume(p.ctx, job); err != nil || !paused {
		return fmt.Errorf("resuming: %v, %w", paused, err)
	}
	if _, err := p.service.Trigger(p.ctx, job, uuid.NewString()); err != nil {
		return err
	}
	_, err := p.service.Backfill(p.ctx, job, []time.Time{time.UnixMilli(50)}, uuid.NewString(), false)
	return err
}

func (p *player) looks() error {
	if err := p.service.Beat(p.ctx, service.Replica{Name: "a"}); err != nil {
		return err
	}
	replicas, err := p.service.Replicas(p.ctx)
	if err != nil || len(replicas) != 1 {
		return fmt.Errorf("replicas: %v, %w", replicas, err)
	}
	if err := p.service.Leave(p.ctx, "a"); err != nil {
		return err
	}
	states, err := p.service.States(p.ctx, []string{job})
	if err != nil || len(states[job].Waiting) != 2 {
		return fmt.Errorf("state: %+v, %w", states, err)
	}
	missed := service.Entry{Job: job, Outcome: "missed"}
	if err := p.service.AppendHistory(p.ctx, &missed); err != nil {
		return err
	}
	all, err := p.service.History(p.ctx, job, 10)
	if err != nil || len(all) != 3 {
		return fmt.Errorf("history: %+v, %w", all, err)
	}
	_, err = p.service.Search(p.ctx, service.Search{Jobs: []string{job}, Failed: true, Limit: 10})
	return err
}
