package rds

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
)

const (
	// PasswordLimit bounds how long a source may take for a password.
	PasswordLimit = 10 * time.Second

	// firstPause and lastPause bound the pauses after a source has failed, or has given again the password that Redis
	// refused. They double from one to the other.
	firstPause = 100 * time.Millisecond
	lastPause  = time.Minute

	// lookAgain is how often a file with a password is read while nobody connects.
	lookAgain = 2 * time.Second
)

var errPatience = errors.New("the password has been asked for, and has not come yet")

// A PasswordSource gets the password, "" if Redis asks for none. It returns when ctx ends, at the latest. again is
// after how long the password must be got again. The error repeats nothing of a password.
type PasswordSource func(ctx context.Context) (password string, again time.Duration, err error)

// PasswordError is the error of a source.
type PasswordError struct {
	Key string // the key below redis in the table that names the source
	Err error
}

func (e *PasswordError) Error() string { return "redis." + e.Key + ": " + e.Err.Error() }
func (e *PasswordError) Unwrap() error { return e.Err }

// Password gives a password that changes to the connections of a client, as its StreamingCredentialsProvider. It gets
// the password before it is needed: when the time has come that its source named, and when Redis has refused the
// present one. The requests to Redis drive it, so it keeps no goroutine while nobody asks. Connections that are open
// get the new password by an AUTH, which go-redis sends when a connection is next at rest.
//
// It heeds what go-redis v9.23 does:
//
//   - Redis keeps a connection whose AUTH it refuses, with the rights that it had, and so does go-redis.
//   - A client of Sentinels panics with a StreamingCredentialsProvider: see NewClient.
//   - A connection of a subscription is never authenticated again: see subscriber.
//   - A listener that is told of an error may close its connection. So listeners are told of passwords alone.
type Password struct {
	ctx    context.Context // ends what the source does
	user   string
	source PasswordSource
	atOnce bool        // the source takes no time, and every connect asks it
	failed func(error) // is told why the source gives no password

	now func() time.Duration // Boottime, except in tests

	getting sync.Mutex // held by the goroutine that asks the source

	mu        sync.Mutex
	known     bool          // the source has given a password
	password  string        // "" = none is needed
	err       error         // of the last attempt
	asked     time.Duration // when the source answered last
	due       time.Duration // when to ask it again
	told      time.Duration // when failed was told last; 0 = not since the source last gave a password
	refusal   bool          // Redis refused the password after the source gave it
	pause     time.Duration // how long to wait before asking, if it fails or is refused again
	busy      bool          // a goroutine asks the source, beside the requests
	listeners map[auth.CredentialsListener]struct{}
}

// NewPassword returns the password of a user ("" = the default user). It asks the source for it once, and waits for
// that as long as patience says. Without a password each connect has an error. failed is told of it, at once and each
// minute, also while the last password may still be good. A source that is at work ends with ctx.
func NewPassword(ctx context.Context, user string, source PasswordSource, patience time.Duration,
	failed func(error)) *Password {
	p := newPassword(ctx, user, source, failed)
	p.err, p.busy = errPatience, true
	got := make(chan struct{})
	go func() {
		defer close(got)
		p.getBeside()
	}()
	select {
	case <-got:
	case <-time.After(patience):
	}
	return p
}

func newPassword(ctx context.Context, user string, source PasswordSource, failed func(error)) *Password {
	return &Password{ctx: ctx, user: user, source: source, failed: failed, now: Boottime,
		listeners: map[auth.CredentialsListener]struct{}{}}
}

// PasswordOfFile returns the password of a user in the file that read reads. It reads the file at every connect, and
// beside that every two seconds.
func PasswordOfFile(user string, read func() (string, error), failed func(error)) *Password {
	source := func(context.Context) (string, time.Duration, error) {
		password, err := read()
		return password, lookAgain, err
	}
	p := newPassword(context.Background(), user, source, failed)
	p.atOnce = true
	return p
}

// Subscribe implements go-redis' StreamingCredentialsProvider: each new connection takes the password here, and never
// waits for a source that takes time.
func (p *Password) Subscribe(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	p.mu.Lock()
	p.listeners[l] = struct{}{} // before the password is read, so that no change is missed
	p.mu.Unlock()
	unsubscribe := func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.listeners, l)
		return nil
	}
	if p.atOnce {
		p.get()
	}
	p.mu.Lock()
	known, password, err := p.known, p.password, p.err
	p.mu.Unlock()
	if !known {
		_ = unsubscribe()
		// The request has not left this process: it is as if the server could not be dialled.
		return nil, nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	return auth.NewBasicCredentials(p.user, password), unsubscribe, nil
}

