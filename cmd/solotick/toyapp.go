package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/solotick/solotick/internal/demo"
)

// toyApp returns a function that starts the toy app of this replica at its first call, and returns the app's address.
// The app ends with ctx.
//
// The replica serves the app itself, so that the quickstart needs the binary alone: no second program, which a table
// would have to find and start, and no port that another program may have. Each replica has its own app, as
// in production. The URL http://embedded/… of a job asks for it, as redis.url asks for the embedded store.
func toyApp(ctx context.Context, background *sync.WaitGroup, log *slog.Logger) func() (addr string, err error) {
	return sync.OnceValues(func() (string, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			log.Error("serving the toy app", "err", err)
			return "", err
		}
		toy := &demo.Toy{Began: func(c *demo.Call) {
			log.Info("the toy app is called", "job", c.Job, "tick", c.Tick.UTC().Format("2006-01-02T15:04:05.000Z"), "replica", c.Replica)
		}}
		serve(ctx, background, l, "the toy app, for trying out on one machine", &http.Server{Handler: toy, ReadHeaderTimeout: 5 * time.Second}, log)
		return l.Addr().String(), nil
	})
}

// atToy returns a URL of the toy app with the app's address. Without an app it returns the URL as it is: each call of it
// fails, and the log has said why.
func atToy(raw string, toy func() (string, error)) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	addr, err := toy()
	if err != nil {
		return raw
	}
	u.Host = addr
	return u.String()
}
