package rds

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/solotick/solotick/internal/testing/redistest"
)

// vault is a source of passwords, with a clock of its own.
type vault struct {
	mu       sync.Mutex
	password string
	err      error
	asked    int
	clock    time.Duration
	told     []error
}

func (v *vault) get(context.Context) (string, time.Duration, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	return v.password, time.Hour, v.err
}

func (v *vault) set(password string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.password, v.err = password, err
}

func (v *vault) now() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.clock
}

// opened returns a password of the vault that asks it beside the requests.
func (v *vault) opened(t *testing.T) *Password {
	p := newPassword(t.Context(), "app", v.get, func(err error) { v.told = append(v.told, err) })
	p.now = v.now
	p.get()
	return p
}

// asks moves the clock, lets a request go by, and reports whether the source was asked for it.
func (v *vault) asks(p *Password, after time.Duration) bool {
	p.rests() // whoever asks already, by a refusal, asks nothing more
	v.mu.Lock()
	v.clock += after
	before := v.asked
	v.mu.Unlock()
	p.look()
	p.rests()
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.asked > before
}

// rests waits for the goroutine that asks the source, which only calls the vault.
func (p *Password) rests() {
	for busy := true; busy; {
		p.mu.Lock()
		busy = p.busy
		p.mu.Unlock()
	}
}

func TestAPasswordIsGotAgainInTime(t *testing.T) {
	v := &vault{password: "one", clock: time.Minute}
	p := v.opened(t)
	if v.asks(p, time.Hour-1) || !v.asks(p, 1) || v.asks(p, time.Hour-1) {
		t.Error("the source said: again after an hour")
	}
}

func TestARefusedPasswordIsGotAgainAtOnceAndThenAfterGrowingPauses(t *testing.T) {
	v := &vault{password: "one", clock: time.Minute}
	p := v.opened(t)
	refuse := func() bool { p.refused(); return v.asks(p, 0) || v.asked > 1 }
	if !refuse() {
		t.Fatal("not asked at once")
	}
	for _, pause := range []time.Duration{100, 200, 400, 800} {
		p.refused()
		p.refused() // by several connections
		if v.asks(p, pause*time.Millisecond-1) || !v.asks(p, 1) {
			t.Errorf("asked before or after a pause of %dms", pause)
		}
	}
	v.set("two", nil)
	p.refused()
	if !v.asks(p, lastPause) {
		t.Fatal("not asked after a minute")
	}
	before := v.asked
	p.refused() // another password begins anew
	if v.asks(p, 0); v.asked == before {
		t.Error("not asked at once for a new password")
	}
}

// The pauses after a refusal never put off what the source has named.
func TestARefusedPasswordIsGotAgainWhenItsSourceSaid(t *testing.T) {
	v := &vault{password: "one", clock: time.Minute}
	p := v.opened(t)
	p.source = func(ctx context.Context) (string, time.Duration, error) {
		password, _, err := v.get(ctx)
		return password, time.Second, err
	}
	p.get()
	for n := range 9 { // the last pauses are longer than a second
		p.refused()
		if !v.asks(p, time.Second) {
			t.Fatalf("not asked in time after refusal %d", n)
		}
	}
}

func TestAnErrorAfterAPasswordIsToldAtOnce(t *testing.T) {
	v := &vault{password: "one", clock: time.Minute}
	p := v.opened(t)
	p.source = func(ctx context.Context) (string, time.Duration, error) {
		password, _, err := v.get(ctx)
		return password, time.Second, err
	}
	p.get()
	for want := 1; want <= 2; want++ {
		v.set("", errors.New("it hangs"))
		if !v.asks(p, time.Second) || len(v.told) != want {
			t.Errorf("told %d times, want %d", len(v.told), want)
		}
		v.set("one", nil)
		v.asks(p, firstPause)
	}
}

func TestNoPauseIsLongerThanAMinute(t *testing.T) {
	pause := time.Duration(0)
	for range 20 {
		pause = longer(pause)
	}
	if pause != lastPause || longer(0) != firstPause {
		t.Errorf("from %s to %s", longer(0), pause)
	}
}

