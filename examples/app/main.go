// Command app stands for a service in the examples for Kubernetes and Compose: it is called by the sidecar beside it, says
// whether it is ready, and finishes what it was asked for before it ends.
//
//	POST /jobs/{name}?take=2s   run a job that takes so long; with BILLING_TOKEN set, only for who knows it
//	GET  /readyz                200 while it takes requests
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// grace is how long requests under way may take after SIGTERM.
const grace = 25 * time.Second

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := serve(ctx); err != nil {
		log.Fatal("error: ", err)
	}
}

func serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /jobs/{name}", job)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		bounded, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		ended <- server.Shutdown(bounded)
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}

// job is called by one replica for each tick. A handler with side effects would keep the Idempotency-Key, or compare the
// fencing token with the newest that it has seen.
func job(w http.ResponseWriter, r *http.Request) {
	if token := os.Getenv("BILLING_TOKEN"); token != "" && r.Header.Get("Authorization") != "Bearer "+token {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	log.Printf("%s for the tick %s, by %s", r.PathValue("name"), r.Header.Get("Solotick-Tick"), r.Header.Get("Solotick-Replica"))
	take, _ := time.ParseDuration(r.URL.Query().Get("take")) // without one it takes no time
	done := time.NewTimer(take)
	defer done.Stop()
	select {
	case <-done.C:
		fmt.Fprintln(w, "done")
	case <-r.Context().Done(): // nobody waits for it any more
		log.Printf("%s was given up", r.PathValue("name"))
	}
}
