// Package file opens files whose path or contents somebody else has chosen. It opens nothing but regular files, and
// never waits: the open of a pipe waits for a writer, and a terminal for a key, both for longer than any timeout.
package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// OpenOwn opens a file of the replica's own in a directory to which others may write. It follows no link, and refuses a
// file of another user than root or this one, and one that all may write. A group may: Kubernetes' fsGroup makes it so.
// flag and mode are those of os.OpenFile.
func OpenOwn(path string, flag int, mode fs.FileMode) (*os.File, error) {
	return open(path, flag|syscall.O_NOFOLLOW, mode, isOwn)
}

func open(path string, flag int, mode fs.FileMode, may func(fs.FileInfo) bool) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK|syscall.O_NOCTTY, mode)
	if err != nil {
		return nil, err
	}
	switch info, err := f.Stat(); {
	case err != nil:
		f.Close()
		return nil, err
	case !info.Mode().IsRegular():
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("it is not a regular file")}
	case !may(info):
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("another user owns it, or may write to it")}
	}
	return f, nil
}

func isOwn(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && (s.Uid == 0 || int(s.Uid) == os.Geteuid()) && info.Mode()&0o002 == 0
}

// Read reads a regular file of at most so many bytes, by links too, and tells when it was changed before that. The
// error repeats none of the file's bytes.
func Read(path string, limit int64) (data []byte, changed time.Time, err error) {
	return read(path, 0, limit, func(fs.FileInfo) bool { return true })
}

// ReadOwn is Read for a file of the replica's own: see OpenOwn.
func ReadOwn(path string, limit int64) ([]byte, error) {
	data, _, err := read(path, syscall.O_NOFOLLOW, limit, isOwn)
	return data, err
}

func read(path string, flag int, limit int64, may func(fs.FileInfo) bool) (data []byte, changed time.Time, err error) {
	f, err := open(path, os.O_RDONLY|flag, 0, may)
	if err != nil {
		return nil, changed, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, changed, err
	}
	data, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it is larger than %d KiB", limit>>10)}
	}
	if err != nil {
		return nil, changed, err
	}
	return data, info.ModTime(), nil
}
