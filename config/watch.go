package config

import (
	"context"
	"crypto/sha256"
	"os"
	"time"

	"github.com/solotick/solotick/internal/beat"
)

// Watch calls changed whenever the content of a file has changed and has settled, until ctx ends. Watch blocks, and
// calls changed one at a time.
//
// It reads the file at about the given interval, or all files of a directory that belong to the table. So it sees a
// file that is written in place or renamed over, and the ..data link of a mounted ConfigMap that changes, however
// coarse the clock of the file system is. Some file systems lose notifications, which do not follow links.
//
// A file has settled if it reads the same twice in a row, a second apart or every, if that is less: one that is written
// in steps is reported after the last step, unless its writer pauses for longer than that.
//
// A file that is gone or cannot be read is reported too: loading it then fails and says why. The first report comes
// after the first two looks, whatever they see, because the file may have changed between its loading and the first
// look; Table.Equal tells whether a reload has anything to do. A pipe or the like is not watched: it gives its content
// only once.
func Watch(ctx context.Context, path string, every time.Duration, changed func()) {
	watch(ctx, path, every, digestFile, changed)
}

// watch is Watch. digest returns a text that tells contents apart; "" = it is not watched.
func watch(ctx context.Context, path string, every time.Duration, digest func(path string) string, changed func()) {
	known, before := "", digest(path)
	soon := min(every, time.Second)
	wait := soon + beat.Near(time.Now().Add(soon), soon) // the first look may come at any time
	for beat.Sleep(ctx, wait) {
		if now := digest(path); now != before {
			before, wait = now, beat.Near(time.Now(), soon)
		} else if wait = beat.Near(time.Now(), every); now != known && now != "" {
			known = now
			changed()
		}
	}
}

// digestFile returns a hash of the content of a file, or of all files of a directory; or the error of reading it; ""
// for a pipe or the like.
func digestFile(path string) string {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return ""
	}
	data, err := readFile(path)
	if err != nil {
		return err.Error()
	}
	h := sha256.Sum256(data)
	return string(h[:])
}
