package handlers_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/solotick/solotick/examples/handlers"
)

var reports = []string{"revenue", "taxes"}

func rebuild(ctx context.Context, _ string) error { return ctx.Err() }

// rebuildReports works until it is done, or ctx ends.
func rebuildReports(ctx context.Context, r *http.Request) error {
	for _, report := range reports {
		if err := rebuild(ctx, report); err != nil {
			return err // the run has failed, and the history says why
		}
	}
	return nil
}

func TestThePageShowsThisLongJob(t *testing.T) {
	store, mux := &handlers.Memory{}, http.NewServeMux()
	long := &handlers.Long{Work: rebuildReports}
	mux.Handle("POST /jobs/rebuild-reports", handlers.Middleware(secret, store, long))
	app := httptest.NewServer(mux)
	defer app.Close()
	c := &caller{T: t, app: app.URL, job: "rebuild-reports", path: "/jobs/rebuild-reports"}
	c.wants(http.StatusOK, "a call", "", "k", 1)

	page, err := os.ReadFile("../../docs/handlers.md")
	if err != nil {
		t.Fatal(err)
	}
	this, err := os.ReadFile("page_test.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for block := range strings.SplitSeq(string(page), "```go\n") {
		block, _, _ = strings.Cut(block, "```\n")
		if !strings.Contains(block, "rebuildReports") || strings.HasPrefix(block, "#") {
			continue
		}
		n++
		for line := range strings.Lines(block) {
			if !strings.Contains(string(this), line) {
				t.Errorf("the page shows a line that is not here: %s", line)
			}
		}
	}
	if n != 2 {
		t.Errorf("the page shows %d blocks of this job", n)
	}
}
