package lock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/lock"
)

// The life of a lease: claim a tick, keep the lease while the job runs, and settle it.
func Example() {
	server := miniredis.NewMiniRedis() // any Redis will do
	if err := server.Start(); err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := lock.NewClient(redis.UniversalOptions{Addrs: []string{server.Addr()}}, 0)
	defer rdb.Close()
	store, err := lock.New(rdb, "billing", lock.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := store.Register(ctx, "send-invoices", "0 9 * * *"); err != nil { // once, when the schedule is loaded
		log.Fatal(err)
	}

	claim := lock.Claim{
		Job:     "send-invoices",
		Tick:    time.Now().Add(1500 * time.Millisecond), // nominal: the same in all processes
		TTL:     15 * time.Second,
		Replica: "replica-1",
	}
	lease, answer, err := store.Acquire(ctx, claim) // waits for the tick on Redis' clock
	switch {
	case err != nil: // no clear answer: not to be run
		log.Fatal(err)
	case lease == nil:
		fmt.Println("not here:", answer.Code, "by", answer.Holder)
		return
	}
	run, stop := lease.Keep(ctx)
	fmt.Println("won, token is newer:", lease.Token > answer.Prev.UnixMilli())
	// The job: it looks at run.Done(), and hands lease.Token to whatever it writes to.
	if err := run.Err(); err != nil {
		fmt.Println("lost:", context.Cause(run))
	}
	stop()
	settled, err := lease.Finish(ctx, time.Second, lock.Ending{Entry: "succeeded"}) // the lock outlives the run by a second
	fmt.Println("finished:", settled.Verdict, err)

	claim.Replica = "replica-2"
	_, answer, err = store.Acquire(ctx, claim)
	fmt.Println("second replica:", answer.Code, "by", answer.Holder, err)
	// Output:
	// won, token is newer: true
	// finished: OK <nil>
	// second replica: FIRED by replica-1 <nil>
}
