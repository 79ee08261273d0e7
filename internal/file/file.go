// Package file opens files whose path or contents somebody else has chosen. It opens nothing but regular files, and never
// waits: the open of a pipe waits for a writer, and a terminal for a key, both for longer than any timeout.
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

// Open opens a regular file, by links too. flag and mode are those of os.OpenFile.
func Open(path string, flag int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK|syscall.O_NOCTTY, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OpenOwn is Open for a file of the replica's own in a directory to which others may write. It follows no link, and
// refuses a file of another user than root or this one, and one that all may write. A group may: Kubernetes' fsGroup
// makes it so.
func OpenOwn(path string, flag int, mode fs.FileMode) (*os.File, error) {
	f, err := Open(path, flag|syscall.O_NOFOLLOW, mode)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !isOwn(info) {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("another user owns it, or may write to it")}
	}
	return f, nil
}

func isOwn(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && (s.Uid == 0 || int(s.Uid) == os.Geteuid()) && info.Mode()&0o002 == 0
}

// Read reads a regular file of at most so many bytes, and tells when it was changed before that. The error repeats none of
// the file's bytes.
func Read(path string, limit int64) (data []byte, changed time.Time, err error) {
	f, err := Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, changed, err
	}
	defer f.Close()
	return read(f, limit)
}

// ReadOwn is Read for a file of the replica's own: see OpenOwn.
func ReadOwn(path string, limit int64) ([]byte, error) {
	f, err := OpenOwn(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, _, err := read(f, limit)
	return data, err
}

func read(f *os.File, limit int64) (data []byte, changed time.Time, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, changed, err
	}
	data, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("it is larger than %d KiB", limit>>10)}
	}
	if err != nil {
		return nil, changed, err
	}
	return data, info.ModTime(), nil
}
