package service_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

const jobsKey = "solotick:{svc}:jobs"

func TestDynamicJobsAreReadByAllAndEveryChangeIsARevision(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a, b := w.Replica("a"), w.Replica("b")
		if rev, jobs := b.Jobs(); rev != 0 || jobs != "map[]" {
			w.Errorf("at first: revision %d, %s", rev, jobs)
		}
		began := w.Now().UnixMilli()
		newest := began - 1
		for _, step := range []struct {
			act     func()
			changes bool
			jobs    string
		}{
			{func() { a.SetsJob("one", "{1}", true) }, true, "map[one:{1}]"},
			{func() { a.SetsJob("two", "a\nb\x00", true) }, true, "map[one:{1} two:a\nb\x00]"},
			{func() { b.SetsJob("one", "{1}", false) }, false, "map[one:{1} two:a\nb\x00]"},
			{func() { b.SetsJob("one", "{3}", false) }, true, "map[one:{3} two:a\nb\x00]"},
			{func() { a.DeletesJob("one", true) }, true, "map[two:a\nb\x00]"},
			{func() { b.DeletesJob("one", false) }, false, "map[two:a\nb\x00]"},
			{func() { b.DeletesJob("two", true) }, true, "map[]"},
			{func() { b.SetsJob("two", "", true) }, true, "map[two:]"},
		} {
			step.act()
			rev, jobs := b.Jobs()
			if jobs != step.jobs || (rev > newest) != step.changes || rev < newest {
				w.Errorf("revision %d after %d, %q, want %q", rev, newest, jobs, step.jobs)
			}
			newest = rev
		}
		// The revision is not one that there was before, not even when all is lost.
		w.Must(w.Admin.FlushAll(w.Context()).Err())
		w.Pass(10 * time.Millisecond)
		a.SetsJob("one", "{1}", true)
		if rev, _ := b.Jobs(); rev <= newest {
			w.Errorf("revision %d after %d", rev, newest)
		}
	})
}

func TestChangeOfADynamicJobIsHeard(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a, b := w.Replica("a"), w.Replica("b")
		heard := make(chan string, 10)
		ctx, stop := context.WithCancel(w.Context())
		var listening sync.WaitGroup
		listening.Go(func() { b.Service.Listen(ctx, func(job string) { heard <- job }, func(lock.Heard) {}) })
		defer listening.Wait()
		defer stop()
		if job := <-heard; job != service.AnyJob {
			w.Errorf("heard of job %q at the beginning", job)
		}
		for _, act := range []func(){
			func() { a.SetsJob("one", "1", true) },
			func() { a.DeletesJob("one", true) },
		} {
			act()
			if job := <-heard; job != "" {
				w.Errorf("heard of job %q", job)
			}
		}
	})
}

func TestDynamicJobsAreBounded(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		var all sync.WaitGroup
		for n := range service.MaxJobs {
			all.Go(func() { a.SetsJob(fmt.Sprint("job", n), "", true) })
		}
		all.Wait()
		if _, err := a.Service.SetJob(w.Context(), "another", nil); !errors.Is(err, service.ErrTooMany) {
			w.Errorf("one more: %v", err)
		}
		a.SetsJob("job7", "changed", false)
		a.DeletesJob("job8", true)
		a.SetsJob("another", "", true)
		if n := w.Admin.HLen(w.Context(), jobsKey).Val(); n != service.MaxJobs+1 { // and their revision
			w.Errorf("%d fields are kept", n)
		}
		for _, name := range []string{"", "@revision", "a@", "timer:x", "a b"} {
			if _, err := a.Service.SetJob(w.Context(), name, nil); err == nil || errors.Is(err, service.ErrTooMany) {
				w.Errorf("name %q: %v", name, err)
			}
			if _, err := a.Service.DeleteJob(w.Context(), name); err == nil {
				w.Errorf("name %q was deleted", name)
			}
		}
		if _, err := a.Service.SetJob(w.Context(), "job7", []byte(strings.Repeat("x", service.MaxSource+1))); err == nil {
			w.Error("an endless source was taken")
		}
	})
}

func TestDynamicJobsAreBoundedTogetherAndReadAtOnce(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		full := strings.Repeat("x", service.MaxSource)
		var all sync.WaitGroup
		for n := range service.MaxJobSources / service.MaxSource {
			all.Go(func() { a.SetsJob(fmt.Sprint("job", n), full, true) })
		}
		all.Wait()
		if _, err := a.Service.SetJob(w.Context(), "another", []byte("x")); !errors.Is(err, service.ErrTooMany) || !strings.Contains(err.Error(), "1048576 bytes together") {
			w.Errorf("one more: %v", err)
		}
		a.SetsJob("job7", full[1:], false)
		a.SetsJob("another", "x", true)
		read := func() (rev int64, sources map[string][]byte, err error) {
			for { // a busy machine may need longer for a megabyte than one request may last
				if rev, sources, err = a.Service.DynamicJobs(w.Context()); !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
					return rev, sources, err
				}
			}
		}
		if _, sources, err := read(); len(sources) != service.MaxJobSources/service.MaxSource+1 || err != nil {
			w.Errorf("%d are read, %v", len(sources), err)
		}
		w.Must(w.Admin.HSet(w.Context(), jobsKey, "another", full).Err())
		if rev, sources, err := read(); rev == 0 || len(sources) > 0 || !errors.Is(err, service.ErrTooMany) ||
			!strings.Contains(err.Error(), "17 of 1114111 bytes, and a service may have 1000 of 1048576 bytes") {
			w.Errorf("of too many %d are read, %v", len(sources), err)
		}
	})
}
