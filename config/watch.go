package config

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"time"
)

// Watch calls changed whenever the content of a file may have changed and has settled, until ctx ends. It blocks, and so
// does a call of changed: there is never more than one.
//
// It looks at the file every so often, following symbolic links, and sees whatever way a change comes: written in
// place, renamed over, or the ..data link of a mounted ConfigMap turned to another directory. No notifications are
// used: they are lost on some file systems, and a watch that follows links must be set up again at every turn.
//
// Settled is what looks the same twice in a row, so a file that is written in steps is reported when the last step is
// done, unless its writer pauses for longer than every. For the same reason a write always shows: a file that was
// reported had been left alone for that long, so that a later change has a later time, however coarse the file system's
// clock is. A change is reported at the latest two looks after its end.
//
// A file that is gone, or cannot be read, is reported too: then it is loading it that fails and says why. The first
// report comes after the first two looks, whatever they see: the file may have changed between its loading and
// the first look. Table.Equal tells then, as after any other report, whether there is anything to do. What is no file, as
// a pipe, gives its content once, so it is left alone.
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
		if found != content { // a touch changes nothing
			content = found
			changed()
		}
	}
}

// look is what can be seen of a file from outside. The zero value is like no file.
type look struct {
	info os.FileInfo
	err  string // why there is nothing to be seen
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

// digestFile stands for a file's content, or for why it cannot be read. It is never empty.
func digestFile(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	h := sha256.New()
	// What is larger is refused, whatever follows.
	if _, err := io.Copy(h, io.LimitReader(f, maxSize+1)); err != nil {
		return err.Error()
	}
	return string(h.Sum(nil))
}