// get asks the source and keeps its answer. If the password changed, the open connections authenticate again.
func (p *Password) get() {
	p.getting.Lock()
	defer p.getting.Unlock()
	ctx, cancel := context.WithTimeout(p.ctx, PasswordLimit)
	defer cancel()
	password, again, err := p.source(ctx)

	listeners, tell := p.keep(password, again, err)
	if tell {
		p.failed(err)
	}
	for _, l := range listeners {
		l.OnNext(auth.NewBasicCredentials(p.user, password))
	}
}

// keep keeps an answer of the source. It returns the listeners of a new password, and whether to tell of an error.
func (p *Password) keep(password string, again time.Duration,
	err error) (listeners []auth.CredentialsListener, tell bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	had, old := p.known, p.password
	p.asked, p.err = p.now(), err
	if err != nil {
		p.pause = longer(p.pause)
		p.due = p.asked + p.pause
		if tell = p.told == 0 || p.asked-p.told >= lastPause; tell {
			p.told = p.asked
		}
		return nil, tell
	}
	if password != old || !p.refusal {
		p.pause = 0
	}
	p.known, p.password, p.refusal, p.told = true, password, false, 0
	p.due = p.asked + again
	if had && password != old {
		listeners = slices.Collect(maps.Keys(p.listeners))
	}
	return listeners, false
}

func longer(pause time.Duration) time.Duration { return min(max(2*pause, firstPause), lastPause) }

// refused notes that Redis refused a password. The source is asked at once; if it gives the same password again, after
// growing pauses.
func (p *Password) refused() {
	p.mu.Lock()
	if p.err == nil && !p.refusal {
		p.refusal = true
		p.due = min(p.due, p.asked+p.pause)
		p.pause = longer(p.pause)
	}
	p.mu.Unlock()
	p.look()
}

// look asks the source if its time has come, beside the caller.
func (p *Password) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy || p.now() < p.due {
		return
	}
	p.busy = true
	go p.getBeside()
}

// getBeside is get for a goroutine of its own.
func (p *Password) getBeside() {
	p.get()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = false
}

// drive has the requests of a client, and of the nodes of a Cluster, drive the password.
func (p *Password) drive(client redis.UniversalClient) {
	driving := watching{before: p.look, after: p.heard}
	if c, ok := client.(*redis.ClusterClient); ok {
		c.OnNewNode(func(node *redis.Client) { node.AddHook(driving) })
		return
	}
	client.AddHook(driving)
}

// heard is told how a request has ended.
func (p *Password) heard(_ context.Context, _ string, err error) {
	if refusedWith(err, "WRONGPASS", "NOAUTH") {
		p.refused()
	}
}

// perConnect asks a provider for the credentials of one connection, which is told of no later ones.
func perConnect(from auth.StreamingCredentialsProvider) func(context.Context) (user, password string, err error) {
	return func(context.Context) (string, string, error) {
		now, stop, err := from.Subscribe(&deaf{})
		if err != nil {
			return "", "", err
		}
		user, password := now.BasicAuth()
		return user, password, stop()
	}
}

// deaf hears of no new credentials. Each is another, by its address.
type deaf struct{ _ byte }

func (*deaf) OnNext(auth.Credentials) {}
func (*deaf) OnError(error)           {}

// subscriber returns the client that subscribes in place of a given one: the client itself, unless it has a
// StreamingCredentialsProvider. Then go-redis would keep each connection of a subscription (67 kB) in memory for ever,
// also those that Redis has refused, and would never authenticate them again. So another client, whose connections are
// those of subscriptions, gets the password at each connect. A server that ends such a connection when its password is
// over costs no more than a reconnect: nudges that are missed are looked for.
func subscriber(client redis.UniversalClient) redis.UniversalClient {
	switch c := client.(type) {
	case *redis.Client:
		if o := *c.Options(); o.StreamingCredentialsProvider != nil {
			o.CredentialsProviderContext = perConnect(o.StreamingCredentialsProvider)
			o.StreamingCredentialsProvider = nil
			o.MaxRetries = -1 // the client's options say 0 for it, which would mean 3 here
			return redis.NewClient(&o)
		}
	case *redis.ClusterClient:
		if o := *c.Options(); o.StreamingCredentialsProvider != nil {
			o.CredentialsProviderContext = perConnect(o.StreamingCredentialsProvider)
			o.StreamingCredentialsProvider = nil
			o.MaxRetries = -1
			return redis.NewClusterClient(&o)
		}
	}
	return client
}
