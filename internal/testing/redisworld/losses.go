package redisworld

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/testing/lossy"
)

// losses are the ways in which a single request fails to be answered.
var losses = map[string]lossy.Action{
	"reply lost and connection cut":     lossy.LoseReply,
	"reply lost and connection silent":  lossy.HangReply,
	"request lost and connection cut":   lossy.LoseRequest,
	"request lost, connection silent":   lossy.HangRequest,
	"refused while Redis loads":         lossy.Refuse("LOADING Redis is loading the dataset in memory"),
	"an error of which nothing follows": lossy.Refuse("ERR something went wrong"),
}

// OnEveryLoss plays a case with each of them.
func OnEveryLoss(t *testing.T, play func(w *World, loss lossy.Action)) {
	with := func(loss lossy.Action) func(w *World) {
		return func(w *World) {
			w.Warm()
			w.Born()
			play(w, loss)
		}
	}
	for name, loss := range losses {
		t.Run(name+"/miniredis", func(t *testing.T) { InBubble(t, with(loss)) })
	}
	t.Parallel()
	for name, loss := range losses {
		t.Run(name+"/redis", func(t *testing.T) {
			t.Parallel()
			OnReal(t, with(loss))
		})
	}
}

// Script chooses the runs of the script in a file, of a package that does not export its hash.
func (w *World) Script(file string) lossy.Match {
	w.Helper()
	source, err := os.ReadFile(file)
	w.Must(err)
	return lossy.Script(rds.NewScript(string(source), rds.Unconfirmed).SHA)
}

// Occupy keeps both of the batches that may be under way so until release: what is called next gathers behind them. The
// two calls have ended when release returns.
func (r *Replica) Occupy() (release func()) {
	var wg sync.WaitGroup
	free := make(chan struct{})
	for i := range 2 { // one after the other, or they would share a batch
		f := r.Proxy.On(lossy.Command("evalsha"), 1, lossy.Hold(free))
		wg.Go(func() {
			if _, err := r.Register(r.World.Context(), fmt.Sprint("busy", i), ""); err != nil {
				r.World.Error(err)
			}
		})
		<-f.Struck()
	}
	return func() {
		close(free)
		wg.Wait()
	}
}

// Gather makes n calls at once, while both batches are under way: the calls leave together. All have ended when it
// returns.
func (r *Replica) Gather(n int, call func(i int)) {
	release := r.Occupy()
	var begun, ended sync.WaitGroup
	begun.Add(n)
	for i := range n {
		ended.Go(func() {
			begun.Done()
			call(i)
		})
	}
	begun.Wait()
	time.Sleep(100 * time.Millisecond) // the way from there to the queue, which no test can see
	release()
	ended.Wait()
}