func TestAnErrorIsToldAgainWhenAMinuteIsOver(t *testing.T) {
	for after, want := range map[time.Duration]int{lastPause - 1: 1, lastPause: 2} {
		v := &vault{password: "one", clock: time.Minute}
		p := v.opened(t)
		v.set("", errors.New("it hangs"))
		if !v.asks(p, time.Hour) || !v.asks(p, after) || len(v.told) != want {
			t.Errorf("after %s: told %d times, want %d", after, len(v.told), want)
		}
	}
}

func TestASourceThatFailsIsAskedAgainAndToldOfOnceAMinute(t *testing.T) {
	v := &vault{password: "one", clock: time.Minute}
	p := v.opened(t)
	v.set("", &PasswordError{"passwordCommand", errors.New("it hangs")})
	if !v.asks(p, time.Hour) || v.asks(p, firstPause-1) || !v.asks(p, 1) || len(v.told) != 1 {
		t.Errorf("asked %d times, told %v", v.asked, v.told)
	}
	c, _, err := p.Subscribe(&deaf{})
	if err != nil {
		t.Fatal("the last password may still be good:", err)
	}
	if user, password := c.BasicAuth(); user != "app" || password != "one" {
		t.Error(user, password)
	}
	if !v.asks(p, lastPause) || len(v.told) != 2 {
		t.Errorf("told %v", v.told)
	}
	v.set("one", nil)
	v.asks(p, lastPause)
	v.set("", errors.New("again"))
	if !v.asks(p, time.Hour) || v.asks(p, firstPause-1) || !v.asks(p, 1) || len(v.told) != 3 {
		t.Errorf("after it has succeeded, a failure begins anew: told %v", v.told)
	}
}

func TestASourceThatGoesOnFailingIsAskedAfterGrowingPauses(t *testing.T) {
	v := &vault{password: "one", clock: time.Minute}
	p := v.opened(t)
	v.set("", errors.New("the endpoint is down"))
	if !v.asks(p, time.Hour) {
		t.Fatal("not asked")
	}
	for _, pause := range []time.Duration{firstPause, 2 * firstPause, 4 * firstPause, 8 * firstPause} {
		if v.asks(p, pause-1) || !v.asks(p, 1) {
			t.Errorf("asked before or after a pause of %s", pause)
		}
	}
}

func TestASourceThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := newPassword(t.Context(), "app", func(ctx context.Context) (string, time.Duration, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			return "", 0, ctx.Err()
		}, func(error) {})
		p.get()
		if took := time.Since(began); took != PasswordLimit || !errors.Is(p.err, context.DeadlineExceeded) {
			t.Errorf("it was given up after %s with %v, want %s", took, p.err, PasswordLimit)
		}
	})
}

func TestARequestThatRedisRefusesForItsPasswordHasItGotAgain(t *testing.T) {
	for answer, renews := range map[string]bool{
		"WRONGPASS invalid username-password pair or user is disabled.": true, "NOAUTH Authentication required.": true,
		"NOPERM this user has no permissions": false,
	} {
		v := &vault{password: "one", clock: time.Minute}
		p := v.opened(t)
		p.heard(t.Context(), "", refusalOf(answer))
		if v.asks(p, 0); v.asked > 1 != renews {
			t.Errorf("after %q the source was asked %d times", answer, v.asked)
		}
	}
}

// refusalOf is an answer of Redis.
type refusalOf string

func (e refusalOf) Error() string { return string(e) }
func (refusalOf) RedisError()     {}

func TestWithoutAPasswordNothingIsSent(t *testing.T) {
	v := &vault{err: &PasswordError{"identity", errors.New("no token")}}
	p := v.opened(t)
	client := NewClient(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, StreamingCredentialsProvider: p,
		Dialer: func(context.Context, string, string) (net.Conn, error) { c, _ := net.Pipe(); return c, nil }}, 0)
	defer client.Close()
	err := client.Ping(t.Context()).Err()
	var why *PasswordError
	if !NeverSent(err) || !errors.As(err, &why) || !strings.Contains(err.Error(), "redis.identity: no token") {
		t.Error(err)
	}
	if len(p.listeners) > 0 {
		t.Errorf("%d connections are still waited for", len(p.listeners))
	}
}

