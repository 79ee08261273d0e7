package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solotick/solotick/lock"
)

const jobsKey = "solotick:{svc}:jobs"

// jobs are the dynamic jobs as a replica reads them, and demands that a look sees the same revision.
func (r *replica) jobs() (int64, string) {
	r.w.Helper()
	rev, sources, err := r.DynamicJobs(r.w.Context())
	r.w.must(err)
	seen, err := r.Look(r.w.Context(), 10)
	if err != nil || seen.Jobs != rev {
		r.w.Errorf("a look sees revision %d, %v; want %d", seen.Jobs, err, rev)
	}
	return rev, fmt.Sprintf("%s", sources)
}

// setsJob sets a job, and demands the answer.
func (r *replica) setsJob(name, source string, created bool) {
	r.w.Helper()
	if got, err := r.SetJob(r.w.Context(), name, []byte(source)); got != created || err != nil {
		r.w.Fatalf("set %q: created %t, %v; want %t", name, got, err, created)
	}
}

func TestDynamicJobsAreReadByAllAndEveryChangeIsARevision(t *testing.T) {
	onEvery(t, func(w *world) {
		a, b := w.replica("a"), w.replica("b")
		if rev, jobs := b.jobs(); rev != 0 || jobs != "map[]" {
			w.Errorf("at first: revision %d, %s", rev, jobs)
		}
		began := w.now().UnixMilli()
		newest := began - 1
		for _, step := range []struct {
			act     func()
			changes bool
			jobs    string
		}{
			{func() { a.setsJob("one", "{1}", true) }, true, "map[one:{1}]"},
			{func() { a.setsJob("two", "a\nb\x00", true) }, true, "map[one:{1} two:a\nb\x00]"},
			{func() { b.setsJob("one", "{1}", false) }, false, "map[one:{1} two:a\nb\x00]"},
			{func() { b.setsJob("one", "{3}", false) }, true, "map[one:{3} two:a\nb\x00]"},
			{func() { a.deletesJob("one", true) }, true, "map[two:a\nb\x00]"},
			{func() { b.deletesJob("one", false) }, false, "map[two:a\nb\x00]"},
			{func() { b.deletesJob("two", true) }, true, "map[]"},
			{func() { b.setsJob("two", "", true) }, true, "map[two:]"},
		} {
			step.act()
			rev, jobs := b.jobs()
			if jobs != step.jobs || (rev > newest) != step.changes || rev < newest {
				w.Errorf("revision %d after %d, %q, want %q", rev, newest, jobs, step.jobs)
			}
			newest = rev
		}
		// The revision is not one that there was before, not even when all is lost.
		w.must(w.admin.FlushAll(w.Context()).Err())
		w.pass(10 * time.Millisecond)
		a.setsJob("one", "{1}", true)
		if rev, _ := b.jobs(); rev <= newest {
			w.Errorf("revision %d after %d", rev, newest)
		}
	})
}

// deletesJob deletes a job, and demands the answer.
func (r *replica) deletesJob(name string, want bool) {
	r.w.Helper()
	if got, err := r.DeleteJob(r.w.Context(), name); got != want || err != nil {
		r.w.Fatalf("delete %q: %t, %v; want %t", name, got, err, want)
	}
}

func TestChangeOfADynamicJobIsHeard(t *testing.T) {
	onEvery(t, func(w *world) {
		a, b := w.replica("a"), w.replica("b")
		heard := make(chan string, 10)
		ctx, stop := context.WithCancel(w.Context())
		var listening sync.WaitGroup
		listening.Go(func() { b.Listen(ctx, func(job string) { heard <- job }) })
		defer listening.Wait()
		defer stop()
		if job := <-heard; job != lock.AnyJob {
			w.Errorf("heard of job %q at the beginning", job)
		}
		for _, act := range []func(){
			func() { a.setsJob("one", "1", true) },
			func() { a.deletesJob("one", true) },
		} {
			act()
			if job := <-heard; job != "" {
				w.Errorf("heard of job %q", job)
			}
		}
	})
}

func TestDynamicJobsAreBounded(t *testing.T) {
	onEvery(t, func(w *world) {
		a := w.replica("a")
		var all sync.WaitGroup
		for n := range lock.MaxJobs {
			all.Go(func() { a.setsJob(fmt.Sprint("job", n), "", true) })
		}
		all.Wait()
		if _, err := a.SetJob(w.Context(), "another", nil); !errors.Is(err, lock.ErrTooMany) {
			w.Errorf("one more: %v", err)
		}
		a.setsJob("job7", "changed", false)
		a.deletesJob("job8", true)
		a.setsJob("another", "", true)
		if n := w.admin.HLen(w.Context(), jobsKey).Val(); n != lock.MaxJobs+1 { // and their revision
			w.Errorf("%d fields are kept", n)
		}
		for _, name := range []string{"", "@revision", "a@", "timer:x", "a b"} {
			if _, err := a.SetJob(w.Context(), name, nil); err == nil || errors.Is(err, lock.ErrTooMany) {
				w.Errorf("name %q: %v", name, err)
			}
			if _, err := a.DeleteJob(w.Context(), name); err == nil {
				w.Errorf("name %q was deleted", name)
			}
		}
		if _, err := a.SetJob(w.Context(), "job7", []byte(strings.Repeat("x", lock.MaxSource+1))); err == nil {
			w.Error("an endless source was taken")
		}
	})
}

func TestDynamicJobsAreBoundedTogetherAndReadAtOnce(t *testing.T) {
	onEvery(t, func(w *world) {
		a := w.replica("a")
		full := strings.Repeat("x", lock.MaxSource)
		var all sync.WaitGroup
		for n := range lock.MaxJobSources / lock.MaxSource {
			all.Go(func() { a.setsJob(fmt.Sprint("job", n), full, true) })
		}
		all.Wait()
		if _, err := a.SetJob(w.Context(), "another", []byte("x")); !errors.Is(err, lock.ErrTooMany) || !strings.Contains(err.Error(), "4194304 bytes together") {
			w.Errorf("one more: %v", err)
		}
		a.setsJob("job7", full[1:], false)
		a.setsJob("another", "x", true)
		if _, sources, err := a.DynamicJobs(w.Context()); len(sources) != lock.MaxJobSources/lock.MaxSource+1 || err != nil {
			w.Errorf("%d are read, %v", len(sources), err)
		}
	})
}
