package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/rig"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

const (
	pending     = 1_000_000 // a service's limit
	dueAtOnce   = 50_000    // of them come due together, and are claimed while the others wait
	calledAtAll = 10_000    // timers that call the app
	setters     = 200       // callers at once
	apiConns    = 16        // connections to one replica's API, which takes 32
	batchedAll  = 100_000   // timers that are set in batches
	dailyAll    = 880_000   // timers with a schedule: with the others, a service's limit
)

// timers measures timers with three replicas on one Redis: how many can be set a second until a million wait, how many
// are claimed, run (their requests do nothing) and settled a second, and how many requests a second an app on the
// loopback interface gets from replicas that have an API each, by which they are set: once, and by schedules.
func (b *bench) timers() (part, error) {
	dir, err := os.MkdirTemp(b.dir, "timers-")
	if err != nil {
		return part{}, err
	}
	claims, err := b.timerClaims(dir)
	if err != nil {
		return part{}, err
	}
	calls, err := b.timerCalls(dir)
	return part{Rows: append(claims, calls...)}, err
}

func timerSource(at time.Time, url string) []byte {
	return fmt.Appendf(nil, `{"at":%q,"http":{"url":%q},"timeout":"1m"}`, at.UTC().Format(time.RFC3339Nano), url)
}

func (b *bench) timerClaims(dir string) (rows []row, err error) {
	total, due := pending, dueAtOnce
	if b.quick {
		total, due = 20_000, 5_000
	}
	server, err := rig.StartRedis(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop(grace)) }()
	p, err := b.launchCrowd(dir, server, table([]job{{Name: "other", Every: 30, URL: "http://127.0.0.1:1/"}}, ""),
		replicas)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop(grace)) }()
	client := lock.NewClient(redis.UniversalOptions{Addrs: []string{server.Addr()}, PoolSize: setters}, 5*time.Second)
	defer client.Close()
	store, err := service.New(client, "bench", lock.Options{Timeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}

	began := time.Now()
	far := began.Add(365 * 24 * time.Hour)
	if err := b.setTimers(store, "far", total-due, func(int) time.Time { return far }); err != nil {
		return nil, err
	}
	setIn := time.Since(began)
	// when they are set at half of the target
	soon := time.Now().Add(time.Duration(due)*150*time.Microsecond + 5*time.Second)
	if err := b.setTimers(store, "soon", due, func(int) time.Time { return soon }); err != nil {
		return nil, err
	}
	if time.Now().After(soon) {
		return nil, fmt.Errorf("setting %d timers took until after the time at which they were due", due)
	}
	waiting, err := waitingTimers(b.ctx, client)
	if err != nil {
		return nil, err
	}
	if waiting != int64(total) {
		return nil, fmt.Errorf("%d timers wait, not %d", waiting, total)
	}
	if err := b.sleep(soon); err != nil {
		return nil, err
	}
	before, err := readMeters(server, p)
	if err != nil {
		return nil, err
	}
	claimedIn, err := b.untilClaimed(client, int64(total-due), soon)
	if err != nil {
		return nil, err
	}
	after, err := readMeters(server, p)
	if err != nil {
		return nil, err
	}
	each := micros(after.since(before).redis) / float64(due)
	used, err := usedMemory(server)
	if err != nil {
		return nil, err
	}
	return []row{
		{What: fmt.Sprintf("timers set per second, until %d wait", total), Unit: "/s", More: true,
			Ours:    one(float64(total-due) / setIn.Seconds()),
			Targets: []target{oursAtLeast(5000)}, Note: fmt.Sprintf("%d callers of one store", setters)},
		{What: fmt.Sprintf("timers claimed per second, of %d that are due while %d wait", due, total-due),
			Unit: "/s", More: true, Ours: one(float64(due) / claimedIn.Seconds()),
			Targets: []target{oursAtLeast(20000)}, Note: "three replicas in one process; the requests do nothing"},
		{What: "Redis CPU per timer claimed", Unit: "µs", Ours: one(each),
			Note: fmt.Sprintf("Redis alone would do %.0f/s", 1e6/each)},
		{What: "memory of Redis per timer that waits", Unit: "bytes", Ours: one(used / float64(total))},
	}, nil
}

// usedMemory is what a Redis has in memory, in bytes.
func usedMemory(server *rig.Redis) (float64, error) {
	info, err := server.Info("memory")
	if err != nil {
		return 0, err
	}
	used, err := strconv.ParseFloat(info["used_memory"], 64)
	if err != nil {
		return 0, fmt.Errorf("reading INFO memory: %w", err)
	}
	return used, nil
}