func TestAFileIsReadAtEveryConnect(t *testing.T) {
	text, reads := "one", 0
	p := PasswordOfFile("app", func() (string, error) { reads++; return text, nil }, nil)
	for want := 1; want <= 3; want++ {
		text = strconv.Itoa(want)
		c, _, err := p.Subscribe(&deaf{})
		if err != nil {
			t.Fatal(err)
		}
		if _, password := c.BasicAuth(); password != text || reads != want {
			t.Errorf("password %s after %d reads, want %s", password, reads, text)
		}
	}
}

// hears is a listener that keeps what it is told.
type hears struct {
	deaf
	told []string
}

func (h *hears) OnNext(c auth.Credentials) {
	_, password := c.BasicAuth()
	h.told = append(h.told, password)
}

// The first password is the answer to Subscribe, and is not sent twice.
func TestAConnectionIsToldOfPasswordsThatCameAfterItsOwn(t *testing.T) {
	text := "one"
	p := PasswordOfFile("app", func() (string, error) { return text, nil }, nil)
	connection := &hears{}
	for i, l := range []*hears{connection, {}, {}} {
		text = []string{"one", "one", "two"}[i]
		if _, _, err := p.Subscribe(l); err != nil {
			t.Fatal(err)
		}
	}
	if len(connection.told) != 1 || connection.told[0] != "two" {
		t.Errorf("it was told %q", connection.told)
	}
}

// answers asks a server as its administrator.
func answers(t *testing.T, s *redistest.Server, command string) string {
	t.Helper()
	answer, err := s.Ask(command)
	if err != nil || strings.HasPrefix(answer, "-") {
		t.Fatal(command, answer, err)
	}
	return answer
}

// awaitAuth sends requests until the server's statistics of AUTH are right. Connections are opened with HELLO, so an
// AUTH is one of a connection that was open, or the second try of a refused one.
func awaitAuth(t *testing.T, s *redistest.Server, client redis.UniversalClient, right func(stats string) bool) {
	t.Helper()
	for end := Boottime() + 10*time.Second; ; {
		_, after, _ := strings.Cut(answers(t, s, "INFO commandstats"), "cmdstat_auth:")
		if stats, _, _ := strings.Cut(after, "\r\n"); right(stats) {
			return
		} else if Boottime() > end {
			t.Fatalf("no connection has authenticated again: %q", stats)
		}
		_ = client.Get(t.Context(), "{svc}").Err()
	}
}

func accepted(stats string) bool { return strings.HasSuffix(stats, ",failed_calls=0") }

func refusedOnce(stats string) bool { return stats != "" && !accepted(stats) }

func TestOpenConnectionsAuthenticateAgainAndStayOpen(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--user", "app", "on", ">one", "~*", "&*", "+@all")
	v := &vault{password: "one"}
	p := v.opened(t)
	client := NewClient(redis.UniversalOptions{Addrs: []string{s.Addr()}, StreamingCredentialsProvider: p}, 0)
	defer client.Close()
	id := client.ClientID(t.Context()).Val()

	answers(t, s, "ACL SETUSER app >two")
	v.set("two", nil)
	if !v.asks(p, time.Hour) {
		t.Fatal("not asked")
	}
	awaitAuth(t, s, client, accepted)
	answers(t, s, "ACL SETUSER app <one")
	if list := answers(t, s, "CLIENT LIST ID "+strconv.FormatInt(id, 10)); !strings.Contains(list, "user=app") {
		t.Errorf("the connection was closed: %q", list)
	}

	// Redis refuses the next password: the connection that has the old rights keeps them.
	v.set("three", nil)
	if !v.asks(p, time.Hour) {
		t.Fatal("not asked")
	}
	awaitAuth(t, s, client, refusedOnce)
	if list := answers(t, s, "CLIENT LIST ID "+strconv.FormatInt(id, 10)); !strings.Contains(list, "user=app") {
		t.Errorf("a refused AUTH has closed the connection: %q", list)
	}
}

