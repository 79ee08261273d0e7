// Package handlers has a middleware for the handlers that Solotick calls. Copy this file into your app.
//
// The middleware admits only the replica beside the app, refuses a run whose fencing token is lower than one it has
// seen for the job, and does the work of a tick once: a repeated Idempotency-Key gets 409 while the work is under way,
// and the stored answer once it has succeeded. After a failure the work is done again. Work that goes on after the
// answer 202 is under way until it has ended, see Later; long.go has a handler for it.
//
// Memory keeps the keys in this process. If an app has several copies, its store must be shared by them: write a Store
// over your database, with the SQL of docs/handlers.md. Do not use the middleware for jobs with concurrencyPolicy
// Allow: their runs overlap, so a lower token is no sign of an old run.
package handlers

import (
	"bytes"
	"context"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Answer is what a handler answered.
type Answer struct {
	Status int
	Type   string // Content-Type
	Body   []byte
}

// Verdict is what is to be done with a call.
type Verdict int

const (
	Work Verdict = iota + 1 // the key is new, or its work failed, or the call that did it has a lower token
	Busy                    // the work of the key is under way
	Done                    // the work of the key is done
	Old                     // a run of the job with a greater token has been seen
)

// Store keeps keys and tokens. Each method is one atomic step. If End fails, the key stays busy until a greater token.
type Store interface {
	// Begin decides on a call. The answer is that of a key that is done. token is 0 for a run that has none.
	Begin(ctx context.Context, job, key string, token int64) (Verdict, *Answer, error)
	// End keeps the answer of a key whose work succeeded; nil says that it failed. It does nothing if the key has been
	// taken over by a run with another token.
	End(ctx context.Context, key string, token int64, a *Answer) error
}

// Middleware lets next do the work of calls by the replica that knows the secret. The table sends it as
// headers: {Authorization: "Bearer ${SECRET}"}. An empty secret panics.
func Middleware(secret string, s Store, next http.Handler) http.Handler {
	if secret == "" {
		panic("handlers: the secret is empty, so everybody would know it")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !beside(r) {
			http.Error(w, "only the replica beside this app may call", http.StatusForbidden)
			return
		}
		if subtle.ConstantTimeCompare([]byte(given), []byte(secret)) != 1 {
			http.Error(w, "the secret is missing or wrong: send it in the job's headers, "+
				"as Authorization: Bearer SECRET", http.StatusForbidden)
			return
		}
		job, key := r.Header.Get("Solotick-Job"), r.Header.Get("Idempotency-Key")
		token, err := parseToken(r.Header.Get("Solotick-Fencing-Token"))
		if job == "" || key == "" || err != nil {
			http.Error(w, "this is no call of Solotick", http.StatusBadRequest)
			return
		}
		ctx := context.WithoutCancel(r.Context()) // the caller may give up while the work goes on
		verdict, a, err := s.Begin(ctx, job, key, token)
		switch {
		case err != nil:
			http.Error(w, "the store of keys does not answer", http.StatusServiceUnavailable)
		case verdict == Old:
			http.Error(w, "a newer run of this job has begun", http.StatusPreconditionFailed)
		case verdict == Busy:
			http.Error(w, "the work of this tick is under way", http.StatusConflict)
		case verdict == Done:
			a.write(w)
		default:
			work(ctx, w, r, s, key, token, next)
		}
	})
}

