package config

import (
	"context"
	"crypto/sha256"
	"os"
	"time"
)

// Watch calls changed whenever the content of a file has changed and has settled, until ctx ends. Watch blocks, and
// calls changed one at a time.
//
// It reads the file at the given interval, or all files of a directory that belong to the table. So it sees a file that
// is written in place, a file that is renamed over it, and the ..data link of a mounted ConfigMap that changes to
// another directory, however coarse the clock of the file system is. It uses no notifications: some file systems lose
// them, and a watch that follows links would have to be set up again at every change.
//
// A file has settled if it reads the same twice in a row. So Watch reports a file that is written in steps after the
// last step, unless its writer pauses for longer than every. Watch reports a change at the latest two looks after its
// end.
//
// Watch also reports a file that is gone or cannot be read: loading it then fails and says why. The first report comes
// after the first two looks, whatever they see, because the file may have changed between its loading and the first
// look. Table.Equal tells, as after any other report, whether a reload has anything to do. A pipe or the like is not
// watched: it gives its content only once.
func Watch(ctx context.Context, path string, every time.Duration, changed func()) {
	watch(ctx, path, every, digestFile, changed)
}

// watch is Watch. digest returns a text that tells contents apart; "" = it is not watched.
func watch(ctx context.Context, path string, every time.Duration, digest func(path string) string, changed func()) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	known, before := "", digest(path)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := digest(path)
		settled := now == before
		before = now
		if settled && now != known && now != "" {
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
