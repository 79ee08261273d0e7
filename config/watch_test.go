package config

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// watcher watches a file once a second, in a bubble: looks at 0s, 1s, 2s and so on. It keeps what the file held at each
// report.
type watcher struct {
	t    *testing.T
	path string

	mu        sync.Mutex // a bubble's time does not order what its goroutines do
	reports   []string
	meanwhile func() // called once, when the file is about to be read for the second time; nil: nothing happens then
	looked    bool   // since meanwhile was set
}

// watching runs a test beside a watch of dir/table.yaml, which holds "old" and has been reported.
func watching(t *testing.T, do func(w *watcher)) {
	t.Helper()
	w := &watcher{t: t, path: filepath.Join(t.TempDir(), "table.yaml")}
	w.write("old")
	w.watch(do)
}

func (w *watcher) watch(do func(w *watcher)) {
	synctest.Test(w.t, func(t *testing.T) {
		w.t = t
		go watch(t.Context(), w.path, time.Second, w.digest, func() {
			data, err := os.ReadFile(w.path)
			if err != nil {
				data = []byte("none")
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.reports = append(w.reports, string(data))
		})
		w.wait(1500 * time.Millisecond)
		w.expect("old")
		do(w)
	})
}

func (w *watcher) digest(path string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.meanwhile != nil && w.looked {
		w.meanwhile()
		w.meanwhile = nil
	}
	w.looked = w.meanwhile != nil
	return digestFile(path)
}

func (w *watcher) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// expect checks the reports since the last time.
func (w *watcher) expect(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := strings.Join(w.reports, ", "); got != strings.Join(want, ", ") {
		w.t.Errorf("%s: reported %q, want %q", w.t.Name(), got, want)
	}
	w.reports = nil
}

func (w *watcher) write(text string) {
	w.t.Helper()
	w.must(os.WriteFile(w.path, []byte(text), 0o600))
}

func (w *watcher) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestAnUnchangedFileIsReportedOnceAtTheStart(t *testing.T) {
	watching(t, func(w *watcher) {
		w.wait(time.Hour)
		w.expect()
	})
}

// TestTheSwapOfAConfigMapIsReportedOnce does what the kubelet does: the files in a new directory, a new link beside the
// old one, renamed over it, and the old directory removed.
func TestTheSwapOfAConfigMapIsReportedOnce(t *testing.T) {
	dir := t.TempDir()
	w := &watcher{t: t, path: filepath.Join(dir, "table.yaml")}
	version := func(name, text string) {
		w.must(os.Mkdir(filepath.Join(dir, name), 0o700))
		w.must(os.WriteFile(filepath.Join(dir, name, "table.yaml"), []byte(text), 0o600))
	}
	swap := func(name string) {
		w.must(os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		w.must(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	version("..2026_11_20_12_00_00.1", "old")
	swap("..2026_11_20_12_00_00.1")
	w.must(os.Symlink(filepath.Join("..data", "table.yaml"), w.path))
	w.watch(func(w *watcher) {
		version("..2026_11_20_12_05_00.2", "new") // as long as the old one
		w.wait(3 * time.Second)
		w.expect()
		swap("..2026_11_20_12_05_00.2")
		w.must(os.RemoveAll(filepath.Join(dir, "..2026_11_20_12_00_00.1")))
		w.wait(2 * time.Second)
		w.expect("new")
		w.wait(time.Minute)
		w.expect()
	})
}

func TestAFileRenamedOverIsReportedOnce(t *testing.T) {
	watching(t, func(w *watcher) {
		info, err := os.Stat(w.path)
		w.must(err)
		// As long and as old as the file it takes the place of.
		other := w.path + ".new"
		w.must(os.WriteFile(other, []byte("new"), 0o600))
		w.must(os.Chtimes(other, info.ModTime(), info.ModTime()))
		w.must(os.Rename(other, w.path))
		w.wait(2 * time.Second)
		w.expect("new")
		w.wait(time.Minute)
		w.expect()
	})
}

// TestAFileWrittenInHalvesIsNeverReportedAsHalf moves both halves over all phases of the looks.
func TestAFileWrittenInHalvesIsNeverReportedAsHalf(t *testing.T) {
	const step = 90 * time.Millisecond
	for phase := time.Duration(0); phase < time.Second; phase += step {
		for pause := step; pause < time.Second; pause += step {
			watching(t, func(w *watcher) {
				w.wait(phase)
				f, err := os.Create(w.path)
				w.must(err)
				w.wait(pause)
				_, err = f.WriteString("first half, ")
				w.must(err)
				w.wait(pause)
				_, err = f.WriteString("second half")
				w.must(err)
				w.must(f.Close())
				w.wait(2 * time.Second)
				w.expect("first half, second half")
				w.wait(time.Minute)
				w.expect()
			})
		}
	}
}

// TestAFileWrittenWhileItIsReadIsReportedWhenItHasSettled begins the next change just before the previous one is
// reported.
func TestAFileWrittenWhileItIsReadIsReportedWhenItHasSettled(t *testing.T) {
	watching(t, func(w *watcher) {
		w.mu.Lock()
		w.meanwhile = func() { w.write("first half, ") }
		w.mu.Unlock()
		w.write("new")
		w.wait(2 * time.Second)
		w.expect()
		w.write("first half, second half")
		w.wait(2 * time.Second)
		w.expect("first half, second half")
	})
}

func TestAFileThatGrowsForMinutesIsReportedWhenItStops(t *testing.T) {
	watching(t, func(w *watcher) {
		for i := range 300 {
			w.write(strings.Repeat("x", i))
			w.wait(900 * time.Millisecond)
		}
		w.expect()
		w.write("new")
		w.wait(2 * time.Second)
		w.expect("new")
	})
}

func TestWritesOfTheSameLengthAndTimeAreSeen(t *testing.T) {
	watching(t, func(w *watcher) {
		info, err := os.Stat(w.path)
		w.must(err)
		for _, text := range []string{"one", "two", "six"} {
			w.write(text)
			w.must(os.Chtimes(w.path, info.ModTime(), info.ModTime()))
			w.wait(2 * time.Second)
			w.expect(text)
		}
	})
}

func TestATouchWithoutAChangeIsNotReported(t *testing.T) {
	watching(t, func(w *watcher) {
		info, err := os.Stat(w.path)
		w.must(err)
		at := info.ModTime().Add(time.Hour)
		w.must(os.Chtimes(w.path, at, at))
		w.wait(time.Minute)
		w.expect()
		w.write("newer")
		w.wait(2 * time.Second)
		w.expect("newer")
	})
}

func TestAFileThatDisappearsIsReportedAndSoIsItsReturn(t *testing.T) {
	watching(t, func(w *watcher) {
		away := w.path + ".away"
		w.must(os.Rename(w.path, away))
		w.wait(time.Minute)
		w.expect("none")
		w.must(os.Rename(away, w.path)) // with what it held before
		w.wait(time.Minute)
		w.expect("old")

		// Gone for less than it takes to settle.
		w.must(os.Rename(w.path, away))
		w.wait(900 * time.Millisecond)
		w.must(os.Rename(away, w.path))
		w.wait(time.Minute)
		w.expect()
	})
}

func TestWhatIsNoFileIsLeftAlone(t *testing.T) {
	w := &watcher{t: t}
	pipe := filepath.Join(t.TempDir(), "pipe")
	w.must(syscall.Mkfifo(pipe, 0o600))
	synctest.Test(t, func(t *testing.T) {
		go Watch(t.Context(), pipe, time.Second, func() { w.reports = append(w.reports, "a pipe") })
		w.wait(time.Minute)
		w.expect()
	})
}

// TestWhatChangesDuringAReportIsReportedNext: the caller may have read the file before or after.
func TestWhatChangesDuringAReportIsReportedNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.yaml")
	w := &watcher{t: t, path: path}
	w.write("old")
	synctest.Test(t, func(t *testing.T) {
		go Watch(t.Context(), path, time.Second, func() {
			data, err := os.ReadFile(path)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.reports = append(w.reports, string(data))
			if len(w.reports) == 1 && err == nil {
				err = os.WriteFile(path, []byte("newer"), 0o600)
				time.Sleep(10 * time.Second)
			}
			if err != nil {
				t.Error(err)
			}
		})
		w.wait(time.Minute)
		w.expect("old", "newer")
	})
}

// A watch that begins shortly before a beat does not take two looks within a tenth of a second for a file at rest.
func TestTheFirstTwoLooksAreASecondApart(t *testing.T) {
	for _, ms := range []time.Duration{0, 350, 450, 500, 700, 2600} {
		at := ms * time.Millisecond
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(at)
			began, looks := time.Now(), []time.Duration{}
			go watch(t.Context(), "", 5*time.Second, func(string) string {
				looks = append(looks, time.Since(began))
				return "x"
			}, func() {})
			time.Sleep(10 * time.Second)
			synctest.Wait()
			for i := range looks[1:] {
				if gap := looks[i+1] - looks[i]; gap < time.Second {
					t.Errorf("begun at %s: looks at %s", at, looks)
				}
			}
		})
	}
}
