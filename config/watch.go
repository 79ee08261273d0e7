package config

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"time"
)

// Watch calls changed whenever the content of a file may have changed and has settled, until ctx ends. Watch blocks,
// and calls changed one at a time.
//
// It looks at the file at the given interval and follows symbolic links. So it sees a file that is written in place, a
// file that is renamed over it, and the ..data link of a mounted ConfigMap that changes to another directory. It uses
// no notifications: some file systems lose them, and a watch that follows links would have to be set up again at every
// change.
//
// A file has settled if two looks in a row find it the same. So Watch reports a file that is written in steps after the
// last step, unless its writer pauses for longer than every. For the same reason it misses no write: a reported file
// had not changed for that long, so that a later change has a later time, however coarse the file system's clock is.
// Watch reports a change at the latest two looks after its end.
//
// Watch also reports a file that is gone or cannot be read: loading it then fails and says why. The first report comes
// after the first two looks, whatever they see, because the file may have changed between its loading and the first
// look. Table.Equal tells, as after any other report, whether a reload has anything to do. A pipe or the like is not
// watched: it gives its content only once.
func Watch(ctx context.Context, path string, every time.Duration, changed func()) {
	watch(ctx, path, every, digestFile, changed)
}

func watch(ctx context.Context, path string, every time.Duration, digest func(path string) string, changed func()) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var known look
	var content string
	before := lookAt(path)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := lookAt(path)
		settled := now.same(before)
		before = now
		if !settled || now.same(known) || now.info != nil && !now.info.Mode().IsRegular() {
			continue
		}
		found := digest(path)
		if !lookAt(path).same(now) { // the file was written while it was read, and has not settled
			continue
		}
		known = now
		if found != content { // a touch does not change the content
			content = found
			changed()
		}
	}
}

// look is the metadata of a file. The zero value equals that of no file.
type look struct {
	info os.FileInfo
	err  string // why the metadata cannot be read
}

func lookAt(path string) look {
	info, err := os.Stat(path)
	if err != nil {
		return look{err: err.Error()}
	}
	return look{info: info}
}

func (l look) same(other look) bool {
	if l.info == nil || other.info == nil {
		return l.info == nil && other.info == nil && l.err == other.err
	}
	return os.SameFile(l.info, other.info) && l.info.Size() == other.info.Size() &&
		l.info.ModTime().Equal(other.info.ModTime()) && l.info.Mode() == other.info.Mode()
}

// digestFile returns a hash of a file's content, or the error of reading it. It is never empty.
func digestFile(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	h := sha256.New()
	// Parse refuses a larger file, so the rest does not matter.
	if _, err := io.Copy(h, io.LimitReader(f, maxSize+1)); err != nil {
		return err.Error()
	}
	return string(h.Sum(nil))
}