// setTimers sets n timers by many callers at once.
func (b *bench) setTimers(store *service.Store, prefix string, n int, at func(int) time.Time) error {
	return together(n, func(i int) error {
		due := at(i)
		_, err := store.SetTimer(b.ctx, prefix+"-"+strconv.Itoa(i), due, timerSource(due, "http://127.0.0.1:1/timer"))
		return err
	})
}

// together does n things by many callers at once. The first error ends it.
func together(n int, do func(i int) error) error {
	var all sync.WaitGroup
	next := make(chan int)
	failed := make(chan error, setters)
	for range setters {
		all.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	var err error
	for i := 0; i < n && err == nil; i++ {
		select {
		case next <- i:
		case err = <-failed:
		}
	}
	close(next)
	all.Wait()
	if err == nil && len(failed) > 0 {
		err = <-failed
	}
	return err
}

func waitingTimers(ctx context.Context, client redis.UniversalClient) (int64, error) {
	return client.ZCard(ctx, "solotick:{bench}:timers:due").Result()
}

// untilClaimed waits until so many timers are left, and returns how long after their time that was.
func (b *bench) untilClaimed(client redis.UniversalClient, left int64, due time.Time) (time.Duration, error) {
	for limit := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		n, err := waitingTimers(b.ctx, client)
		switch {
		case err != nil:
			return 0, err
		case n <= left:
			return time.Since(due), nil
		case time.Now().After(limit):
			return 0, fmt.Errorf("%d timers are due and not claimed after 3 minutes", n-left)
		}
	}
}