// beside reports whether a request comes from this machine: over loopback or a unix socket.
func beside(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && local.Network() == "unix" {
		return true
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().IsLoopback()
}

func parseToken(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	token, err := strconv.ParseUint(text, 10, 63)
	return int64(token), err
}

// work runs the handler, keeps its answer if it is a success, and sends it.
func work(ctx context.Context, w http.ResponseWriter, r *http.Request, s Store, key string, token int64,
	next http.Handler) {
	out := &recorder{header: w.Header(), status: http.StatusOK}
	goesOn := false // the handler has called Later
	later := func() func(bool) error {
		goesOn = true
		return func(ok bool) error {
			if ok {
				return s.End(ctx, key, token, &Answer{Status: http.StatusOK})
			}
			return s.End(ctx, key, token, nil)
		}
	}
	var kept *Answer
	defer func() { // also when the handler panics
		var err error
		if !goesOn {
			err = s.End(ctx, key, token, kept)
		}
		switch {
		// the server cuts the connection, which leaves the caller in doubt: it gets a failure before that
		case !out.done:
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(http.StatusInternalServerError)
			_ = http.NewResponseController(w).Flush()
		case err != nil && kept != nil:
			http.Error(w, "the store of keys does not answer", http.StatusInternalServerError)
		default:
			out.answer().write(w)
		}
	}()
	next.ServeHTTP(out, r.WithContext(context.WithValue(r.Context(), laterKey{}, later)))
	out.done = true
	// which is no end of the work
	accepted := out.status == http.StatusAccepted && r.Header.Get("Solotick-Callback") != ""
	if out.status >= 200 && out.status < 300 && !accepted {
		kept = out.answer()
	}
}

type laterKey struct{}

// Later says that the work of a call goes on when its handler has answered 202. The key is then under way until the
// handler calls end, with ok if the work has succeeded: a repeated call gets 200 from then on. If end fails, the work
// counts as failed. Without the middleware, end does nothing.
//
// The key of a call that a handler accepts without Later counts as failed: a repeated call does the work again.
func Later(r *http.Request) (end func(ok bool) error) {
	if later, ok := r.Context().Value(laterKey{}).(func() func(bool) error); ok {
		return later()
	}
	return func(bool) error { return nil }
}

// recorder holds an answer back until it is kept.
type recorder struct {
	header http.Header
	status int
	begun  bool // the status is settled
	body   bytes.Buffer
	done   bool // the handler has returned
}

func (o *recorder) Header() http.Header { return o.header }

func (o *recorder) WriteHeader(status int) {
	if !o.begun && status >= 200 { // the first one counts, as without the middleware
		o.status, o.begun = status, true
	}
}

func (o *recorder) Write(p []byte) (int, error) {
	o.begun = true
	return o.body.Write(p)
}

func (o *recorder) answer() *Answer {
	return &Answer{o.status, o.header.Get("Content-Type"), o.body.Bytes()}
}

func (a *Answer) write(w http.ResponseWriter) {
	if a.Type != "" {
		w.Header().Set("Content-Type", a.Type)
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
}

// Memory is a Store in this process. The zero value is ready for use.
type Memory struct {
	Keep time.Duration // how long keys are kept; 0 = a week

	mu      sync.Mutex
	keys    map[string]*entry
	tokens  map[string]int64 // the greatest that was seen, by job
	cleaned time.Time
}

type entry struct {
	token  int64
	since  time.Time
	busy   bool
	answer *Answer // nil = the work failed, unless busy
}

// Begin implements Store.
func (m *Memory) Begin(_ context.Context, job, key string, token int64) (Verdict, *Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.forget(now)
	if token > 0 && token < m.tokens[job] {
		return Old, nil, nil
	}
	if m.keys == nil {
		m.keys, m.tokens = map[string]*entry{}, map[string]int64{}
	}
	m.tokens[job] = max(token, m.tokens[job])
	switch e := m.keys[key]; {
	case e == nil, e.busy && e.token < token, !e.busy && e.answer == nil:
		m.keys[key] = &entry{token: token, since: now, busy: true}
		return Work, nil, nil
	case e.busy:
		return Busy, nil, nil
	default:
		return Done, e.answer, nil
	}
}

// End implements Store.
func (m *Memory) End(_ context.Context, key string, token int64, a *Answer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.keys[key]; e != nil && e.busy && e.token == token {
		e.busy, e.answer = false, a
	}
	return nil
}

// forget drops old keys, once a minute.
func (m *Memory) forget(now time.Time) {
	keep := m.Keep
	if keep == 0 {
		keep = 7 * 24 * time.Hour
	}
	if now.Sub(m.cleaned) < time.Minute {
		return
	}
	m.cleaned = now
	for key, e := range m.keys {
		if !e.busy && now.Sub(e.since) > keep {
			delete(m.keys, key)
		}
	}
}
