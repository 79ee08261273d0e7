package config

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
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
// If path is a directory, Watch looks at each of its files: those that belong to the table.
//
// Watch also reports a file that is gone or cannot be read: loading it then fails and says why. The first report comes
// after the first two looks, whatever they see, because the file may have changed between its loading and the first
// look. Table.Equal tells, as after any other report, whether a reload has anything to do. A pipe or the like is not
// watched: it gives its content only once.
func Watch(ctx context.Context, path string, every time.Duration, changed func()) {
	watch(ctx, path, every, digestFile, changed)
}

// watch is Watch. digest returns a text that tells contents apart.
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
		if !settled || now.same(known) || now.isPipe() {
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

// look is the metadata of a file, or of a directory and its files. The zero value equals that of no file.
type look struct {
	info  os.FileInfo
	err   string // why the metadata cannot be read
	names []string
	files []look // of names
}

func lookAt(path string) look {
	info, err := os.Stat(path)
	if err != nil {
		return look{err: err.Error()}
	}
	l := look{info: info}
	if info.IsDir() {
		if l.names, err = tableFiles(path); err != nil {
			return look{err: err.Error()}
		}
		for _, name := range l.names {
			l.files = append(l.files, lookAtFile(filepath.Join(path, name)))
		}
	}
	return l
}

func lookAtFile(path string) look {
	info, err := os.Stat(path)
	if err != nil {
		return look{err: err.Error()}
	}
	return look{info: info}
}

// isPipe tells whether the path is neither a file nor a directory.
func (l look) isPipe() bool { return l.info != nil && !l.info.Mode().IsRegular() && !l.info.IsDir() }

func (l look) same(other look) bool {
	if l.info == nil || other.info == nil {
		return l.info == nil && other.info == nil && l.err == other.err
	}
	if l.info.IsDir() && other.info.IsDir() {
		return slices.Equal(l.names, other.names) && slices.EqualFunc(l.files, other.files, look.same)
	}
	return os.SameFile(l.info, other.info) && l.info.Size() == other.info.Size() &&
		l.info.ModTime().Equal(other.info.ModTime()) && l.info.Mode() == other.info.Mode()
}

// digestFile returns a hash of the content of a file, or of all files of a directory; or the error of reading it. It is
// never empty.
func digestFile(path string) string {
	data, err := readFile(path)
	if err != nil {
		return err.Error()
	}
	h := sha256.Sum256(data)
	return string(h[:])
}