// timerCalls sets timers by the API of three replicas, and counts what the app is asked when they come due.
func (b *bench) timerCalls(dir string) (rows []row, err error) {
	n := calledAtAll
	if b.quick {
		n = 2000
	}
	var apis []string
	withAPI := solotick
	withAPI.start = func(b *bench, s seat) (replica, func() error, error) {
		port, err := rig.FreePort()
		if err != nil {
			return nil, nil, err
		}
		api := fmt.Sprintf("127.0.0.1:%d", port)
		apis = append(apis, api)
		o := rig.ReplicaOptions{Binary: b.ours, Name: s.name, Redis: "redis://" + s.redis + "/0", Dir: s.dir}
		r, err := rig.StartReplica(o, func(listen string) string {
			return strings.Replace(table(s.jobs, listen), `admin: ""`, "admin: "+api, 1)
		})
		if err != nil {
			return nil, nil, err
		}
		return replica{r.Process}, func() error { return r.Ready(time.Minute) }, nil
	}
	other := func(app *rig.App) []job { return []job{{Name: "other", Every: 30, URL: app.URL("other", 0)}} }
	w, err := b.open(withAPI, setting{replicas: replicas, jobs: other})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	callers := &http.Client{Transport: &http.Transport{MaxConnsPerHost: apiConns, MaxIdleConnsPerHost: apiConns},
		Timeout: time.Minute}
	defer callers.CloseIdleConnections()
	batched, daily := batchedAll, dailyAll
	if b.quick {
		batched, daily = 10_000, 20_000
	}
	far := time.Now().Add(365 * 24 * time.Hour)
	batchedIn, err := setBatches(callers, apis, "far", batched, func(int) []byte { return timerSource(far, "http://127.0.0.1:1/timer") })
	if err != nil {
		return nil, err
	}
	before, err := usedMemory(w.redis)
	if err != nil {
		return nil, err
	}
	if _, err := setBatches(callers, apis, "daily", daily, func(i int) []byte {
		return fmt.Appendf(nil, `{"schedule":"%d 4 * * *","timeZone":"Europe/Berlin","http":{"url":"http://127.0.0.1:1/timer"}}`, i%60)
	}); err != nil {
		return nil, err
	}
	after, err := usedMemory(w.redis)
	if err != nil {
		return nil, err
	}
	due := time.Now().Add(time.Duration(n)*time.Millisecond + 3*time.Second).Truncate(time.Second)
	began := time.Now()
	if err := together(n, func(i int) error {
		source := timerSource(due, w.app.URL(fmt.Sprintf("timer:t-%d", i), 0)) // the name by which the replica calls it
		url := fmt.Sprintf("http://%s/v1/timers/t-%d", apis[i%len(apis)], i)
		text, err := request(callers, http.MethodPut, url, http.StatusCreated, source)
		if err != nil {
			return fmt.Errorf("setting a timer: %w: %.200s", err, text)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	setIn := time.Since(began)
	if time.Now().After(due) {
		return nil, fmt.Errorf("setting %d timers took until after the time at which they were due", n)
	}
	if err := b.sleep(due); err != nil {
		return nil, err
	}
	called := func(prefix string) (count int, last time.Time) {
		for _, r := range w.app.Seen() {
			if strings.HasPrefix(r.Job, prefix) {
				count, last = count+1, r.Arrived
			}
		}
		return count, last
	}
	fired := func(prefix string) error {
		return rig.Until(2*time.Minute, fmt.Sprintf("%d timers to be fired", n), func() bool {
			count, _ := called(prefix)
			return count >= n
		})
	}
	if err := fired("timer:t-"); err != nil {
		return nil, err
	}
	count, last := called("timer:t-")

	second := time.Now().UTC().Add(time.Duration(n)*time.Millisecond + 3*time.Second).Truncate(time.Second)
	if _, err := setBatches(callers, apis, "s", n, func(i int) []byte {
		return fmt.Appendf(nil, `{"schedule":"%d %d %d * * *","http":{"url":%q},"timeout":"1m"}`,
			second.Second(), second.Minute(), second.Hour(), w.app.URL(fmt.Sprintf("timer:s-%d", i), 0))
	}); err != nil {
		return nil, err
	}
	if time.Now().After(second) {
		return nil, fmt.Errorf("setting %d timers took until after the time at which they were due", n)
	}
	if err := b.sleep(second); err != nil {
		return nil, err
	}
	if err := fired("timer:s-"); err != nil {
		return nil, err
	}
	repeated, lastRepeated := called("timer:s-")
	return []row{
		{What: "timers set per second by the API of three replicas", Unit: "/s", More: true,
			Ours: one(float64(n) / setIn.Seconds()),
			Note: fmt.Sprintf("PUT, %d connections to each", apiConns)},
		{What: "the same in batches", Unit: "/s", More: true, Ours: one(float64(batched) / batchedIn.Seconds()),
			Targets: []target{oursAtLeast(30000)}, Note: fmt.Sprintf("POST, %d timers at a time", service.MaxTimerBatch)},
		{What: fmt.Sprintf("requests per second that an app gets from %d due timers", n), Unit: "/s", More: true,
			Ours: one(float64(n) / last.Sub(due).Seconds()),
			Note: "three replicas, their Redis and the app on the same cores"},
		{What: fmt.Sprintf("the same, of %d with a schedule", n), Unit: "/s", More: true,
			Ours: one(float64(n) / lastRepeated.Sub(second).Seconds()), Note: fmt.Sprintf("%d others wait", batched+daily)},
		{What: "memory of Redis per timer with a daily schedule", Unit: "bytes", Ours: one((after - before) / float64(daily)),
			Targets: []target{oursAtMost(450)}},
		{What: "timers doubled", Ours: one(float64(count + repeated - 2*n)), Targets: []target{oursAtMost(0)}},
	}, nil
}

// setBatches sets n timers, whose ids are the prefix and their number, in the largest batches.
func setBatches(callers *http.Client, apis []string, prefix string, n int, source func(i int) []byte) (time.Duration, error) {
	began := time.Now()
	err := together(n/service.MaxTimerBatch, func(batch int) error {
		var body bytes.Buffer
		for i := batch * service.MaxTimerBatch; i < (batch+1)*service.MaxTimerBatch; i++ {
			fmt.Fprintf(&body, `,{"id":"%s-%d",%s`, prefix, i, source(i)[1:])
		}
		body.Bytes()[0] = '['
		body.WriteByte(']')
		url := "http://" + apis[batch%len(apis)] + "/v1/timers"
		text, err := request(callers, http.MethodPost, url, http.StatusOK, body.Bytes())
		if err == nil && bytes.Count(text, []byte(`"result":"set"`)) != service.MaxTimerBatch {
			err = errors.New("not all are set")
		}
		if err != nil {
			err = fmt.Errorf("setting a batch of timers: %w: %.200s", err, text)
		}
		return err
	})
	return time.Since(began), err
}

// request sends JSON, and returns the answer. Another status is an error.
func request(by *http.Client, method, url string, status int, body []byte) ([]byte, error) {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := by.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != status {
		err = errors.New(answer.Status)
	}
	return text, err
}
