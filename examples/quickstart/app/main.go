// Command app is the service of the quickstart: it answers POST /jobs/NAME and says who called for which tick. It ends
// with the process that started it, so that a replica that is killed leaves no app behind on the port.
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

const addr = "127.0.0.1:9750"

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
	server := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		for parent := os.Getppid(); ctx.Err() == nil && os.Getppid() == parent; {
			time.Sleep(200 * time.Millisecond)
		}
		_ = server.Close()
	}()
	log.Printf("app: listening on %s", addr)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// job is called by one replica for each tick. A handler with side effects would keep the Idempotency-Key, or compare the
// fencing token with the newest that it has seen.
func job(w http.ResponseWriter, r *http.Request) {
	log.Printf("app: %s called for the tick %s", r.Header.Get("Solotick-Replica"), r.Header.Get("Solotick-Tick"))
	fmt.Fprintln(w, "done")
}