func TestAServerThatBeginsToAskForAPasswordGetsItOnOpenConnections(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--user", "app", "on", ">one", "~*", "&*", "+@all")
	v := &vault{} // knows of no password yet
	p := v.opened(t)
	client := NewClient(redis.UniversalOptions{Addrs: []string{s.Addr()}, StreamingCredentialsProvider: p}, 0)
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil { // as the user default, who needs none
		t.Fatal(err)
	}
	v.set("one", nil)
	if !v.asks(p, time.Hour) {
		t.Fatal("not asked")
	}
	awaitAuth(t, s, client, accepted)
}

func TestSubscriptionsOfAClientWhosePasswordChangesComeFromAnother(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--user", "app", "on", ">one", "~*", "&*", "+@all")
	v := &vault{password: "one"}
	p := v.opened(t)
	client := NewClient(redis.UniversalOptions{Addrs: []string{s.Addr()}, StreamingCredentialsProvider: p}, 0)
	defer client.Close()
	r, err := Open(client, "svc", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, password := range []string{"one", "two"} {
		answers(t, s, "ACL SETUSER app resetpass >"+password)
		v.set(password, nil)
		v.asks(p, time.Hour)
		sub := r.Subscribe(t.Context())
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Error(password, err)
		}
		if len(p.listeners) > 0 {
			t.Error("the subscription would be told of passwords, which go-redis cannot send on it")
		}
		_ = sub.Close()
	}
	if plain := NewClient(redis.UniversalOptions{Addrs: []string{s.Addr()}}, 0); subscriber(plain) != plain {
		t.Error("a client without a password of that kind needs no other")
	}
}

func TestNodesOfAClusterAuthenticateAgain(t *testing.T) {
	t.Parallel()
	s := redistest.StartCluster(t, 2) // whose user default takes any password
	v := &vault{password: "one"}
	p := v.opened(t)
	p.user = "default"
	client := NewClient(redis.UniversalOptions{Addrs: s.Addrs(), IsClusterMode: true, StreamingCredentialsProvider: p}, 2*time.Second)
	defer client.Close()
	if err := client.Get(t.Context(), "{svc}").Err(); !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	owner := s.Owner("{svc}")
	v.set("two", nil)
	v.mu.Lock()
	v.clock += time.Hour // the requests to the node do the rest
	v.mu.Unlock()
	r, err := Open(client, "svc", Options{Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	node, err := r.Server(t.Context()) // to which all requests go
	if err != nil {
		t.Fatal(err)
	}
	awaitAuth(t, owner, node, accepted)
	sub := r.Subscribe(t.Context())
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAClientOfSentinelsGetsThePasswordAtEachConnect(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 0, 1)
	v := &vault{password: "any"} // which the user default takes
	p := v.opened(t)
	p.user = "default"
	client := NewClient(redis.UniversalOptions{Addrs: s.Addrs(), MasterName: redistest.MasterName, StreamingCredentialsProvider: p}, 2*time.Second)
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

func TestAHangingSourceIsWaitedForOnlyAsLongAsPatienceSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		answers := make(chan string)
		p := NewPassword(t.Context(), "", func(context.Context) (string, time.Duration, error) {
			return <-answers, time.Hour, nil
		}, time.Second, func(err error) { t.Error(err) })
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("it was waited for: %s", waited)
		}
		if _, _, err := p.Subscribe(nil); !errors.Is(err, errPatience) {
			t.Errorf("a connect without a password: %v", err)
		}
		p.look() // asks nobody else meanwhile
		answers <- "late"
		synctest.Wait()
		if c, _, err := p.Subscribe(nil); err != nil {
			t.Error(err)
		} else if _, password := c.BasicAuth(); password != "late" {
			t.Errorf("the password is %q", password)
		}
	})
}
